//! Work of a front: messages of workers, requests of calls, and what follows from both.

mod run_events;
mod task_runs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use mcpd_server::remote::Request;
use mcpd_server::source::{Offer, Publisher};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Place;
use super::inventory::Inventory;
use super::metrics;
use super::place::{CallEvents, ClusterPlace, Command};
use crate::catalogue::Catalogue;
use crate::delivery::{Action, CallId, Delivery, Order};
use crate::node::{Incoming, Node};
use crate::operator::fetch_catalogue;
use crate::placement::Requirements;
use crate::presence::HEARTBEAT;
use crate::settings::Settings;
use crate::tasks::{Location, SharedTasks};
use crate::transfer::{self, Ended, FetchError, RunHead};
use crate::wire::{self, Control, Event, Frame, Here, Kind, Pong, RunId, random_bits};

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
        fetched: Result<Box<Ended>, FetchError>,
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
    request: Box<Request>,
    events: CallEvents,
    /// Input of the run, if workers fetch it.
    input: Bytes,
    /// Bytes of lines that have arrived from the current attempt.
    lines: (Option<RunId>, u64),
    /// Attempt of a task that is being recorded, or was: it is sent only then.
    recorded: Option<(RunId, bool)>,
    /// Its task goes on without this front.
    is_released: bool,
    outcome: OutcomeFetch,
}

/// Outcome of an attempt that has to be fetched.
#[derive(Debug, Default)]
struct OutcomeFetch {
    run: Option<RunId>,
    is_underway: bool,
    failures: u32,
}

/// Work of a front.
pub(super) struct Duty {
    node: Node,
    delivery: Delivery<Inventory>,
    place_of: Place,
    place: Arc<ClusterPlace>,
    calls: BTreeMap<CallId, Call>,
    /// Result that belongs to the event that is handled.
    ended: Option<Ended>,
    news: mpsc::UnboundedSender<News>,
    /// Work whose result is news. It ends with this.
    aside: JoinSet<()>,
    last_here: Instant,
    /// Workers or their catalogues have changed since what is served was selected.
    has_news: bool,
    has_offer: bool,
    metrics: Option<String>,
    tasks: Option<SharedTasks>,
    /// Tells the key of this front from another.
    key_mark: String,
    /// Fronts with another key, which have been reported.
    strangers: BTreeSet<String>,
    /// A worker of the same name runs in this process.
    is_worker: bool,
    has_namesake: bool,
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
            ended: None,
            news,
            aside: JoinSet::new(),
            last_here: Instant::now(),
            has_news: false,
            has_offer: false,
            metrics: None,
            tasks: None,
            key_mark: String::new(),
            is_worker: false,
            has_namesake: false,
            strangers: BTreeSet::new(),
        }
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
        while self.aside.try_join_next().is_some() {}
        let now = self.node.now();
        if self.last_here.elapsed() >= HEARTBEAT {
            let was_away = self.delivery.presence.echo.is_away(now);
            self.announce();
            if was_away && self.node.is_connected() {
                self.begin();
            }
            self.has_news = true;
            if let Some(tasks) = &self.tasks {
                let trusted_from = self.delivery.presence.echo.trusted_from(now);
                tasks.set_trust(trusted_from.map(|from| now.saturating_sub(from)));
            }
            let waiting = self.delivery.waiting_by_labels();
            self.metrics = Some(metrics::text(now, &self.delivery.presence, waiting));
        }
        // Once for all workers that have come or changed since the last tick.
        if std::mem::take(&mut self.has_news) {
            self.update_inventory();
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
            match here.epoch == self.node.epoch {
                true => {
                    let sent = std::time::Duration::from_millis(here.at_ms);
                    self.delivery.presence.echo.hear(now, sent);
                }
                false => self.report_namesake(&here),
            }
            return;
        }
        self.compare_keys(&here);
        self.has_news |= self.delivery.hear_here(now, here);
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
            self.aside.spawn(async move {
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
            News::Outcome { event, fetched } => self.take_outcome(&event, fetched),
            News::Recorded { sending, recorded } => self.send_recorded(sending, recorded),
        }
        self.act();
    }

    /// Takes a request of a call.
    pub(super) fn take(&mut self, command: Command) {
        let now = self.node.now();
        match command {
            Command::Call {
                call,
                request,
                location,
                events,
            } => self.begin_call(call, request, location, events),
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

    fn begin_call(
        &mut self,
        call: CallId,
        request: Box<Request>,
        location: Option<Location>,
        events: CallEvents,
    ) {
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
        let state = Call {
            request,
            events,
            input: Bytes::new(),
            lines: (None, 0),
            recorded: None,
            is_released: false,
            outcome: OutcomeFetch::default(),
        };
        self.delivery.is_connected = self.node.is_connected();
        let now = self.node.now();
        if let Some(Location::Worker { node, epoch, run }) = location {
            state.events.note_sent(node.clone(), run.to_string());
            state.events.tell_sent();
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
                Action::Ack { runs, node } => {
                    self.node
                        .send_control(&node, wire::Request::Ack { runs }, None);
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
                Action::Rerun { call, lost } => self.report_rerun(call, &lost),
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
                let (tasks, task, news) = (tasks.clone(), task.clone(), self.news.clone());
                task_runs::record(&mut self.aside, tasks, task, sending, news);
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
            call.events.note_sent(worker.clone(), run.to_string());
        }
        let reply = self.node.inbox(&format!("r.{run}.{}", sending.send));
        let subject = self.node.subject("run", &worker);
        self.node
            .send_frame(&subject, Some(reply), &Frame::new(head, body));
    }
}
