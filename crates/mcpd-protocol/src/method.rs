//! Methods of both wires: a name, its parameters and its result, one file per category of the
//! official schema. Their behaviour is the server's business.

mod cancelled;
mod completion;
mod discover;
mod initialize;
mod input;
mod logging;
mod pagination;
mod ping;
mod progress;
mod prompts;
mod resources;
mod skills;
mod subscriptions;
mod tasks;
mod tools;

pub use cancelled::{CancelledNotification, CancelledNotificationParams};
pub use completion::{
    CompleteRequest, CompleteRequestParams, CompleteResult, Completion, CompletionArgument,
    CompletionContext, CompletionReference,
};
pub use discover::{DiscoverRequest, DiscoverResult};
pub use initialize::{
    InitializeRequest, InitializeRequestParams, InitializeResult, InitializedNotification,
};
pub use input::{
    InputMethod, InputRequest, InputRequests, InputRequiredResult, InputResponses, Interactive,
};
pub use logging::{
    LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParams, SetLevelRequest,
    SetLevelRequestParams,
};
pub use pagination::PaginatedRequestParams;
pub use ping::PingRequest;
pub use progress::{ProgressNotification, ProgressNotificationParams};
pub use prompts::{
    GetPromptRequest, GetPromptRequestParams, GetPromptResult, ListPromptsRequest,
    ListPromptsResult, Prompt, PromptArgument, PromptListChangedNotification, PromptMessage,
};
pub use resources::{
    ListResourceTemplatesRequest, ListResourceTemplatesResult, ListResourcesRequest,
    ListResourcesResult, ReadResourceRequest, ReadResourceRequestParams, ReadResourceResult,
    Resource, ResourceListChangedNotification, ResourceRequestParams, ResourceTemplate,
    ResourceUpdatedNotification, ResourceUpdatedNotificationParams, SubscribeRequest,
    UnsubscribeRequest,
};
pub use skills::{
    GetSkillRequest, GetSkillRequestParams, GetSkillResult, ListSkillsRequest, ListSkillsResult,
    SKILLS_EXTENSION, Skill, SkillResource,
};
pub use subscriptions::{
    SubscriptionFilter, SubscriptionsAcknowledgedNotification,
    SubscriptionsAcknowledgedNotificationParams, SubscriptionsListenRequest,
    SubscriptionsListenRequestParams,
};
pub use tasks::{
    CancelTaskRequest, CreateTaskResult, DetailedTask, GetTaskRequest, TASKS_EXTENSION, Task,
    TaskRequestParams, TaskStatus, TaskStatusNotification, UpdateTaskRequest,
    UpdateTaskRequestParams,
};
pub use tools::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ListToolsRequest, ListToolsResult,
    Tool, ToolAnnotations, ToolListChangedNotification,
};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::meta::{Meta, ResultMeta};
use crate::stamp::{ResultObject, ResultType, stamped};

/// Request of a client, as a type: `<ListToolsRequest as Method>::Result`.
pub trait Method {
    /// The `method` member.
    const NAME: &'static str;
    /// The `params` member.
    type Params: Serialize + DeserializeOwned;
    /// The `result` member.
    type Result: ResultObject + DeserializeOwned;
}

/// Notification of either side, as a type.
pub trait NotificationMethod {
    /// The `method` member.
    const NAME: &'static str;
    /// The `params` member.
    type Params: Serialize + DeserializeOwned;
}

/// Parameters that consist of `_meta` alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequestParams {
    /// Request metadata; read it with [`RequestMeta`](crate::meta::RequestMeta).
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<RawValue>>,
}

/// Parameters of a notification that has no content but its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotificationParams {
    /// Metadata; with [`SUBSCRIPTION_ID`](crate::meta::SUBSCRIPTION_ID) when it belongs to a
    /// subscription.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

impl From<Meta> for NotificationParams {
    fn from(meta: Meta) -> Self {
        Self { meta: Some(meta) }
    }
}

/// Result without content: exactly `{}` on the stateful wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EmptyResult {
    /// Kind of result; stateless wire only.
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

stamped!(EmptyResult);

/// Declares a request type with its method, parameters and result. The type itself is never built.
macro_rules! request {
    ($(#[$doc:meta])* $name:ident, $method:literal, $params:ty => $result:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[non_exhaustive]
        pub struct $name;

        impl $crate::method::Method for $name {
            const NAME: &'static str = $method;
            type Params = $params;
            type Result = $result;
        }
    };
}
pub(crate) use request;

/// Declares a notification type with its method and parameters.
macro_rules! notification {
    ($(#[$doc:meta])* $name:ident, $method:literal, $params:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[non_exhaustive]
        pub struct $name;

        impl $crate::method::NotificationMethod for $name {
            const NAME: &'static str = $method;
            type Params = $params;
        }
    };
}
pub(crate) use notification;
