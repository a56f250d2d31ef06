//! Store of tasks in the database of this machine, off the async workers, and recovery of tasks
//! whose server is gone.

use std::sync::{Arc, Mutex};

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{InputRequests, InputResponses, TaskStatus};
use serde_json::value::{RawValue, to_raw_value};

use super::{Answer, Store, StoreError, StoredTask, TaskKey, TaskRequest, now};
use crate::database::Database;
use crate::support::random_id;
use crate::support::sync;
use crate::tools::tasks::server_registry::{ServerRegistration, ServerRegistry};

/// Store of tasks in a database, shared by all clones.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseStore {
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

impl DatabaseStore {
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

    /// Does blocking work with the database.
    fn answer<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<R, StoreError> + Send + 'static,
    ) -> Answer<'static, R> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let work = tokio::task::spawn_blocking(move || work(&inner));
            work.await.map_err(StoreError::new)?
        })
    }
}

impl Store for DatabaseStore {
    fn runner(&self) -> &str {
        &self.inner.name
    }

    fn add(&self, task: StoredTask) -> Answer<'_, bool> {
        self.answer(move |inner| {
            inner.register()?;
            inner.database.add_task(&task).map_err(StoreError::new)
        })
    }

    fn task(&self, key: TaskKey) -> Answer<'_, Option<StoredTask>> {
        self.answer(move |inner| {
            let read = || inner.database.task(&key.id, &key.owner, now());
            let task = read().map_err(StoreError::new)?;
            match task {
                Some(task) if inner.fail_if_server_ended(&task)? => read().map_err(StoreError::new),
                task => Ok(task),
            }
        })
    }

    fn tasks(&self, owner: &str) -> Answer<'_, Vec<StoredTask>> {
        let owner = owner.to_owned();
        self.answer(move |inner| {
            let read = || inner.database.tasks(&owner, now()).map_err(StoreError::new);
            let tasks = read()?;
            let mut any_is_lost = false;
            for task in &tasks {
                any_is_lost |= inner.fail_if_server_ended(task)?;
            }
            if any_is_lost { read() } else { Ok(tasks) }
        })
    }

    fn store_questions(
        &self,
        key: TaskKey,
        questions: InputRequests,
        _: Option<String>,
    ) -> Answer<'_, ()> {
        self.answer(move |inner| {
            let asked = inner.database.store_questions(&key.id, &questions, now());
            asked.map_err(StoreError::new)
        })
    }

    fn store_answers(&self, key: TaskKey, responses: InputResponses) -> Answer<'_, ()> {
        self.answer(move |inner| {
            let answered = inner.database.store_answers(&key.id, &responses, now());
            answered.map_err(StoreError::new)
        })
    }

    fn request_cancel(&self, key: TaskKey) -> Answer<'_, ()> {
        self.answer(move |inner| {
            let requested = inner.database.request_cancel(&key.id);
            requested.map_err(StoreError::new)
        })
    }

    fn store_ending(
        &self,
        key: TaskKey,
        status: TaskStatus,
        detail: Option<Box<RawValue>>,
    ) -> Answer<'_, ()> {
        self.answer(move |inner| {
            let ended = inner
                .database
                .end_task(&key.id, status, detail.as_deref(), now());
            ended.map_err(StoreError::new)
        })
    }

    fn take_requests(&self) -> Answer<'_, Vec<(String, TaskRequest)>> {
        self.answer(|inner| {
            inner
                .database
                .take_requests(&inner.name)
                .map_err(StoreError::new)
        })
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
