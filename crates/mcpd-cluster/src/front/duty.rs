//! Work of a front: messages of workers, requests of calls, and what follows from both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use mcpd_server::remote::{NotRun, Request};
use mcpd_server::source::{Offer, Publisher};
use mcpd_server::tasks::TaskKey;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Place;
use super::inventory::Inventory;
use super::metrics;
use super::place::{CallEvent, ClusterPlace, Command};
use crate::catalogue::Catalogue;
use crate::delivery::{Action, Answer, CallId, Delivery, Order};
use crate::node::{Incoming, Node};
use crate::operator::fetch_catalogue;
use crate::placement::Requirements;
use crate::presence::HEARTBEAT;
use crate::settings::Settings;
use crate::tasks::{Location, SharedTasks};
use crate::transfer::{self, Ended, RunHead, decode_ended};
use crate::wire::{
    self, Control, Event, Frame, FrameError, Here, Kind, Pong, Refusal, RunId, Stream, Word,
    random_bits,
};

/// Time for which a worker keeps what it knows of a run after its end, in seconds.
const HOLD_S: u64 = 60;
/// Time for which it keeps the end of the run of a task, in seconds.
const TASK_HOLD_S: u64 = 3600;
/// Advice for callers after a refusal for lack of workers, in milliseconds.
const RETRY_AFTER_MS: u64 = 1000;

/// Result of work that was done aside.
pub(super) enum News {
    Catalogue {
        digest: String,
        fetched: Result<Catalogue, String>,
    },
    /// An outcome that did not fit into its event.
    Outcome {
        event: Event,
        fetched: Result<Bytes, String>,
    },
    /// A task says where its run will be, or can't.
    Recorded {
        sending: Sending,
        recorded: Result<(), String>,
    },
}

/// Attempt to be sent.
#[derive(Debug, Clone)]
pub(super) struct Sending {
    call: CallId,
    run: RunId,
    worker: String,
    epoch: u64,
    send: u8,
}

/// Call that has no answer yet.
struct Call {
    request: Request,
    events: mpsc::UnboundedSender<CallEvent>,
    /// Input of the run, if workers fetch it.
    input: Bytes,
    /// Bytes of lines that have arrived from the current attempt.
    lines: (Option<RunId>, u64),
    /// Attempt of a task that is being recorded, or was: it is sent only then.
    recorded: Option<(RunId, bool)>,
    /// Its task goes on without this front.
    is_released: bool,
}

/// Work of a front.
pub(super) struct Duty {
    node: Node,
    delivery: Delivery<Inventory>,
    place_of: Place,
    place: Arc<ClusterPlace>,
    calls: BTreeMap<CallId, Call>,
    last_call: CallId,
    /// Result that belongs to the event that is handled.
    ended: Option<Ended>,
    /// Outcomes on their way.
    fetching: BTreeSet<RunId>,
    news: mpsc::UnboundedSender<News>,
    last_here: Instant,
    has_offer: bool,
    metrics: Option<String>,
    tasks: Option<SharedTasks>,
    /// Tells the key of this front from another.
    key_mark: String,
    /// Fronts with another key, which have been reported.
    strangers: BTreeSet<String>,
}

impl Duty {
    pub(super) fn new(
        settings: &Settings,
        place_of: Place,
        node: Node,
        place: Arc<ClusterPlace>,
        news: mpsc::UnboundedSender<News>,
    ) -> Self {
        let seed = u64::try_from(random_bits() >> 64).unwrap_or_default();
        let inventory = Inventory::default();
        Self {
            delivery: Delivery::new(node.now(), settings.lease, seed, inventory),
            node,
            place_of,
            place,
            calls: BTreeMap::new(),
            last_call: 0,
            ended: None,
            fetching: BTreeSet::new(),
            news,
            last_here: Instant::now(),
            has_offer: false,
            metrics: None,
            tasks: None,
            key_mark: String::new(),
            strangers: BTreeSet::new(),
        }
    }

