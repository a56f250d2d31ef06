//! The place where the scripts of a cluster run, for the server: hands requests to the front's
//! task, and returns what comes back.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mcpd_exec::Stream;
use mcpd_server::remote::{
    KeptOutput, NotRun, OnEvent, OutputPart, Pending, Place, Request, RunEvent,
};
use mcpd_server::tasks::TaskKey;
use tokio::sync::{mpsc, oneshot};

use crate::delivery::CallId;
use crate::node::{Node, RequestError};
use crate::settings::Name;
use crate::tasks::Location;
use crate::transfer::{Ended, FetchError, fetch_range};
use crate::wire::{self, Frame, PartRequest, read_lines};

/// Request to the front's task.
pub(super) enum Command {
    Call {
        /// Number that its caller has drawn.
        call: CallId,
        request: Box<Request>,
        /// Where its run is, if another front has begun it.
        location: Option<Location>,
        events: CallEvents,
    },
    HangUp(CallId),
    /// Ties the call with this id of the server to a task.
    Keep {
        run: String,
        task: TaskKey,
        reply: oneshot::Sender<Option<Location>>,
    },
    /// Leaves the call with this id of the server to another front.
    Release {
        run: String,
    },
}

/// Event of a call.
#[derive(Debug)]
pub(super) enum CallEvent {
    Sent {
        worker: String,
        run: String,
    },
    /// The worker is lost, and the run is made again.
    Lost,
    Lines(Bytes),
    Finished(Box<Ended>),
}

/// Worker and run that a call was sent to, until its caller is told.
type Destination = Arc<Mutex<Option<(String, String)>>>;

/// Channel to a caller. Where its run was sent is told with the next event, so that a short run
/// wakes it once. A caller that gives up looks itself.
#[derive(Debug)]
pub(super) struct CallEvents {
    channel: mpsc::UnboundedSender<CallEvent>,
    destination: Destination,
}

impl CallEvents {
    /// The run is about to be sent to this worker, under this id.
    pub(super) fn note_sent(&self, worker: String, run: String) {
        *lock(&self.destination) = Some((worker, run));
    }

    /// Tells where the run was sent.
    pub(super) fn tell_sent(&self) {
        if let Some((worker, run)) = lock(&self.destination).take() {
            self.send(CallEvent::Sent { worker, run });
        }
    }

    pub(super) fn tell(&self, event: CallEvent) {
        self.tell_sent();
        self.send(event);
    }

