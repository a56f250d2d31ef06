//! Work of a worker: messages of fronts, reports of runs, and what follows from both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Subscriber;
use bytes::Bytes;
use futures_util::StreamExt as _;
use mcpd_server::Server;
use mcpd_server::remote::Announcement;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::acceptance::{self, Acceptance, Verdict};
use super::run::{self, Report, Running, Task};
use super::{Selects, Worker};
use crate::catalogue::{Catalogue, PartQuestion};
use crate::error::Error;
use crate::node::{Incoming, Node};
use crate::presence::HEARTBEAT;
use crate::registry::{Action, Limits, Registry, RunRequest};
use crate::transfer::{PART, RunHead};
use crate::wire::{Cut, Event, Frame, FrameError, Here, Kind, Refusal, RunId, Word, read_run};

/// Longest time for which a front may want the end of a run to be kept.
const MAX_HOLD: Duration = Duration::from_secs(3600);
/// Size of all outcomes from which those that are kept for tasks are dropped, in bytes.
const MAX_KEPT: usize = 256 << 20;
/// Time for which a draining worker still refuses runs, before it leaves: fronts may have sent some
/// that did not know of it yet.
const LINGER: Duration = Duration::from_secs(1);
/// Time for which a worker that stops waits for the acknowledgement of the last ends.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// Time limit for the messages that had arrived before it left.
const LAST_MESSAGES: Duration = Duration::from_millis(200);

/// Explanation of a refusal.
const NOT_ACCEPTED: &str = "the worker does not accept runs of this front";

mod control;

/// Work of a worker.
pub(super) struct Duty {
    pub(super) node: Node,
    server: Server,
    pub(super) registry: Registry,
    labels: Vec<String>,
    selects: Selects,
    acceptance: Acceptance,
    catalogue: Arc<Catalogue>,
    /// Runs that go on, whose end no front has yet, or that are kept for a task.
    runs: BTreeMap<RunId, Running>,
    reports: mpsc::UnboundedSender<Report>,
    last_here: Instant,
    slots: usize,
    /// Another worker with the same name has been seen.
    has_namesake: bool,
}

impl Duty {
    pub(super) fn new(
        worker: &Worker,
        node: Node,
        server: Server,
        reports: mpsc::UnboundedSender<Report>,
    ) -> Self {
        let slots = server.load().slots;
        let limits = Limits {
            lease: worker.settings.lease,
            slots,
        };
        Self {
            registry: Registry::new(node.now(), node.epoch, limits),
            node,
            server,
            labels: worker.labels.clone(),
            selects: worker.selects.clone(),
            acceptance: Acceptance::new(worker.accepts.clone()),
            catalogue: Arc::default(),
            runs: BTreeMap::new(),
            reports,
            last_here: Instant::now(),
            slots,
            has_namesake: false,
        }
    }

    pub(super) fn set_announcements(&mut self, announcements: &[Announcement]) {
        let selects = |path: &str| self.selects.0.as_ref().is_none_or(|selects| selects(path));
        let announced = announcements.iter().filter(|one| selects(&one.path));
        self.catalogue = Arc::new(Catalogue::new(announced.cloned()));
        self.announce();
    }

    pub(super) fn announce(&mut self) {
        self.last_here = Instant::now();
        let load = self.server.load();
        let active = self.registry.active();
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let here = Here {
            slots: count(self.slots),
            running: count(load.running),
            waiting: count(active.saturating_sub(self.slots).max(load.waiting)),
            catalog: self.catalogue.digest.clone(),
            labels: self.labels.clone(),
            draining: self.registry.is_draining,
            ..self.node.here(Kind::Worker)
        };
        self.node.announce(here);
    }

    pub(super) fn drain(&mut self) {
        self.registry.is_draining = true;
        tracing::info!(
            runs = self.registry.active(),
            "draining: no new runs are taken"
        );
        self.announce();
    }

    /// Returns whether nothing is left to do. Cancels what is left at the time limit.
    pub(super) fn is_drained(&mut self, since: Instant, until: Option<Instant>) -> bool {
        let now = Instant::now();
        if until.is_some_and(|until| now >= until) {
            self.registry.cut_all(Cut::Drain);
            self.act();
        }
        let is_late = until.is_some_and(|until| now >= until + LAST_WORDS);
        let is_done = self.registry.is_idle() || (is_late && self.registry.active() == 0);
        is_done && now >= since + LINGER
    }

