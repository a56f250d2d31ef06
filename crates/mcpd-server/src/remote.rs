//! Scripts on other machines: the seam between the server that a client speaks to, which is the
//! front, and the servers that run its scripts, which are the workers. What crosses it is one run,
//! as data; how it gets there is the business of a [`Place`].
//!
//! ```text
//! front:  call ─► arguments, access, approval ─► Request ─► Place::run ─┐
//!                                                                       │ any network
//! worker: Server::execute ◄─────────────────────────────────────────────┘
//!           └► its own environment, secrets, sandbox, limits ─► Outcome ─► front
//! ```
//!
//! A worker derives the command from its own script and the arguments in the request; it takes no
//! program, path, variable or sandbox from the front. A front that has the description of a script
//! offers it with [`Offer::script`](crate::source::Offer::script).

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use mcpd_exec::{Level, Limits, Line, Outcome, Stream};
use serde::{Deserialize, Serialize};

use crate::database::rows::TaskKey;
use crate::message::trace::TraceContext;

mod announcement;
mod event;
mod task_run;

pub use announcement::{Announcement, Description, Role};
pub(crate) use event::Outlet;
pub use event::{SharedEvent, SharedEvents};
pub(crate) use task_run::TaskRun;

/// Future of a [`Place`].
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, NotRun>> + Send + 'a>>;

/// Callback for the lines of a run.
pub type OnLine<'a> = &'a mut (dyn FnMut(Line<'_>) + Send);

/// Callback for what happens before the end of a run.
pub type OnEvent<'a> = &'a mut (dyn FnMut(RunEvent<'_>) + Send);

/// Where scripts run that are not here: one worker, or whichever of many is chosen for a run.
pub trait Place: fmt::Debug + Send + Sync {
    /// Runs a script, and waits for its end.
    ///
    /// # Errors
    ///
    /// Nothing was run, except for [`NotRun::Lost`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the run: the script is asked to end, and killed when its grace
    /// period is over.
    fn run<'a>(&'a self, request: Request, on_event: OnEvent<'a>) -> Pending<'a, Outcome>;

    /// Reads a part of a kept output. A part that is shorter than `range` is the last.
    ///
    /// # Errors
    ///
    /// [`NotRun::Unknown`] if the output is not there any more, or belongs to another caller, and
    /// others if it cannot be reached.
    fn read<'a>(&'a self, output: &'a KeptOutput, range: Range<u64>) -> Pending<'a, OutputPart>;

    /// Ties the run with the id `run`, which goes on, to a task: it outlives this server, and the
    /// task says where it is before it is sent anywhere else. Returns where it is now, for
    /// [`adopt`](Self::adopt).
    ///
    /// # Errors
    ///
    /// No such run goes on, or this place cannot do that.
    fn keep<'a>(&'a self, _run: &'a str, _task: TaskKey) -> Pending<'a, String> {
        Box::pin(std::future::ready(Err(NotRun::Unknown)))
    }

    /// Leaves the run with the id `run`, which is tied to a task, to another server: its future can
    /// be dropped without an end to the run.
    fn release(&self, _run: &str) {}

    /// Waits for the end of a run of a task that another server has begun at `location`, which is
    /// that of `request` from now on. If it is known that nothing was sent, it is begun now.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As for [`run`](Self::run).
    fn adopt<'a>(
        &'a self,
        _request: Request,
        _location: &'a str,
        _on_event: OnEvent<'a>,
    ) -> Pending<'a, Outcome> {
        let lost = NotRun::lost("the server that began it is gone");
        Box::pin(std::future::ready(Err(lost)))
    }
}

/// Event of a run before its end.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// A worker was asked to run it. A run that is repeated elsewhere has several of these.
    #[non_exhaustive]
    Sent {
        /// Name of the worker.
        worker: &'a str,
        /// Id of this attempt.
        run: &'a str,
    },
    /// The worker that was asked last is lost, and the run is made again: another `Sent` follows.
    Lost,
    /// The script has written a line.
    Line(Line<'a>),
}

impl<'a> RunEvent<'a> {
    /// Creates the event of an attempt.
    #[must_use]
    pub fn sent(worker: &'a str, run: &'a str) -> Self {
        Self::Sent { worker, run }
    }
}

/// Run of a script, as a front asks for it. Its id, arguments and files are not serialized: a
/// transport gives each attempt an id of its own, and bytes of any length are sent beside the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Request {
    /// Id of the run, unguessable. A place that repeats a run elsewhere gives each attempt its own.
    #[serde(skip)]
    pub run: String,
    /// Path of the script.
    pub path: String,
    /// Digest of the version whose description the caller has seen.
    pub digest: String,
    /// Version that both machines record, where a transport has a digest of its own for it.
    #[serde(skip)]
    pub recorded_digest: Option<String>,
    /// What it runs for.
    #[serde(rename = "for")]
    pub purpose: Purpose,
    /// What the script is asked for.
    #[serde(default, skip_serializing_if = "Question::is_result")]
    pub question: Question,
    /// Lowest level that it must be confined at.
    #[serde(default)]
    pub level: Level,
    /// Limits of the front. The stricter ones of both hold.
    #[serde(default)]
    pub limits: Limits,
    /// The front wants lines while it runs.
    #[serde(default)]
    pub lines: bool,
    /// Trace that the run is part of.
    #[serde(default)]
    pub trace: TraceContext,
    /// Arguments of the call: one JSON object.
    #[serde(skip)]
    pub arguments: Bytes,
    /// Files that the script gets beside them.
    #[serde(skip)]
    pub files: Vec<InputFile>,
    /// What the script says of its runs, for those who place them.
    #[serde(skip)]
    pub traits: Traits,
    /// Task that it belongs to, which may outlive its server.
    #[serde(skip)]
    pub task: Option<TaskKey>,
}

/// Request that a run serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Purpose {
    /// Method, such as `tools/call`.
    pub method: String,
    /// Name or URI in the request.
    pub name: String,
    /// Id of the call, unguessable; empty for a question without one.
    pub call: String,
    /// Name of the caller, as the front has authenticated it.
    pub principal: String,
}

