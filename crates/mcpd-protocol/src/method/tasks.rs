//! Tasks: calls that go on after their request is answered. An extension of the stateless wire,
//! SEP-2663; the experimental tasks of 2025-11-25 were something else.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::input::{InputRequests, InputResponses};
use super::{EmptyResult, notification, request};
use crate::jsonrpc::ErrorObject;
use crate::meta::ResultMeta;
use crate::stamp::{ResultType, stamped};

/// The id of the extension, which both sides declare.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

request! {
    /// `tasks/get`.
    GetTaskRequest, "tasks/get", TaskRequestParams => DetailedTask
}

request! {
    /// `tasks/update`: answers to the questions of a task.
    UpdateTaskRequest, "tasks/update", UpdateTaskRequestParams => EmptyResult
}

request! {
    /// `tasks/cancel`. Its result says that the wish was heard, not that it is fulfilled.
    CancelTaskRequest, "tasks/cancel", TaskRequestParams => EmptyResult
}

notification! {
    /// `notifications/tasks`, on a subscription alone.
    TaskStatusNotification, "notifications/tasks", DetailedTask
}

/// How a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the schema closes this set")]
pub enum TaskStatus {
    /// It runs.
    Working,
    /// It waits for answers.
    InputRequired,
    /// There is a result, which may tell of a failure of the tool.
    Completed,
    /// There is an error in place of a result.
    Failed,
    /// It was ended at the wish of its client.
    Cancelled,
}

impl TaskStatus {
    /// Whether nothing changes any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// What is said of a task wherever there is talk of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// What requests name it by.
    pub task_id: String,
    /// How it is doing.
    pub status: TaskStatus,
    /// The same for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// When it was made, as ISO 8601 has it.
    pub created_at: String,
    /// When its status last changed, likewise.
    pub last_updated_at: String,
    /// How long it can be asked for, in milliseconds since it was made. `None` has no end.
    pub ttl_ms: Option<u64>,
    /// How long to wait between two questions after it, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
}

/// The result that promises another: the call has become a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// Which one.
    #[serde(flatten)]
    pub task: Task,
    /// Always [`ResultType::TASK`] on the stateless wire, the only one it is sent on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Beside the payload.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// A task and what it has come to: the result of `tasks/get`, and what `notifications/tasks` carries.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DetailedTask {
    /// Which one, and how it is doing.
    #[serde(flatten)]
    pub task: Task,
    /// The questions that are open, while it waits for answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// What the request would have been answered with, once it is completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// The same, if it has failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// In a result only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Beside the payload; in a notification with [`SUBSCRIPTION_ID`](crate::meta::SUBSCRIPTION_ID).
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

stamped!(CreateTaskResult, DetailedTask);

/// The parameters of a request that names a task and no more.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskRequestParams {
    /// Which one.
    pub task_id: String,
    /// Read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// Answers for a task, to all of its questions or to some.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskRequestParams {
    /// Which one.
    pub task_id: String,
    /// By the name of the question.
    pub input_responses: InputResponses,
    /// Read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl Task {
    /// A task without anything said for people.
    pub fn new(
        task_id: impl Into<String>,
        status: TaskStatus,
        created_at: String,
        last_updated_at: String,
        ttl_ms: Option<u64>,
    ) -> Self {
        Self {
            task_id: task_id.into(),
            status,
            status_message: None,
            created_at,
            last_updated_at,
            ttl_ms,
            poll_interval_ms: None,
        }
    }
}

impl From<Task> for CreateTaskResult {
    fn from(task: Task) -> Self {
        Self {
            task,
            result_type: Some(ResultType::TASK),
            meta: ResultMeta::default(),
        }
    }
}

impl From<Task> for DetailedTask {
    fn from(task: Task) -> Self {
        Self {
            task,
            input_requests: None,
            result: None,
            error: None,
            result_type: None,
            meta: ResultMeta::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(status: TaskStatus) -> Task {
        let time = || "2026-11-22T08:00:00Z".to_owned();
        Task::new("t", status, time(), time(), None)
    }

    #[test]
    fn a_task_lies_flat_in_its_result_and_a_ttl_without_end_is_said() {
        let result = CreateTaskResult::from(task(TaskStatus::Working));
        let expected = json!({
            "taskId": "t",
            "status": "working",
            "createdAt": "2026-11-22T08:00:00Z",
            "lastUpdatedAt": "2026-11-22T08:00:00Z",
            "ttlMs": null,
            "resultType": "task",
        });
        assert_eq!(serde_json::to_value(&result).unwrap(), expected);
        let read: CreateTaskResult = serde_json::from_value(expected).unwrap();
        assert_eq!(read, result);
    }

    #[test]
    fn what_a_task_has_come_to_is_kept_as_it_is() {
        let mut detailed = DetailedTask::from(task(TaskStatus::Completed));
        let result = r#"{"content":[],"n":1.50}"#;
        detailed.result = Some(RawValue::from_string(result.to_owned()).unwrap());
        let text = serde_json::to_string(&detailed).unwrap();
        assert!(text.ends_with(&format!(r#""result":{result}}}"#)), "{text}");
        let read: DetailedTask = serde_json::from_str(&text).unwrap();
        assert_eq!(read.result.unwrap().get(), result);
        assert!(read.error.is_none() && read.input_requests.is_none());
    }
}