    /// Adds the store of tasks, and what tells the key of this front from another.
    pub(super) fn with_tasks(self, tasks: Option<SharedTasks>, key_mark: String) -> Self {
        Self {
            tasks,
            key_mark,
            ..self
        }
    }

    /// Reports a front that can't open what this one seals, once.
    fn compare_keys(&mut self, here: &Here) {
        let is_other = here.kind == Kind::Front && here.key != self.key_mark;
        if is_other && !self.key_mark.is_empty() && self.strangers.insert(here.node.clone()) {
            tracing::warn!(
                front = here.node,
                "this front has another state key: sessions, questions and tasks do not continue \
                 there; give all fronts the same `state_key_file`"
            );
        } else if !is_other {
            self.strangers.remove(&here.node);
        }
    }

    /// Says good-bye: workers end what no task needs, and other fronts continue with the tasks, if
    /// this process stops.
    pub(super) async fn leave(mut self, is_final: bool) {
        for worker in self.delivery.workers_in_use() {
            self.node.send_control(worker, wire::Request::Leave, None);
        }
        if is_final {
            self.announce_as(true);
        }
        self.node.flush().await;
    }

    /// Answers a node that asks whether this one is there.
    pub(super) fn answer_ping(&self, message: &Incoming) {
        let control = Frame::<Control>::decode(&message.payload);
        let is_ping = control.is_ok_and(|frame| frame.head.request == wire::Request::Ping);
        let Some(reply) = message.reply.as_ref().filter(|_| is_ping) else {
            return;
        };
        let pong = Pong {
            v: wire::PROTOCOL_VERSION,
            node: self.node.name.clone(),
            epoch: self.node.epoch,
            runner: self.runner(),
        };
        self.node
            .send_frame(reply, None, &Frame::new(pong, Bytes::new()));
    }

    fn runner(&self) -> String {
        let tasks = self.tasks.as_ref();
        tasks.map_or_else(String::new, |tasks| tasks.runner_name().to_owned())
    }

    /// Asks for everything that is there.
    pub(super) fn begin(&mut self) {
        self.announce();
        let here = self.node.here(Kind::Front);
        let who = Frame::new(here, Bytes::new());
        self.node
            .send_frame(&self.node.subject_of_all("who"), None, &who);
    }

    fn announce(&mut self) {
        self.announce_as(false);
    }

    fn announce_as(&mut self, leaving: bool) {
        self.last_here = Instant::now();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        self.node.announce(Here {
            running: count(self.calls.len()),
            waiting: count(self.delivery.waiting()),
            runner: self.runner(),
            key: self.key_mark.clone(),
            leaving,
            ..self.node.here(Kind::Front)
        });
    }

    pub(super) fn tick(&mut self) {
        let now = self.node.now();
        if self.last_here.elapsed() >= HEARTBEAT {
            let was_away = self.delivery.presence.echo.is_away(now);
            self.announce();
            if was_away && self.node.is_connected() {
                self.begin();
            }
            self.update_inventory();
            if let Some(tasks) = &self.tasks {
                let trusted_from = self.delivery.presence.echo.trusted_from(now);
                tasks.set_trust(trusted_from.map(|from| now.saturating_sub(from)));
            }
            let waiting = self.delivery.waiting_by_labels();
            self.metrics = Some(metrics::text(now, &self.delivery.presence, waiting));
        }
        self.delivery.is_connected = self.node.is_connected();
        self.delivery.tick(now);
        self.act();
    }

    /// Handles a heartbeat.
    pub(super) fn hear_here(&mut self, message: &Incoming) {
        let Ok(Frame { head: here, .. }) = Frame::<Here>::decode(&message.payload) else {
            return;
        };
        // The subject is what the server has checked the right to.
        if *message.subject != *self.node.subject("here", &here.node) {
            return;
        }
        let now = self.node.now();
        if let Some(tasks) = &self.tasks
            && !here.runner.is_empty()
        {
            tasks.hear(&here.runner, here.leaving);
        }
        if here.node == self.node.name {
            if here.epoch == self.node.epoch {
                let sent = std::time::Duration::from_millis(here.at_ms);
                self.delivery.presence.echo.hear(now, sent);
            }
            return;
        }
        self.compare_keys(&here);
        if self.delivery.hear_here(now, here) {
            self.update_inventory();
        }
    }