/// What a script is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Question {
    /// The result for the arguments.
    #[default]
    Result,
    /// Its state, with `--state`.
    State,
}

impl Question {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_result(&self) -> bool {
        *self == Self::Result
    }
}

/// File for a run, named by a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputFile {
    /// Variable with its location, such as `MCPD_INPUT_RESPONSES`.
    pub variable: String,
    /// Content.
    pub content: Bytes,
}

impl InputFile {
    /// Variables that a file may have.
    pub const VARIABLES: [&str; 3] = ["MCPD_INPUT_RESPONSES", "MCPD_REQUEST_STATE", "MCPD_CONTEXT"];

    /// Creates a file.
    #[must_use]
    pub fn new(variable: impl Into<String>, content: impl Into<Bytes>) -> Self {
        Self {
            variable: variable.into(),
            content: content.into(),
        }
    }
}

/// What a script says of its runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Traits {
    /// A run changes nothing, so it may be repeated.
    #[serde(default)]
    pub is_read_only: bool,
    /// A run that is repeated changes nothing further.
    #[serde(default)]
    pub is_idempotent: bool,
    /// Its runs belong on one machine: it has state, or limits its concurrency.
    #[serde(default)]
    pub needs_home: bool,
}

/// Output of a run that its worker keeps for a while, because it is longer than the outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptOutput {
    /// Name of the worker.
    #[serde(skip)]
    pub worker: String,
    /// Id of the attempt.
    pub run: String,
    /// Which output.
    pub stream: Stream,
    /// Name of the caller, who alone may read it.
    pub principal: String,
}

impl KeptOutput {
    /// Names an output.
    #[must_use]
    pub fn new(
        worker: impl Into<String>,
        run: impl Into<String>,
        stream: Stream,
        principal: impl Into<String>,
    ) -> Self {
        Self {
            worker: worker.into(),
            run: run.into(),
            stream,
            principal: principal.into(),
        }
    }
}

/// Part of a kept output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputPart {
    /// Its bytes.
    pub bytes: Bytes,
    /// Number of bytes that are kept of the output, before secrets and control sequences are taken
    /// out.
    pub size: u64,
    /// Number of bytes after these, which are lost.
    pub omitted_bytes: u64,
}

impl OutputPart {
    /// Creates a part.
    #[must_use]
    pub fn new(bytes: Bytes, size: u64, omitted_bytes: u64) -> Self {
        Self {
            bytes,
            size,
            omitted_bytes,
        }
    }
}