    /// Leaves: from now on the server tells fronts that no worker is here.
    pub(super) async fn leave(mut self, mut own: Subscriber) -> Result<(), Error> {
        // Without a connection there is nothing to end.
        own.unsubscribe().await.ok();
        self.node.flush().await;
        let rest = async {
            while let Some(message) = own.next().await {
                self.hear(message.into());
            }
        };
        // Requests that have arrived before are refused as well.
        timeout(LAST_MESSAGES, rest).await.ok();
        self.node.flush().await;
        Ok(())
    }

    pub(super) fn tick(&mut self) {
        if self.last_here.elapsed() >= HEARTBEAT {
            self.announce();
        }
        let now = self.node.now();
        self.registry.tick(now);
        self.act();
    }

    /// Handles a message of any kind.
    pub(super) fn hear(&mut self, message: Incoming) {
        let kind = self.node.kind(&message.subject).map(str::to_owned);
        let done = match kind.as_deref() {
            Some("here") => self.hear_here(&message),
            Some("run") => self.hear_run(&message),
            Some("ctl") => self.hear_control(&message),
            Some("catalog") => self.hear_catalogue(&message),
            _ => Ok(()),
        };
        if let Err(error) = done {
            tracing::warn!(subject = %message.subject, %error, "a message of the cluster was ignored");
        }
        self.act();
    }

    fn hear_here(&mut self, message: &Incoming) -> Result<(), FrameError> {
        let here = Frame::<Here>::decode(&message.payload)?.head;
        if here.epoch == self.node.epoch {
            let sent = Duration::from_millis(here.at_ms);
            self.registry.echo.hear(self.node.now(), sent);
        } else if here.kind == Kind::Worker && here.epoch > self.node.epoch && !self.has_namesake {
            self.has_namesake = true;
            tracing::warn!(
                node = here.node,
                "another worker has the same name, and gets the runs; change one of them"
            );
        }
        Ok(())
    }

    fn hear_catalogue(&mut self, message: &Incoming) -> Result<(), FrameError> {
        let question = Frame::<PartQuestion>::decode(&message.payload)?.head;
        if let Some(reply) = &message.reply {
            let part = self.catalogue.answer(&question);
            self.node.send_frame(reply, None, &part);
        }
        Ok(())
    }

    fn hear_run(&mut self, message: &Incoming) -> Result<(), FrameError> {
        let Some(reply) = &message.reply else {
            return Ok(());
        };
        let Frame { head, body } = match Frame::<RunHead>::decode(&message.payload) {
            Ok(frame) => frame,
            Err(error) => return self.refuse_unreadable(message, &error),
        };
        let run = head.run;
        if !self.runs.contains_key(&run) {
            let front = acceptance::front_of(&head).to_owned();
            match self.acceptance.judge(run, &front) {
                Verdict::Accepted => {}
                Verdict::Wait => return Ok(()),
                Verdict::Denied => {
                    self.deny(reply, run);
                    return Ok(());
                }
                Verdict::ToConfirm => {
                    let (node, reports) = (self.node.clone(), self.reports.clone());
                    let message = message.clone();
                    tokio::spawn(acceptance::confirm(node, run, front, message, reports));
                    return Ok(());
                }
            }
        }
        self.request_run(run, reply, head, body);
        Ok(())
    }

    /// Refuses a run of a front that this worker runs nothing for.
    fn deny(&self, reply: &str, run: RunId) {
        let (reason, text) = (Refusal::Denied, NOT_ACCEPTED.to_owned());
        let word = Word::Refused { reason, text };
        self.send_event(reply, run, word, Bytes::new());
    }

    /// Sends an event of a run.
    fn send_event(&self, reply: &str, run: RunId, word: Word, body: Bytes) {
        let event = Event::new(run, &self.node.name, self.node.epoch, word);
        self.node.send_frame(reply, None, &Frame::new(event, body));
    }

    /// Handles a run that its front has confirmed, or has not.
    fn take_confirmation(&mut self, run: RunId, message: &Incoming, is_confirmed: bool) {
        self.acceptance.forget(run);
        let Some(reply) = &message.reply else {
            return;
        };
        match Frame::<RunHead>::decode(&message.payload) {
            Ok(Frame { head, body }) if is_confirmed => self.request_run(run, reply, head, body),
            _ => self.deny(reply, run),
        }
    }