    /// Fetches catalogues that are not known, and selects what is served.
    fn update_inventory(&mut self) {
        let now = self.node.now();
        let Delivery {
            catalogues,
            presence,
            ..
        } = &mut self.delivery;
        for (worker, digest) in catalogues.begin_fetches(now, presence) {
            let (node, news) = (self.node.clone(), self.news.clone());
            tokio::spawn(async move {
                let fetched = fetch_catalogue(&node, &worker, &digest).await;
                if let Err(error) = &fetched {
                    tracing::warn!(%worker, %error, "failed to fetch the catalogue of a worker");
                }
                // Without the front's task there is no front.
                news.send(News::Catalogue { digest, fetched }).ok();
            });
        }
        self.has_offer |= catalogues.select(now, presence);
    }

    /// Returns new metrics, if there are any.
    pub(super) fn take_metrics(&mut self) -> Option<String> {
        self.metrics.take()
    }

    /// Returns what is to be offered, if that has changed.
    pub(super) fn take_offer(&mut self, publisher: &Publisher) -> Option<Offer> {
        if !std::mem::take(&mut self.has_offer) {
            return None;
        }
        let mut offer = publisher.offer();
        for script in self.delivery.catalogues.served() {
            let mut announcement = script.announcement;
            announcement.digest = script.version;
            let place = Arc::clone(&self.place);
            offer.script(&announcement, place);
        }
        Some(offer)
    }

    /// Handles an answer of a worker, or of the server in its place.
    pub(super) fn hear(&mut self, message: Incoming) {
        let now = self.node.now();
        let Some(subject) = self.node.below_inbox(&message.subject) else {
            return;
        };
        match subject.split_once('.') {
            Some(("p", node)) if message.is_no_subscriber => self.delivery.miss_ping(now, node),
            Some(("p", node)) => {
                if let Ok(pong) = Frame::<Pong>::decode(&message.payload)
                    && pong.head.node == node
                {
                    self.delivery.hear_pong(now, node, pong.head.epoch);
                }
            }
            Some(("r", rest)) if message.is_no_subscriber => {
                let sent = rest.rsplit_once('.');
                let sent =
                    sent.and_then(|(run, send)| Some((run.parse().ok()?, send.parse().ok()?)));
                if let Some((run, send)) = sent {
                    self.delivery.miss_run(now, run, send);
                }
            }
            Some(("r", _)) => {
                if let Err(error) = self.hear_event(&message.payload) {
                    tracing::warn!(%error, "an event of a run was ignored");
                }
            }
            _ => {}
        }
        self.act();
    }

    fn hear_event(&mut self, payload: &Bytes) -> Result<(), FrameError> {
        let Frame { head: event, body } = Frame::<Event>::decode(payload)?;
        match event.word {
            Word::End {
                size: Some(size), ..
            } => self.fetch_outcome(event, size),
            Word::End { .. } => self.end(&event, decode_ended(&body)),
            Word::Lines { dropped } => self.pass_lines(&event, dropped, body),
            _ => self.delivery.hear_event(self.node.now(), &event),
        }
        Ok(())
    }

    fn pass_lines(&mut self, event: &Event, dropped: u64, body: Bytes) {
        self.delivery.hear_event(self.node.now(), event);
        let call = self.delivery.call_of(event.run, &event.node);
        let Some(call) = call.and_then(|call| self.calls.get_mut(&call)) else {
            return;
        };
        if call.lines.0 != Some(event.run) {
            call.lines = (Some(event.run), 0);
        }
        call.lines.1 += u64::try_from(body.len()).unwrap_or_default();
        let bytes = call.lines.1;
        if dropped > 0 {
            tracing::debug!(dropped, "lines of a run were dropped");
        }
        // A caller that is gone hangs up as well.
        call.events.send(CallEvent::Lines(body)).ok();
        let run = event.run;
        let request = wire::Request::Lines { run, bytes };
        self.node.send_control(&event.node, request, None);
    }

