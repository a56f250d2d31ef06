//! Store of tasks: what every server that a client may ask reads and writes. The tasks of one
//! machine are in its database; a program with servers on several machines brings a store that they
//! share.

use std::fmt;
use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcpd_protocol::method::{InputRequests, InputResponses, TaskStatus};
use serde_json::value::RawValue;

pub use super::running::BackgroundTask;
pub use crate::database::rows::{StoredTask, TaskKey, TaskRequest};
use crate::support::random_id;

#[cfg(feature = "database")]
mod database;

#[cfg(feature = "database")]
pub(crate) use database::DatabaseStore;

/// Answer of a store.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Failure to read or write tasks.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(String);

impl StoreError {
    /// Creates a failure with its reason.
    pub fn new(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Store of tasks. A finished task stays as it is until it expires.
///
/// Every change is atomic, whichever servers make changes at the same time. Dropping an answer may
/// or may not undo the change.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Name of this server among those with the same store.
    fn runner(&self) -> &str;

    /// Stores a new task; the answer is `false` if there are too many.
    fn add(&self, task: StoredTask) -> Answer<'_, bool>;

    /// Returns a task, unless it has expired. One whose server is gone fails, unless other servers
    /// can continue with it.
    fn task(&self, key: TaskKey) -> Answer<'_, Option<StoredTask>>;

    /// Returns all tasks of `owner` without their results, the newest first.
    fn tasks(&self, owner: &str) -> Answer<'_, Vec<StoredTask>>;

    /// Stores the questions of a task, which waits for the answers, and what another server needs
    /// to continue from here.
    fn store_questions(
        &self,
        key: TaskKey,
        questions: InputRequests,
        continuation: Option<String>,
    ) -> Answer<'_, ()>;

    /// Stores answers to open questions of a task; others are dropped. With the last one it is
    /// working again.
    fn store_answers(&self, key: TaskKey, responses: InputResponses) -> Answer<'_, ()>;

    /// Stores a request to cancel a task, unless it has ended.
    fn request_cancel(&self, key: TaskKey) -> Answer<'_, ()>;

    /// Stores the ending of a task, unless it has ended before, or is another server's.
    fn store_ending(
        &self,
        key: TaskKey,
        status: TaskStatus,
        detail: Option<Box<RawValue>>,
    ) -> Answer<'_, ()>;

    /// Takes the requests for the tasks that this server runs, each with the id of its task.
    fn take_requests(&self) -> Answer<'_, Vec<(String, TaskRequest)>>;

    /// Returns whether another server can continue with a task whose run is elsewhere.
    fn has_successors(&self) -> bool {
        false
    }

    /// Waits for an unfinished task of a server that is gone, and makes it a task of this one,
    /// which no other server gets then.
    fn adopt(&self) -> Answer<'_, StoredTask> {
        Box::pin(std::future::pending())
    }
}

/// Creates a task that begins now and runs on `runner`, without storing it.
pub(super) fn new_task(runner: &str, owner: &str, tool: &str, lifetime: Duration) -> StoredTask {
    let now = now();
    let lifetime = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
    StoredTask {
        id: random_id::new(),
        owner: owner.to_owned(),
        tool: tool.to_owned(),
        runner: runner.to_owned(),
        status: TaskStatus::Working,
        detail: None,
        created_at: now,
        updated_at: now,
        expires_at: now.saturating_add(lifetime),
        continuation: None,
        location: None,
    }
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
