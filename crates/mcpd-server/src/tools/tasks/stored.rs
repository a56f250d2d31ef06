//! Stored form of a task, also used by builds without a database.

use mcpd_protocol::{InputResponses, TaskStatus};
use serde_json::value::RawValue;

/// Stored task.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(feature = "database"),
    expect(
        dead_code,
        reason = "only a database has owners and servers to tell apart"
    )
)]
pub(crate) struct StoredTask {
    pub(crate) id: String,
    /// Principal that may access it.
    pub(crate) owner: String,
    /// Path of the tool.
    pub(crate) tool: String,
    /// Server that runs it.
    pub(crate) runner: String,
    pub(crate) status: TaskStatus,
    /// Open questions, result or error.
    pub(crate) detail: Option<Box<RawValue>>,
    /// Milliseconds since 1970, like the next two.
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) expires_at: i64,
}

/// Request of the owner of a task.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "database"),
    expect(dead_code, reason = "nobody ever wants it")
)]
pub(crate) enum TaskRequest {
    Cancel,
    /// Answers to all of its questions.
    Answers(InputResponses),
}
