//! Without a database there are no tasks.

use std::convert::Infallible;
use std::time::Duration;

use mcpd_protocol::{InputRequests, InputResponses, TaskStatus};
use serde_json::value::RawValue;

/// There is none.
#[derive(Debug)]
pub(crate) struct Store(Infallible);

/// A task as it would be stored.
#[derive(Debug, Clone)]
pub(crate) struct StoredTask {
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) status: TaskStatus,
    pub(crate) detail: Option<Box<RawValue>>,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) expires_at: i64,
}

/// What the owner of a task would want of it.
#[derive(Debug)]
#[expect(dead_code, reason = "nobody ever wants it")]
pub(crate) enum Wish {
    Cancel,
    Answers(InputResponses),
}

impl Store {
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

    pub(super) async fn ask(&self, _: &str, _: InputRequests) -> Result<(), Infallible> {
        match self.0 {}
    }

    pub(super) async fn answer(&self, _: &str, _: InputResponses) -> Result<(), Infallible> {
        match self.0 {}
    }

    pub(super) async fn cancel(&self, _: &str) -> Result<(), Infallible> {
        match self.0 {}
    }

    pub(super) async fn end(
        &self,
        _: &str,
        _: TaskStatus,
        _: Option<Box<RawValue>>,
    ) -> Result<(), Infallible> {
        match self.0 {}
    }

    pub(super) async fn wishes(&self) -> Result<Vec<(String, Wish)>, Infallible> {
        match self.0 {}
    }
}