    /// Fetches an outcome that did not fit into its event.
    fn fetch_outcome(&mut self, event: Event, size: u64) {
        let run = event.run;
        if self.delivery.call_of(run, &event.node).is_none() {
            return self.delivery.hear_event(self.node.now(), &event);
        }
        let alive = Event {
            word: Word::Accepted,
            ..event.clone()
        };
        self.delivery.hear_event(self.node.now(), &alive);
        if !self.fetching.insert(run) {
            return;
        }
        let (node, news) = (self.node.clone(), self.news.clone());
        tokio::spawn(async move {
            let subject = node.subject("ctl", &event.node);
            let fetched = transfer::fetch(&node, &subject, (run, Stream::Outcome), size).await;
            // Without the front's task no caller waits.
            news.send(News::Outcome { event, fetched }).ok();
        });
    }

    /// Takes the result of work that was done aside.
    pub(super) fn learn(&mut self, news: News) {
        match news {
            News::Catalogue { digest, fetched } => {
                let now = self.node.now();
                self.delivery.catalogues.add(now, &digest, fetched.ok());
                self.update_inventory();
                // The first one is worth a list, even if it is empty.
                self.has_offer = true;
            }
            News::Outcome { event, fetched } => {
                self.fetching.remove(&event.run);
                match fetched {
                    Ok(outcome) => self.end(&event, decode_ended(&outcome)),
                    // The worker repeats its event.
                    Err(error) => tracing::debug!(%error, "failed to fetch an outcome"),
                }
            }
            News::Recorded { sending, recorded } => self.send_recorded(sending, recorded),
        }
        self.act();
    }

    /// Handles the end of a run, or the news that nothing was run after all.
    fn end(&mut self, event: &Event, ended: Ended) {
        let now = self.node.now();
        let reason = match &ended {
            Err(NotRun::Busy { .. }) => Some(Refusal::Busy),
            Err(NotRun::Digest) => Some(Refusal::Digest),
            Err(NotRun::Unknown) => Some(Refusal::Unknown),
            Err(NotRun::Draining) => Some(Refusal::Draining),
            Err(NotRun::Level) => Some(Refusal::Level),
            Err(NotRun::Version) => Some(Refusal::Version),
            _ => None,
        };
        self.ended = Some(ended);
        if let Some(reason) = reason {
            let (run, text) = (event.run, String::new());
            self.node
                .send_control(&event.node, wire::Request::Ack { run }, None);
            let word = Word::Refused { reason, text };
            let refused = Event {
                word,
                ..event.clone()
            };
            self.delivery.hear_event(now, &refused);
        } else {
            self.delivery.hear_event(now, event);
        }
        self.act();
        self.ended = None;
    }

    /// Takes a request of a call.
    pub(super) fn take(&mut self, command: Command) {
        let now = self.node.now();
        match command {
            Command::Call {
                request,
                location,
                events,
            } => self.begin_call(*request, location, events),
            Command::HangUp(call) => match self.calls.remove(&call) {
                Some(state) if state.is_released => self.delivery.leave(call),
                _ => self.delivery.hang_up(now, call),
            },
            Command::Keep { run, task, reply } => {
                let location = self.keep(&run, task);
                // A caller that is gone has no task.
                reply.send(location).ok();
            }
            Command::Release { run } => {
                if let Some((_, call)) = self.find_call(&run) {
                    call.is_released = true;
                }
            }
        }
        self.act();
    }

    /// Returns the call with this id of the server.
    fn find_call(&mut self, run: &str) -> Option<(CallId, &mut Call)> {
        let mut calls = self.calls.iter_mut();
        let found = calls.find(|(_, call)| call.request.run == run);
        found.map(|(id, call)| (*id, call))
    }