    fn send(&self, event: CallEvent) {
        // A caller that is gone hangs up as well.
        self.channel.send(event).ok();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Place of all scripts of a cluster.
pub(super) struct ClusterPlace {
    node: Node,
    commands: mpsc::UnboundedSender<Command>,
    last_call: AtomicU64,
}

impl ClusterPlace {
    pub(super) fn new(node: Node, commands: mpsc::UnboundedSender<Command>) -> Self {
        Self {
            node,
            commands,
            last_call: AtomicU64::new(0),
        }
    }

    async fn run_anywhere(
        &self,
        request: Request,
        location: Option<Location>,
        on_event: OnEvent<'_>,
    ) -> Result<mcpd_exec::Outcome, NotRun> {
        let (channel, mut received) = mpsc::unbounded_channel();
        let destination = Destination::default();
        let call = 1 + self.last_call.fetch_add(1, Ordering::Relaxed);
        let mut caller = Caller {
            call: Some(call),
            commands: &self.commands,
            may_run: location.is_some(),
            destination: Arc::clone(&destination),
            on_event,
        };
        let command = Command::Call {
            call,
            request: Box::new(request),
            location,
            events: CallEvents {
                channel,
                destination,
            },
        };
        // Without the task, the channel of events is closed as well.
        self.commands.send(command).ok();
        while let Some(event) = received.recv().await {
            match event {
                CallEvent::Sent { worker, run } => caller.hear_sent(&worker, &run),
                CallEvent::Lost => (caller.on_event)(RunEvent::Lost),
                CallEvent::Lines(lines) => {
                    read_lines(&lines, |line| (caller.on_event)(RunEvent::Line(line)));
                }
                CallEvent::Finished(ended) => {
                    caller.call = None;
                    return *ended;
                }
            }
        }
        caller.look();
        Err(match caller.may_run {
            true => NotRun::lost("the connection with the cluster was given up"),
            false => NotRun::Draining,
        })
    }

    /// Reads an output. Worker and run come from a client, so they may be anything.
    async fn read_at_worker(
        &self,
        output: &KeptOutput,
        range: Range<u64>,
    ) -> Result<OutputPart, NotRun> {
        let worker: Name = output.worker.parse().map_err(|_| NotRun::Unknown)?;
        let part = PartRequest {
            run: output.run.parse().map_err(|_| NotRun::Unknown)?,
            stream: match output.stream {
                Stream::Stdout => wire::Stream::Stdout,
                Stream::Stderr => wire::Stream::Stderr,
            },
            offset: 0,
            length: 0,
            principal: output.principal.clone(),
        };
        let subject = self.node.subject("ctl", worker.as_str());
        let fetched = fetch_range(&self.node, &subject, &part, range).await;
        let Frame { head, body } = fetched.map_err(|error| match error {
            FetchError::Missing(_) | FetchError::Request(RequestError::Absent) => NotRun::Unknown,
            error => NotRun::NotStarted {
                why: format!("read an output at the worker `{worker}`: {error}"),
            },
        })?;
        Ok(OutputPart::new(body, head.size, head.omitted))
    }
}

/// Caller that waits for the end of a call. The call is cancelled when this is dropped before.
struct Caller<'a> {
    call: Option<CallId>,
    commands: &'a mpsc::UnboundedSender<Command>,
    /// It was sent, so it is not certain that nothing was run.
    may_run: bool,
    destination: Destination,
    on_event: OnEvent<'a>,
}

impl Caller<'_> {
    fn hear_sent(&mut self, worker: &str, run: &str) {
        self.may_run = true;
        (self.on_event)(RunEvent::sent(worker, run));
    }

    /// Looks where the run was sent, if no event has told it.
    fn look(&mut self) {
        let sent = lock(&self.destination).take();
        if let Some((worker, run)) = sent {
            self.hear_sent(&worker, &run);
        }
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            self.look();
            // Without the task no call is left.
            self.commands.send(Command::HangUp(call)).ok();
        }
    }
}

impl fmt::Debug for ClusterPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterPlace").finish_non_exhaustive()
    }
}

impl Place for ClusterPlace {
    fn run<'a>(
        &'a self,
        request: Request,
        on_event: OnEvent<'a>,
    ) -> Pending<'a, mcpd_exec::Outcome> {
        Box::pin(self.run_anywhere(request, None, on_event))
    }

    fn read<'a>(&'a self, output: &'a KeptOutput, range: Range<u64>) -> Pending<'a, OutputPart> {
        Box::pin(self.read_at_worker(output, range))
    }

    fn keep<'a>(&'a self, run: &'a str, task: TaskKey) -> Pending<'a, String> {
        Box::pin(async move {
            let (reply, location) = oneshot::channel();
            let run = run.to_owned();
            // Without the task, the channel of the reply is closed as well.
            self.commands.send(Command::Keep { run, task, reply }).ok();
            let location = location.await.ok().flatten().ok_or(NotRun::Unknown)?;
            Ok(location.to_text())
        })
    }

    fn release(&self, run: &str) {
        let run = run.to_owned();
        // Without the task nothing is cancelled either.
        self.commands.send(Command::Release { run }).ok();
    }

    fn adopt<'a>(
        &'a self,
        request: Request,
        location: &'a str,
        on_event: OnEvent<'a>,
    ) -> Pending<'a, mcpd_exec::Outcome> {
        Box::pin(async move {
            let location = Location::from_text(location);
            let unreadable = || NotRun::lost("the server that began it is of another version");
            let location = location.ok_or_else(unreadable)?;
            self.run_anywhere(request, Some(location), on_event).await
        })
    }
}