/// How busy a worker is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Load {
    /// Runs that it does at a time.
    pub slots: usize,
    /// Scripts that run.
    pub running: usize,
    /// Calls that wait for a slot.
    pub waiting: usize,
}

impl Load {
    pub(crate) fn new(slots: usize, running: usize, waiting: usize) -> Self {
        Self {
            slots,
            running,
            waiting,
        }
    }
}

/// Reason for a missing outcome. Except for [`Lost`](Self::Lost) nothing was run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NotRun {
    /// All slots are taken, and the queue is full.
    #[error("run a script elsewhere: every worker is busy")]
    Busy {
        /// Time after which another attempt makes sense.
        retry_after_ms: u64,
    },
    /// The worker has another version of the script.
    #[error("run a script elsewhere: the worker has another version of it")]
    Digest,
    /// The worker does not have the script.
    #[error("run a script elsewhere: the worker does not have it")]
    Unknown,
    /// The worker takes nothing new.
    #[error("run a script elsewhere: the worker is draining")]
    Draining,
    /// The worker does not confine the script at the level that is asked for.
    #[error("run a script elsewhere: the worker does not confine it at the level that is required")]
    Level,
    /// The worker does not do this for the front, or for the caller.
    #[error("run a script elsewhere: the worker refuses: {why}")]
    Denied {
        /// The reason, as a clause.
        why: String,
    },
    /// The worker does not understand the request.
    #[error("run a script elsewhere: the worker has another version of the protocol")]
    Version,
    /// The worker found faults in the arguments, which it checks against the same version.
    #[error("run a script elsewhere: the worker found faults in the arguments: {faults}")]
    Arguments {
        /// The faults, for the caller.
        faults: String,
    },
    /// The worker could not start the script.
    #[error("run a script elsewhere: the worker failed to {why}")]
    NotStarted {
        /// The reason, after "failed to".
        why: String,
    },
    /// No worker can be reached.
    #[error("run a script elsewhere: no worker can be reached")]
    Unreachable {
        /// Time after which another attempt makes sense.
        retry_after_ms: u64,
    },
    /// It may have run: its end is not known.
    #[error("learn how a script elsewhere has ended: {why}")]
    Lost {
        /// The reason, as a clause.
        why: String,
    },
}

impl NotRun {
    /// Creates [`Busy`](Self::Busy).
    #[must_use]
    pub fn busy(retry_after: Duration) -> Self {
        let retry_after_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
        Self::Busy { retry_after_ms }
    }

    /// Creates [`Lost`](Self::Lost).
    #[must_use]
    pub fn lost(why: impl Into<String>) -> Self {
        Self::Lost { why: why.into() }
    }

    /// Returns whether it is a part of ordinary operation, which no log needs.
    pub(crate) fn is_usual(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::Draining | Self::Arguments { .. }
        )
    }

    /// Returns whether another worker may be asked: nothing was run, and the reason lies with this
    /// one.
    #[must_use]
    pub fn may_ask_another(&self) -> bool {
        !matches!(self, Self::Lost { .. } | Self::Arguments { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_the_same_after_serialization_without_its_bytes() {
        let text = r#"{"run":"1","path":"a/b","digest":"sha256:0","later":true,
            "for":{"method":"tools/call","name":"a/b","call":"2","principal":"ada"}}"#;
        let request: Request = serde_json::from_str(text).unwrap();
        assert_eq!(request.purpose.principal, "ada");
        assert_eq!(request.question, Question::Result);
        let mut with_bytes = request.clone();
        with_bytes.arguments = Bytes::from_static(b"{}");
        let text = serde_json::to_string(&with_bytes).unwrap();
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
    }

    #[test]
    fn reason_is_the_same_after_serialization() {
        let busy = NotRun::busy(Duration::from_millis(5));
        let text = serde_json::to_string(&busy).unwrap();
        assert_eq!(text, r#"{"reason":"busy","retry_after_ms":5}"#);
        assert_eq!(serde_json::from_str::<NotRun>(&text).unwrap(), busy);
        assert!(busy.may_ask_another());
        assert!(!NotRun::lost("the worker is gone").may_ask_another());
    }
}
