//! Running tasks of all owners, for operators of the server.

use mcpd_protocol::jsonrpc::ErrorObject;

use super::store::TaskKey;
use super::{Tasks, database_error};
use crate::support::sync::lock;

/// Task that runs on a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BackgroundTask {
    /// Its id, with which its owner may fetch the result.
    pub id: String,
    /// Name of its caller.
    pub owner: String,
    /// Path of its tool.
    pub tool: String,
    /// Time of its beginning, in milliseconds since 1970.
    pub created_at: i64,
    /// Last progress message.
    pub progress: Option<String>,
    /// Log so far.
    pub log: String,
}

impl Tasks {
    /// Lists the tasks that run here, of all owners.
    pub(crate) fn running(&self) -> Vec<BackgroundTask> {
        let state = lock(&self.state);
        let running = state.running.iter();
        running
            .map(|(id, task)| BackgroundTask {
                id: id.clone(),
                owner: task.owner.clone(),
                tool: task.tool.clone(),
                created_at: task.created_at,
                progress: task.messages.progress(),
                log: task.messages.text(),
            })
            .collect()
    }

    /// Cancels the task `id` of any owner, if it runs here, and returns it.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be written.
    pub(crate) async fn cancel_any(&self, id: &str) -> Result<Option<BackgroundTask>, ErrorObject> {
        let task = self.running().into_iter().find(|task| task.id == id);
        if let Some(task) = &task {
            let key = TaskKey::new(id, &*task.owner);
            let cancelled = self.store.request_cancel(key).await;
            cancelled.map_err(|error| database_error(&error))?;
            self.requested.notify_one();
        }
        Ok(task)
    }
}