    /// Passes a run to the registry, which starts it at most once.
    fn request_run(&mut self, run: RunId, reply: &str, head: RunHead, body: Bytes) {
        let request = RunRequest {
            run,
            epoch: head.epoch,
            front: head.front.clone(),
            hold: Duration::from_secs(head.hold_s).min(MAX_HOLD),
            is_kept: head.keep,
        };
        let catalogue = Arc::clone(&self.catalogue);
        let now = self.node.now();
        self.registry
            .request(now, &request, || run::check(&catalogue, &head));
        let known = self.runs.get_mut(&run);
        if let Some(known) = known {
            known.reply = reply.to_owned();
        } else {
            let running = Running::new(reply.to_owned(), head, body);
            self.runs.insert(run, running);
        }
        self.act();
        // A run that was refused has no entry to be forgotten later.
        if self
            .runs
            .get(&run)
            .is_some_and(|running| !running.is_accepted())
        {
            self.runs.remove(&run);
        }
    }

    /// Refuses a run that this version can't read, so that its front may ask another worker.
    fn refuse_unreadable(&self, message: &Incoming, error: &FrameError) -> Result<(), FrameError> {
        let (Some(reply), Some(run)) = (&message.reply, read_run(&message.payload)) else {
            return Ok(());
        };
        let reason = match error {
            FrameError::Version(_) => Refusal::Version,
            _ => Refusal::Invalid,
        };
        let text = error.to_string();
        let word = Word::Refused { reason, text };
        self.send_event(reply, run, word, Bytes::new());
        Ok(())
    }

    /// Sends lines of a run, as many as the front takes at present.
    fn send_lines(&self, run: RunId) {
        let Some(running) = self.runs.get(&run) else {
            return;
        };
        while let Some((dropped, body)) = running.lines.take_batch() {
            let word = Word::Lines { dropped };
            self.send_event(&running.reply, run, word, body);
        }
    }

    /// Takes what the task of a run reports.
    pub(super) fn take(&mut self, report: Report) {
        match report {
            Report::Confirmed {
                run,
                message,
                is_confirmed,
            } => self.take_confirmation(run, &message, is_confirmed),
            Report::Lines(run) => self.send_lines(run),
            Report::Ended { run, ended, is_cut } => {
                self.send_lines(run);
                if let Some(running) = self.runs.get_mut(&run) {
                    running.ended = Some(ended);
                }
                if self.registry.is_kept(run) {
                    self.bound_kept(run);
                }
                self.registry.end(self.node.now(), run, is_cut);
            }
        }
        self.act();
    }

    /// Drops outcomes that are kept for tasks, so that one more has room.
    fn bound_kept(&mut self, newest: RunId) {
        let sizes = self.runs.values().filter_map(|run| run.ended.as_ref());
        let mut size: usize = sizes.map(Bytes::len).sum();
        for (run, running) in &mut self.runs {
            if size <= MAX_KEPT {
                return;
            }
            if *run != newest && self.registry.is_kept(*run) {
                let dropped = running.ended.take();
                size -= dropped.map_or(0, |outcome| outcome.len());
            }
        }
    }

    pub(super) fn act(&mut self) {
        for action in self.registry.take_actions() {
            self.follow(action);
        }
    }

    fn follow(&mut self, action: Action) {
        match action {
            Action::Say { run, word } => self.say(run, word),
            Action::Start { run } => {
                if let Some(running) = self.runs.get_mut(&run) {
                    let task = Task::new(run, &self.node, &self.server, &self.reports);
                    running.start(task, &self.catalogue);
                }
            }
            Action::End { run } => {
                if let Some(running) = self.runs.get_mut(&run) {
                    running.cancel();
                }
            }
            Action::Forget { run } => {
                self.runs.remove(&run);
            }
        }
    }

    fn say(&self, run: RunId, word: Word) {
        let Some(running) = self.runs.get(&run) else {
            return;
        };
        let outcome = running.ended.clone().unwrap_or_default();
        let (word, body) = match word {
            Word::End { cut, .. } => {
                let size = u64::try_from(outcome.len()).unwrap_or(u64::MAX);
                let is_large = size > PART;
                let size = is_large.then_some(size);
                let body = if is_large { Bytes::new() } else { outcome };
                (Word::End { cut, size }, body)
            }
            word => (word, Bytes::new()),
        };
        self.send_event(&running.reply, run, word, body);
    }
}
