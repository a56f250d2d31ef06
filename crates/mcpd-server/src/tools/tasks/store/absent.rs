//! Stub of the task storage for builds without a database.

use std::convert::Infallible;
use std::time::Duration;

use mcpd_protocol::method::{InputRequests, InputResponses, TaskStatus};
use serde_json::value::RawValue;

use super::{StoredTask, TaskRequest};

/// Cannot be constructed.
#[derive(Debug)]
pub(crate) struct TaskStore(Infallible);

impl TaskStore {
    pub(super) fn new_task(&self, _: &str, _: &str, _: Duration) -> StoredTask {
        match self.0 {}
    }

    pub(super) async fn add(&self, _: StoredTask) -> Result<bool, Infallible> {
        match self.0 {}
    }

    pub(super) async fn task(&self, _: &str, _: &str) -> Result<Option<StoredTask>, Infallible> {
        match self.0 {}
    }

    pub(super) async fn tasks(&self, _: &str) -> Result<Vec<StoredTask>, Infallible> {
        match self.0 {}
    }

    pub(super) async fn store_questions(
        &self,
        _: &str,
        _: InputRequests,
    ) -> Result<(), Infallible> {
        match self.0 {}
    }

    pub(super) async fn store_answers(&self, _: &str, _: InputResponses) -> Result<(), Infallible> {
        match self.0 {}
    }

    pub(super) async fn request_cancel(&self, _: &str) -> Result<(), Infallible> {
        match self.0 {}
    }

    pub(super) async fn store_ending(
        &self,
        _: &str,
        _: TaskStatus,
        _: Option<Box<RawValue>>,
    ) -> Result<(), Infallible> {
        match self.0 {}
    }

    pub(super) async fn take_requests(&self) -> Result<Vec<(String, TaskRequest)>, Infallible> {
        match self.0 {}
    }
}
