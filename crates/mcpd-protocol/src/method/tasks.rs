//! Tasks: calls that continue after their request is answered. An extension of the stateless wire,
//! SEP-2663; the experimental tasks of 2025-11-25 were something else.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::input::{InputRequests, InputResponses};
use super::{EmptyResult, notification, request};
use crate::jsonrpc::ErrorObject;
use crate::meta::ResultMeta;
use crate::stamp::{ResultType, stamped};

/// Id of the extension, which both sides declare.
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
    /// `tasks/cancel`. Its result acknowledges the request; the task may still complete.
    CancelTaskRequest, "tasks/cancel", TaskRequestParams => EmptyResult
}

notification! {
    /// `notifications/tasks`, on a subscription only.
    TaskStatusNotification, "notifications/tasks", DetailedTask
}

/// Status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the schema closes this set")]
pub enum TaskStatus {
    /// Running.
    Working,
    /// Waiting for answers.
    InputRequired,
    /// Ended with a result, which may report a failure of the tool.
    Completed,
    /// Ended with an error in place of a result.
    Failed,
    /// Ended at the request of its client.
    Cancelled,
}

impl TaskStatus {
    /// Returns whether the status is final.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// Common members of every description of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// Id by which requests name it.
    pub task_id: String,
    /// Status.
    pub status: TaskStatus,
    /// Status in words for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// Time of creation in ISO 8601.
    pub created_at: String,
    /// Time of the last change of status in ISO 8601.
    pub last_updated_at: String,
    /// Retention in milliseconds since creation. `None` means unlimited.
    pub ttl_ms: Option<u64>,
    /// Suggested pause between two polls, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_interval_ms: Option<u64>,
}

/// Result that stands for a later one: the call has become a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateTaskResult {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// Always [`ResultType::TASK`] on the stateless wire, the only one that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata.
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

/// Task with its outcome: the result of `tasks/get`, and the content of `notifications/tasks`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DetailedTask {
    /// The task and its status.
    #[serde(flatten)]
    pub task: Task,
    /// Open questions, while it waits for answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_requests: Option<InputRequests>,
    /// Result that the request would have had, once completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// Error that the request would have had, if failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    /// Kind of result; absent in a notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    /// Metadata; in a notification with [`SUBSCRIPTION_ID`](crate::meta::SUBSCRIPTION_ID).
    #[serde(
        rename = "_meta",
        default,
        skip_serializing_if = "ResultMeta::is_empty"
    )]
    pub meta: ResultMeta,
}

stamped!(CreateTaskResult, DetailedTask);

/// Parameters of a request that only names a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskRequestParams {
    /// Id of the task.
    pub task_id: String,
    /// Request metadata; read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// Answers for a task, to all of its questions or to some.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct UpdateTaskRequestParams {
    /// Id of the task.
    pub task_id: String,
    /// Answers by the name of the question.
    pub input_responses: InputResponses,
    /// Request metadata; read it with [`Params`](crate::Params).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

impl Task {
    /// Makes a task without a status message.
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
    fn task_is_flat_in_its_result_with_an_explicit_endless_ttl() {
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
    fn outcome_of_a_task_is_kept_verbatim() {
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
