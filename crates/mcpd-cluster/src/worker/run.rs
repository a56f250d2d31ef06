//! One run at a worker: its task, its lines, its end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mcpd_exec::Line;
use mcpd_server::Server;
use mcpd_server::remote::NotRun;
use tokio::sync::{mpsc, oneshot};

use super::lines::LineWindow;
use crate::catalogue::Catalogue;
use crate::node::{Incoming, Node};
use crate::transfer::{self, Ended, RunHead};
use crate::wire::{Refusal, RunId, Stream};

/// Time that a script which was asked to end has until it is killed, and a little more.
const KILL_GRACE: Duration = Duration::from_millis(2500);

/// News of a run.
#[derive(Debug)]
pub(super) enum Report {
    /// A front was asked for a run.
    Confirmed {
        run: RunId,
        message: Incoming,
        is_confirmed: bool,
    },
    /// There are lines to send.
    Lines(RunId),
    Ended {
        run: RunId,
        ended: Bytes,
        /// It was cancelled.
        is_cut: bool,
    },
}

/// Run that goes on, whose end no front has yet, or that is kept for a task.
#[derive(Debug)]
pub(super) struct Running {
    /// Subject that its events are sent to.
    pub(super) reply: String,
    pub(super) lines: Arc<LineWindow>,
    /// Its encoded result, after its end.
    pub(super) ended: Option<Bytes>,
    /// Request, before its start.
    request: Option<Box<(RunHead, Bytes)>>,
    cancel: Option<oneshot::Sender<()>>,
    is_started: bool,
}

/// Checks what can be checked before a run is accepted.
pub(crate) fn check(catalogue: &Catalogue, head: &RunHead) -> Result<(), (Refusal, String)> {
    let refuse = |reason| Err((reason, String::new()));
    let request = &head.request;
    let Some(script) = catalogue.scripts.get(&request.path) else {
        return refuse(Refusal::Unknown);
    };
    if *script.version != *request.digest {
        return refuse(Refusal::Digest);
    }
    if script.announcement.level < request.level {
        return refuse(Refusal::Level);
    }
    match head.input_size() {
        Some(_) => Ok(()),
        None => Err((Refusal::Invalid, "the input is too large".to_owned())),
    }
}

impl Running {
    pub(super) fn new(reply: String, head: RunHead, body: Bytes) -> Self {
        Self {
            reply,
            lines: Arc::default(),
            ended: None,
            request: Some(Box::new((head, body))),
            cancel: None,
            is_started: false,
        }
    }

    /// Returns whether it was accepted.
    pub(super) fn is_accepted(&self) -> bool {
        self.is_started
    }

    /// Starts the run, once.
    pub(super) fn start(&mut self, mut task: Task, catalogue: &Catalogue) {
        let Some(request) = self.request.take() else {
            return;
        };
        let (mut head, body) = *request;
        self.is_started = true;
        if let Some(script) = catalogue.scripts.get(&head.request.path) {
            // The server knows the digest of the files; the front records the version.
            let digest = script.announcement.digest.to_string();
            head.request.recorded_digest =
                Some(std::mem::replace(&mut head.request.digest, digest));
        }
        let (cancel, cancelled) = oneshot::channel();
        self.cancel = Some(cancel);
        task.lines = Arc::clone(&self.lines);
        tokio::spawn(task.run(head, body, cancelled));
    }

    /// Ends the run; its task reports that.
    pub(super) fn cancel(&mut self) {
        if let Some(cancel) = self.cancel.take() {
            // A task that has ended needs no cancellation.
            cancel.send(()).ok();
        }
    }
}

/// Task of a run.
pub(super) struct Task {
    run: RunId,
    node: Node,
    server: Server,
    lines: Arc<LineWindow>,
    reports: mpsc::UnboundedSender<Report>,
}

/// Reports the end of a run, whatever becomes of its task.
struct EndReport {
    run: RunId,
    reports: mpsc::UnboundedSender<Report>,
    ended: Option<(Ended, bool)>,
}

impl Drop for EndReport {
    fn drop(&mut self) {
        let lost = || (Err(NotRun::lost("the worker failed to run it")), false);
        let (ended, is_cut) = self.ended.take().unwrap_or_else(lost);
        let report = Report::Ended {
            run: self.run,
            ended: transfer::encode_ended(&ended),
            is_cut,
        };
        // Without the worker's loop there is no front to tell either.
        self.reports.send(report).ok();
    }
}

impl Task {
    pub(super) fn new(
        run: RunId,
        node: &Node,
        server: &Server,
        reports: &mpsc::UnboundedSender<Report>,
    ) -> Self {
        Self {
            run,
            node: node.clone(),
            server: server.clone(),
            lines: Arc::default(),
            reports: reports.clone(),
        }
    }

    async fn run(self, head: RunHead, body: Bytes, cancelled: oneshot::Receiver<()>) {
        let mut report = EndReport {
            run: self.run,
            reports: self.reports.clone(),
            ended: None,
        };
        let ended = tokio::select! {
            ended = self.execute(head, body) => (ended, false),
            // The other side is dropped only with the whole worker.
            _ = cancelled => {
                // The executor kills the script after its grace, while no future waits.
                tokio::time::sleep(KILL_GRACE).await;
                (Err(NotRun::lost("the worker has cancelled it")), true)
            }
        };
        report.ended = Some(ended);
    }

    async fn execute(&self, head: RunHead, body: Bytes) -> Ended {
        let input = match head.fetch {
            true => self.fetch_input(&head).await?,
            false => body,
        };
        let request = head.into_request(input)?;
        let mut on_line = |line: Line<'_>| {
            if self.lines.push(&line) {
                self.reports.send(Report::Lines(self.run)).ok();
            }
        };
        self.server.execute(request, &mut on_line).await
    }

    async fn fetch_input(&self, head: &RunHead) -> Result<Bytes, NotRun> {
        let front = head.front.split('.').next().unwrap_or_default();
        let subject = self.node.subject("in", front);
        let size = head.input_size().unwrap_or_default();
        let input = transfer::fetch(&self.node, &subject, (self.run, Stream::Input), size).await;
        input.map_err(|why| NotRun::lost(format!("its input did not arrive: {why}")))
    }
}
