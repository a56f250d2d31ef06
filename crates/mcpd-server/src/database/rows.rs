//! Rows of the database: what is kept of scripts, interpreters and tasks. Builds without a database
//! use them as well.

use bytes::Bytes;
use mcpd_protocol::method::{InputResponses, TaskStatus};
use mcpd_scriptspec::Diagnostic;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Description of a script: its output for `--help`, or the text of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HelpText {
    /// Metadata, if the probe succeeded.
    pub stdout: Bytes,
    /// Options, if the probe succeeded.
    pub stderr: Bytes,
    /// Text of the file, for a script that was not probed.
    pub source: Bytes,
}

/// Result of a probe, with the properties of the file that it depends on.
#[derive(Debug, Clone)]
pub(crate) struct ProbeResult {
    /// Output of the probe; empty for a refusal without one.
    pub(crate) help: HelpText,
    /// First line of the file if it names an interpreter; empty if the file is unreadable.
    pub(crate) shebang: Option<String>,
    pub(crate) refusal: Option<ProbeRefusal>,
}

/// Result of a probe that describes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProbeRefusal {
    /// A file that is no tool, with the reason.
    NotATool(String),
    /// A tool whose probe failed.
    Fault(Diagnostic),
    /// A tool whose probe exceeded the time limit, and how many times in a row.
    TimeOut(Diagnostic, u8),
    /// A tool whose output is faulty.
    Text,
}

/// Major and minor number.
pub(crate) type Version = (u32, u32);

/// Stored task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StoredTask {
    /// Id, unguessable.
    pub id: String,
    /// Principal that may access it.
    pub owner: String,
    /// Path of the tool.
    pub tool: String,
    /// Server that runs it.
    pub runner: String,
    /// State.
    pub status: TaskStatus,
    /// Open questions, result or error.
    pub detail: Option<Box<RawValue>>,
    /// Time of its creation, in milliseconds since 1970.
    pub created_at: i64,
    /// Time of its last change, likewise.
    pub updated_at: i64,
    /// Time from which it cannot be read any more, likewise.
    pub expires_at: i64,
    /// Sealed data with which another server continues; `None` if none can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<String>,
    /// Where its run is, as the place of the script names it; `None` if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
}

/// Names of a task: its id alone would do, but a store may keep the tasks of each owner together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct TaskKey {
    /// Id of the task.
    pub id: String,
    /// Principal that may access it.
    pub owner: String,
}

impl TaskKey {
    /// Names a task.
    #[must_use]
    pub fn new(id: impl Into<String>, owner: impl Into<String>) -> Self {
        let (id, owner) = (id.into(), owner.into());
        Self { id, owner }
    }
}

impl StoredTask {
    /// Returns its names.
    #[must_use]
    pub fn key(&self) -> TaskKey {
        TaskKey::new(&*self.id, &*self.owner)
    }
}

/// Request of the owner of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TaskRequest {
    /// It is to be cancelled.
    Cancel,
    /// Answers to all of its questions.
    Answers(InputResponses),
    /// Another server continues with it.
    Leave,
}
