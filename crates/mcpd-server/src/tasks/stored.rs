//! A task as it is written down, whether or not there is anything to write it to.

use mcpd_protocol::{InputResponses, TaskStatus};
use serde_json::value::RawValue;

/// A task as it is stored.
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
    /// Who may know of it.
    pub(crate) owner: String,
    /// The path of the tool.
    pub(crate) tool: String,
    /// The server that runs it.
    pub(crate) runner: String,
    pub(crate) status: TaskStatus,
    /// The questions that are open, the result or the error.
    pub(crate) detail: Option<Box<RawValue>>,
    /// Milliseconds since 1970, and so are the next two.
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) expires_at: i64,
}

/// What the owner of a task wants of it.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "database"),
    expect(dead_code, reason = "nobody ever wants it")
)]
pub(crate) enum Wish {
    Cancel,
    /// All of its questions are answered.
    Answers(InputResponses),
}