    /// Ties a call to a task. Returns where its run is.
    fn keep(&mut self, run: &str, task: TaskKey) -> Option<Location> {
        let (id, call) = self.find_call(run)?;
        call.request.task = Some(task);
        let location = self.delivery.keep(id);
        if let (Some((run, ..)), Some(call)) = (&location, self.calls.get_mut(&id)) {
            // The task is stored with it.
            call.recorded = Some((*run, true));
        }
        Some(match location {
            Some((run, node, epoch)) => Location::Worker { node, epoch, run },
            None => Location::Unsent,
        })
    }

    /// Sends a run whose task says where it will be.
    fn send_recorded(&mut self, sending: Sending, recorded: Result<(), String>) {
        match recorded {
            Ok(()) => {
                let call = self.calls.get_mut(&sending.call);
                if let Some(call) = call.filter(|call| call.recorded == Some((sending.run, false))) {
                    call.recorded = Some((sending.run, true));
                    self.send_run(sending);
                }
            }
            // Never sent, so its worker does not know it, and another attempt follows.
            Err(error) => {
                tracing::warn!(%error, "failed to record where the run of a task is");
            }
        }
    }

    fn begin_call(
        &mut self,
        request: Request,
        location: Option<Location>,
        events: mpsc::UnboundedSender<CallEvent>,
    ) {
        self.last_call += 1;
        let call = self.last_call;
        let placement = (self.place_of)(&request.path);
        let order = Order {
            requirements: Requirements {
                path: request.path.clone(),
                labels: placement.labels,
                home: placement.home || request.traits.needs_home,
            },
            digest: request.digest.clone(),
            rerun: placement.rerun.of(request.traits),
        };
        // The server's own id is random, too, but its form is its own concern.
        let id = random_bits();
        // The receiver waits for it.
        events.send(CallEvent::Begun(call)).ok();
        let state = Call {
            request,
            events,
            input: Bytes::new(),
            lines: (None, 0),
            recorded: None,
            is_released: false,
        };
        self.delivery.is_connected = self.node.is_connected();
        let now = self.node.now();
        if let Some(Location::Worker { node, epoch, run }) = location {
            let (worker, text) = (node.clone(), run.to_string());
            state.events.send(CallEvent::Sent { worker, run: text }).ok();
            self.calls.insert(call, state);
            return self.delivery.adopt(now, call, (run, node, epoch), order);
        }
        self.calls.insert(call, state);
        self.delivery.call(now, call, id, order);
    }

    /// Sends a part of an input to a worker.
    pub(super) fn send_input(&self, message: &Incoming) {
        let control = Frame::<Control>::decode(&message.payload);
        let (Ok(Frame { head, .. }), Some(reply)) = (control, &message.reply) else {
            return;
        };
        let wire::Request::Part(part) = head.request else {
            return;
        };
        let worker = head.from.split('.').next().unwrap_or_default();
        let call = self.delivery.call_of(part.run, worker);
        let input = call.and_then(|call| self.calls.get(&call));
        let input = input.map(|call| &call.input);
        let answer = transfer::part_of(input, part.offset, part.length);
        self.node.send_frame(reply, None, &answer);
    }

    fn act(&mut self) {
        for action in self.delivery.take_actions() {
            match action {
                Action::Run {
                    call,
                    run,
                    node: worker,
                    epoch,
                    send,
                } => self.send_run(Sending {
                    call,
                    run,
                    worker,
                    epoch,
                    send,
                }),
                Action::Keep { run, node } => {
                    let reply = Some(self.node.inbox(&format!("r.{run}.s")));
                    let hold_s = TASK_HOLD_S;
                    let request = wire::Request::Keep { run, hold_s };
                    self.node.send_control(&node, request, reply);
                }
                Action::Ack { run, node } => {
                    self.node
                        .send_control(&node, wire::Request::Ack { run }, None);
                }
                Action::Cancel { run, node } => {
                    let reply = Some(self.node.inbox(&format!("r.{run}.c")));
                    self.node
                        .send_control(&node, wire::Request::Cancel { run }, reply);
                }
                Action::Status { run, node } => {
                    let reply = Some(self.node.inbox(&format!("r.{run}.s")));
                    self.node
                        .send_control(&node, wire::Request::Status { run }, reply);
                }
                Action::Ping { node } => {
                    let reply = Some(self.node.inbox(&format!("p.{node}")));
                    self.node.send_control(&node, wire::Request::Ping, reply);
                }
                Action::Finish { call, answer, .. } => self.finish(call, answer),
                Action::Rerun { call, lost } => {
                    let path = self.calls.get(&call).map(|call| &*call.request.path);
                    tracing::warn!(script = path, worker = %lost, "a worker is lost; its run is made again");
                }
            }
        }
    }

