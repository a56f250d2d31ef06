//! Handlers of `tasks/get`, `tasks/update` and `tasks/cancel`, for clients that have declared
//! support for tasks.

use std::sync::Arc;

use mcpd_protocol::Method as _;
use mcpd_protocol::Params;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{
    CancelTaskRequest, EmptyResult, GetTaskRequest, TaskRequestParams, UpdateTaskRequest,
    UpdateTaskRequestParams,
};

use crate::client::request::context::Context;
use crate::execution::input_rounds;
use crate::message::reply::Handled;
use crate::server::Server;
use crate::tools::tasks::{self, Tasks};

/// Returns the state of a task, and its result when it is over.
pub(crate) fn get(
    server: &Server,
    params: &Params<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let tasks = require_tasks(server, GetTaskRequest::NAME, &context)?;
    let params: TaskRequestParams = params.parse()?;
    Ok(Handled::later(async move {
        let task = tasks.get(&params.task_id, &context.peer.principal).await?;
        context.encode(task.ok_or_else(tasks::unknown_task_error)?)
    }))
}

/// Accepts answers to the questions of a task.
pub(crate) fn update(
    server: &Server,
    params: &Params<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let tasks = require_tasks(server, UpdateTaskRequest::NAME, &context)?;
    let params: UpdateTaskRequestParams = params.parse()?;
    Ok(Handled::later(async move {
        let (id, responses) = (params.task_id, params.input_responses);
        tasks
            .answer(&id, &context.peer.principal, responses)
            .await?;
        context.encode(EmptyResult::default())
    }))
}

/// Requests the cancellation of a task.
pub(crate) fn cancel(
    server: &Server,
    params: &Params<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let tasks = require_tasks(server, CancelTaskRequest::NAME, &context)?;
    let params: TaskRequestParams = params.parse()?;
    Ok(Handled::later(async move {
        tasks
            .cancel(&params.task_id, &context.peer.principal)
            .await?;
        context.encode(EmptyResult::default())
    }))
}

/// Returns the tasks of the server, if it has any and the client supports them.
///
/// # Errors
///
/// `-32601` or `-32021`.
fn require_tasks(
    server: &Server,
    method: &str,
    context: &Context,
) -> Result<Arc<Tasks>, ErrorObject> {
    let tasks = server.tasks().cloned();
    let tasks = tasks.ok_or_else(|| ErrorObject::method_not_found(method))?;
    input_rounds::require_capabilities(&context.capabilities, &tasks::capability())?;
    Ok(tasks)
}
