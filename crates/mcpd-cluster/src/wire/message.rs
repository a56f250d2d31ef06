//! Heads of messages as data: presence of nodes, events of runs, and requests about runs.

use serde::{Deserialize, Serialize};

use super::frame::heads;
use super::run_id::RunId;

/// Version of the messages. A node reads those of its own version and of earlier ones; what it
/// can't read it refuses, if it is a run, and ignores otherwise. Until the first release the
/// messages of version 1 may change.
pub(crate) const PROTOCOL_VERSION: u32 = 1;
/// Version of the subjects, which are those of all versions of the messages: nodes of different
/// versions meet, and can refuse each other.
const SUBJECT_VERSION: u32 = 1;

/// Returns the beginning of every subject of a cluster.
pub(crate) fn subject_prefix(cluster: &str) -> String {
    format!("mcpd.{SUBJECT_VERSION}.{cluster}")
}

/// Returns the name of the bucket of tasks of a cluster.
pub(crate) fn bucket_name(cluster: &str) -> String {
    format!("mcpd_{SUBJECT_VERSION}_{cluster}_tasks")
}

/// Kind of node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    Front,
    Worker,
    /// Kind that a newer version has.
    #[serde(other)]
    Other,
}

/// Presence of a node, which every node announces each second and at every change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Here {
    pub(crate) v: u32,
    pub(crate) node: String,
    /// Number of this start of the node, greater than that of every earlier one.
    pub(crate) epoch: u64,
    pub(crate) kind: Kind,
    /// Time of sending on the clock of the node, in milliseconds since its start.
    pub(crate) at_ms: u64,
    /// Time of sending on the clock of its machine, in milliseconds since 1970; for people.
    #[serde(default)]
    pub(crate) clock_ms: u64,
    /// Number of runs at the same time; 0 for fronts.
    #[serde(default)]
    pub(crate) slots: u32,
    #[serde(default)]
    pub(crate) running: u32,
    #[serde(default)]
    pub(crate) waiting: u32,
    /// Digest of the catalogue.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) catalog: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) labels: Vec<String>,
    /// Name of the strictest sandbox level that the node can enforce.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) level: String,
    /// Takes no new runs.
    #[serde(default)]
    pub(crate) draining: bool,
    /// Version of mcpd, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) version: String,
    /// Name under which a front runs tasks, which is another after each start.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) runner: String,
    /// Mark of the key with which a front seals what others open.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) key: String,
    /// The node says good-bye: it stops.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) leaving: bool,
}

impl Here {
    /// Presence of an idle node without labels.
    pub(crate) fn new(node: &str, epoch: u64, kind: Kind) -> Self {
        Self {
            v: PROTOCOL_VERSION,
            node: node.to_owned(),
            epoch,
            kind,
            at_ms: 0,
            clock_ms: 0,
            slots: 0,
            running: 0,
            waiting: 0,
            catalog: String::new(),
            labels: Vec::new(),
            level: String::new(),
            draining: false,
            version: String::new(),
            runner: String::new(),
            key: String::new(),
            leaving: false,
        }
    }
}

/// Reason for which a worker has not run something. Nothing was run, so another may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Refusal {
    Busy,
    /// Another version of the script is here.
    Digest,
    /// No such script is announced here.
    Unknown,
    Draining,
    /// The sandbox level can't be enforced here.
    Level,
    /// The operator of the worker does not allow it.
    Denied,
    Version,
    /// The worker is cut off at the moment, so the request may be an old one.
    Away,
    /// Another start of the worker was meant. That one may have run it, so this is no promise.
    Epoch,
    /// The request itself is wrong, and is so everywhere.
    Invalid,
    #[serde(other)]
    Other,
}

/// Reason for which a worker ended a run that would have gone on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Cut {
    /// The front asked for it.
    Cancel,
    /// The worker was cut off for longer than its lease.
    Lease,
    /// The front was silent.
    Front,
    /// The worker stops, and its time for draining was up.
    Drain,
    #[serde(other)]
    Other,
}

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Word {
    /// The run is known and has not ended. Sent some time after the start, so that a short run has
    /// no other event than its end.
    Accepted,
    Refused {
        reason: Refusal,
        /// Explanation for people.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
    },
    /// Lines in the body.
    Lines {
        /// Number of lines left out since the last event, because the front was slow.
        #[serde(default)]
        dropped: u64,
    },
    /// The run has ended; the outcome is in the body.
    End {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cut: Option<Cut>,
        /// Size of the outcome, if it must be fetched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
    /// No such run is known here, and it will not be started any more.
    Unknown,
    /// Event that a newer version has.
    #[serde(other)]
    Other,
}

/// Event of a run, with its sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) v: u32,
    pub(crate) run: RunId,
    pub(crate) node: String,
    pub(crate) epoch: u64,
    #[serde(flatten)]
    pub(crate) word: Word,
}

impl Event {
    pub(crate) fn new(run: RunId, node: &str, epoch: u64, word: Word) -> Self {
        Self {
            v: PROTOCOL_VERSION,
            run,
            node: node.to_owned(),
            epoch,
            word,
        }
    }
}

/// Something that is fetched in parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stream {
    /// Kept output of a run.
    Stdout,
    Stderr,
    /// Input that did not fit into the request.
    Input,
    /// Outcome that did not fit into the event.
    Outcome,
}

/// Request for a part of something that does not fit into one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartRequest {
    pub(crate) run: RunId,
    pub(crate) stream: Stream,
    /// Offset in bytes.
    pub(crate) offset: u64,
    /// Maximum length in bytes.
    pub(crate) length: u64,
    /// Name of the caller whose output it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) principal: String,
}

/// Answer to a [`PartRequest`]; the body is the part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) v: u32,
    /// Reason for which there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) missing: Option<String>,
    /// Size of the kept output that it is a part of, and the number of bytes lost after it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) omitted: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Answer to a ping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pong {
    pub(crate) v: u32,
    pub(crate) node: String,
    pub(crate) epoch: u64,
    /// Name under which a front runs tasks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) runner: String,
}

/// Request to a node about runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Request {
    /// The ends of the runs have arrived.
    Ack {
        runs: Vec<RunId>,
    },
    /// Lines of this many bytes have arrived in all.
    Lines {
        run: RunId,
        bytes: u64,
    },
    Cancel {
        run: RunId,
    },
    Status {
        run: RunId,
    },
    /// The run belongs to a task: it outlives its front, and its end is kept until it is released.
    /// From now on its front is the sender, who hears of it.
    Keep {
        run: RunId,
        hold_s: u64,
    },
    /// The end of the run of a task is stored.
    Release {
        run: RunId,
    },
    /// The sender stops: no caller waits any more, except for tasks.
    Leave,
    Part(PartRequest),
    Ping,
    /// The operator wants the worker to take nothing new.
    Drain,
    #[serde(other)]
    Other,
}

/// Request to a node, with its sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Control {
    pub(crate) v: u32,
    pub(crate) from: String,
    #[serde(flatten)]
    pub(crate) request: Request,
}

impl Control {
    pub(crate) fn new(from: &str, request: Request) -> Self {
        Self {
            v: PROTOCOL_VERSION,
            from: from.to_owned(),
            request,
        }
    }
}

heads!(Here, Event, Control, Part, Pong);