    fn send_run(&mut self, sending: Sending) {
        let is_current = self.delivery.call_of(sending.run, &sending.worker) == Some(sending.call);
        let Some(call) = self.calls.get_mut(&sending.call).filter(|_| is_current) else {
            return;
        };
        if let (Some(task), Some(tasks)) = (&call.request.task, &self.tasks)
            && call.recorded != Some((sending.run, true))
        {
            if call.recorded != Some((sending.run, false)) {
                call.recorded = Some((sending.run, false));
                record(tasks.clone(), task.clone(), sending, self.news.clone());
            }
            return;
        }
        let Sending {
            run, worker, epoch, ..
        } = sending;
        let front = self.node.identity();
        let hold_s = match call.request.task {
            Some(_) => TASK_HOLD_S,
            None => HOLD_S,
        };
        let (head, input) = RunHead::new(&call.request, run, epoch, front, hold_s);
        let body = if head.fetch {
            call.input = input;
            Bytes::new()
        } else {
            input
        };
        if sending.send == 0 {
            let (worker, run) = (worker.clone(), run.to_string());
            // A caller that is gone hangs up as well.
            call.events.send(CallEvent::Sent { worker, run }).ok();
        }
        let reply = self.node.inbox(&format!("r.{run}.{}", sending.send));
        let subject = self.node.subject("run", &worker);
        self.node
            .send_frame(&subject, Some(reply), &Frame::new(head, body));
    }

    fn finish(&mut self, call: CallId, answer: Answer) {
        let Some(call) = self.calls.remove(&call) else {
            return;
        };
        let retry_after_ms = RETRY_AFTER_MS;
        let ended = match answer {
            Answer::Ended => {
                let unreadable = || Err(NotRun::lost("its outcome is missing"));
                self.ended.take().unwrap_or_else(unreadable)
            }
            Answer::Lost { node } => Err(NotRun::lost(format!("the worker `{node}` was lost"))),
            Answer::Busy => Err(NotRun::Busy { retry_after_ms }),
            Answer::Unavailable => Err(NotRun::Unreachable { retry_after_ms }),
            Answer::Refused { reason, text } => Err(refusal(reason, text)),
        };
        // A caller that is gone hangs up as well.
        call.events.send(CallEvent::Finished(Box::new(ended))).ok();
    }
}

/// Records where the run of a task will be.
fn record(
    tasks: SharedTasks,
    task: TaskKey,
    sending: Sending,
    news: mpsc::UnboundedSender<News>,
) {
    let location = Location::Worker {
        node: sending.worker.clone(),
        epoch: sending.epoch,
        run: sending.run,
    };
    tokio::spawn(async move {
        let recorded = tasks.locate(&task, &location).await;
        // Without the front's task there is no front.
        news.send(News::Recorded { sending, recorded }).ok();
    });
}

fn refusal(reason: Refusal, why: String) -> NotRun {
    match reason {
        Refusal::Digest => NotRun::Digest,
        Refusal::Level => NotRun::Level,
        Refusal::Version => NotRun::Version,
        Refusal::Unknown => NotRun::Unknown,
        Refusal::Draining => NotRun::Draining,
        _ => NotRun::Denied { why },
    }
}
