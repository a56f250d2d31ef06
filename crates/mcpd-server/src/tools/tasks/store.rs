//! Storage of tasks in the database, off the async workers, and recovery of tasks whose server is
//! gone.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{InputRequests, InputResponses, TaskStatus};
use serde_json::value::{RawValue, to_raw_value};

use super::server_registry::{ServerRegistration, ServerRegistry};
use super::{StoredTask, TaskRequest};
use crate::database::Database;
use crate::support::random_id;
use crate::support::sync;

/// Storage of tasks, shared by all clones.
#[derive(Debug, Clone)]
pub(crate) struct TaskStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    database: Database,
    registry: ServerRegistry,
    /// Registration of this server, from its first task on.
    runner: Mutex<Option<ServerRegistration>>,
    /// Name of this server.
    name: String,
}

/// Failure to read or write tasks.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct StoreError(String);

impl StoreError {
    fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl TaskStore {
    pub(crate) fn new(database: Database) -> Self {
        let mut directory = database.file().as_os_str().to_owned();
        directory.push("-runners");
        Self {
            inner: Arc::new(Inner {
                database,
                registry: ServerRegistry::new(directory.into()),
                runner: Mutex::default(),
                name: random_id::new(),
            }),
        }
    }

    /// Creates a task that begins now, without storing it.
    pub(super) fn new_task(&self, owner: &str, tool: &str, lifetime: Duration) -> StoredTask {
        let now = now();
        let lifetime = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
        StoredTask {
            id: random_id::new(),
            owner: owner.to_owned(),
            tool: tool.to_owned(),
            runner: self.inner.name.clone(),
            status: TaskStatus::Working,
            detail: None,
            created_at: now,
            updated_at: now,
            expires_at: now.saturating_add(lifetime),
        }
    }

    /// Stores a task; returns `false` if there are too many.
    pub(super) async fn add(&self, task: StoredTask) -> Result<bool, StoreError> {
        self.run_blocking(move |inner| {
            inner.register()?;
            inner.database.add_task(&task).map_err(StoreError::new)
        })
        .await
    }

    /// Returns the task `id` of `owner`.
    pub(super) async fn task(
        &self,
        id: &str,
        owner: &str,
    ) -> Result<Option<StoredTask>, StoreError> {
        let (id, owner) = (id.to_owned(), owner.to_owned());
        self.run_blocking(move |inner| {
            let read = || inner.database.task(&id, &owner, now());
            let task = read().map_err(StoreError::new)?;
            match task {
                Some(task) if inner.fail_if_server_ended(&task)? => read().map_err(StoreError::new),
                task => Ok(task),
            }
        })
        .await
    }

    /// Returns all tasks of `owner` without their results, the newest first.
    pub(super) async fn tasks(&self, owner: &str) -> Result<Vec<StoredTask>, StoreError> {
        let owner = owner.to_owned();
        self.run_blocking(move |inner| {
            let read = || inner.database.tasks(&owner, now()).map_err(StoreError::new);
            let tasks = read()?;
            let mut any_is_lost = false;
            for task in &tasks {
                any_is_lost |= inner.fail_if_server_ended(task)?;
            }
            if any_is_lost { read() } else { Ok(tasks) }
        })
        .await
    }

    /// Stores the questions of a task.
    pub(super) async fn store_questions(
        &self,
        id: &str,
        questions: InputRequests,
    ) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.run_blocking(move |inner| {
            let asked = inner.database.store_questions(&id, &questions, now());
            asked.map_err(StoreError::new)
        })
        .await
    }

    /// Stores answers to the questions of a task.
    pub(super) async fn store_answers(
        &self,
        id: &str,
        responses: InputResponses,
    ) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.run_blocking(move |inner| {
            let answered = inner.database.store_answers(&id, &responses, now());
            answered.map_err(StoreError::new)
        })
        .await
    }

    /// Stores a request to cancel a task.
    pub(super) async fn request_cancel(&self, id: &str) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.run_blocking(move |inner| inner.database.request_cancel(&id).map_err(StoreError::new))
            .await
    }

    /// Stores the ending of a task.
    pub(super) async fn store_ending(
        &self,
        id: &str,
        status: TaskStatus,
        detail: Option<Box<RawValue>>,
    ) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.run_blocking(move |inner| {
            let ended = inner
                .database
                .end_task(&id, status, detail.as_deref(), now());
            ended.map_err(StoreError::new)
        })
        .await
    }

    /// Returns the requests for the tasks of this server.
    pub(super) async fn take_requests(&self) -> Result<Vec<(String, TaskRequest)>, StoreError> {
        self.run_blocking(|inner| {
            inner
                .database
                .take_requests(&inner.name)
                .map_err(StoreError::new)
        })
        .await
    }

    async fn run_blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let inner = Arc::clone(&self.inner);
        let work = tokio::task::spawn_blocking(move || work(&inner));
        work.await.map_err(StoreError::new)?
    }
}

impl Inner {
    /// Registers this server before other servers can read of a task of it. The first call also
    /// marks the tasks of ended servers as lost.
    fn register(&self) -> Result<(), StoreError> {
        let mut runner = sync::lock(&self.runner);
        if runner.is_none() {
            *runner = Some(
                self.registry
                    .register(&self.name)
                    .map_err(StoreError::new)?,
            );
            for gone in self.registry.ended_servers() {
                self.fail_tasks_of(&gone)?;
            }
        }
        Ok(())
    }

    /// Returns whether a task was running on a server that is gone, and marks its tasks as lost.
    fn fail_if_server_ended(&self, task: &StoredTask) -> Result<bool, StoreError> {
        let is_lost = !task.status.is_terminal()
            && task.runner != self.name
            && !self.registry.is_running(&task.runner);
        if is_lost {
            self.fail_tasks_of(&task.runner)?;
        }
        Ok(is_lost)
    }

    fn fail_tasks_of(&self, runner: &str) -> Result<(), StoreError> {
        let error = ErrorObject::internal_error("the server stopped before the run ended");
        let error = to_raw_value(&error).map_err(StoreError::new)?;
        let lost = self.database.fail_tasks_of(runner, &error, now());
        lost.map_err(StoreError::new)?;
        self.registry.remove(runner);
        Ok(())
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
