//! Handler of `tools/call`: finds the tool, and calls it or creates a task.

use std::borrow::Cow;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{CallToolRequestParams, CallToolResult, Interactive};
use mcpd_protocol::{Params, Wire};
use mcpd_scriptspec::{Severity, TaskSupport};
use serde_json::value::RawValue;

use crate::catalog::Catalog;
use crate::catalog::tool::Tool;
use crate::client::request::context::Context;
use crate::execution::input_rounds::{REPLACED, Resumption};
use crate::message::call::{CallEnding, CallFuture, InnerCall};
use crate::message::reply::Handled;
use crate::policy::principal::Principal;
use crate::server::Server;
use crate::tools::background_tools::{self, UnknownStartedTool};
use crate::tools::search;
use crate::tools::tasks;

/// Calls a tool. Every failure in the tool, including faulty arguments, is a result; only a call
/// that names no tool is an error. "Errors that originate from the tool SHOULD be reported inside
/// the result object" -- 2026-07-28/server/tools#error-handling
pub(crate) fn call(
    server: &Server,
    params: &Params<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let (sent, params) = params.split_object("arguments");
    let params: CallToolRequestParams = context.parse(&params)?;
    let catalog = server.catalog_for(&context.peer.principal);
    let tool = catalog.tool(&params.name).ok_or_else(|| {
        let whole = server.catalog();
        let there = whole.tool(&params.name);
        if let Some(tool) = there {
            set_tool(tool, sent, server, &context);
        }
        let unknown = ErrorObject::invalid_params(
            fault_for(&context, &whole, &params.name)
                .unwrap_or_else(|| describe_unknown(&whole, &params.name)),
        );
        context.refuse(there.map(|tool| tool.path()), "unknown-tool", unknown)
    })?;
    let arguments = sent.map(|sent| match tool.restore_names(sent) {
        Some(restored) => Cow::Owned(restored),
        None => Cow::Borrowed(sent),
    });
    set_tool(tool, arguments.as_deref(), server, &context);
    // The stateful wire repeats no arguments in headers.
    if let Some(headers) = &context.peer.parameters
        && context.version.wire() == Wire::Stateless
    {
        tool.check_headers(headers, arguments.as_deref())?;
    }
    let resumption = Resumption {
        responses: params.input_responses,
        state: params.request_state,
    };
    let support = tool.task_support();
    let knows_tasks = support != TaskSupport::Never && tasks::is_supported_by(&context);
    let run = match server.tasks() {
        Some(_) if support == TaskSupport::Required && !knows_tasks => {
            return needs_tasks(&context);
        }
        Some(tasks) if knows_tasks => {
            let call = tasks::TaskCall {
                tool: Arc::clone(tool),
                arguments: arguments.map(Cow::into_owned),
                context: context.clone(),
            };
            let tasks = Arc::clone(tasks);
            Box::pin(tasks.call(server.call_host().clone(), call, resumption, support))
        }
        _ => {
            let call = (params.name, arguments, Arc::clone(tool));
            start(server, &context, call, resumption)
        }
    };
    Ok(Handled::later(async move {
        let result = run.await?;
        context.record.set_result(&result);
        context.encode_content(result)
    }))
}

/// Starts a call of a tool.
fn start(
    server: &Server,
    context: &Context,
    (name, arguments, tool): (String, Option<Cow<'_, RawValue>>, Arc<Tool>),
    resumption: Resumption,
) -> CallFuture {
    let is_first_round = resumption.is_empty();
    let is_elsewhere = tool
        .script()
        .is_some_and(|script| script.elsewhere().is_some());
    let host = server.call_host();
    let run = tool.call(host, arguments.as_deref(), resumption, context);
    let run = run.into_run();
    match is_first_round && is_elsewhere {
        true => Box::pin(call_newer_if_replaced(
            server.clone(),
            context.clone(),
            (name, arguments.map(Cow::into_owned), tool),
            run,
        )),
        false => run,
    }
}

/// Calls the version of a tool that is served now, if the one that was called has been replaced on
/// all machines before it ran: its arguments are checked once more.
async fn call_newer_if_replaced(
    server: Server,
    context: Context,
    (name, arguments, tool): (String, Option<Box<RawValue>>, Arc<Tool>),
    run: CallFuture,
) -> CallEnding {
    let ended = run.await;
    let is_replaced = matches!(
        &ended,
        Ok(Interactive::Complete(result)) if result.meta.other.contains_key(REPLACED)
    );
    let catalog = server.catalog_for(&context.peer.principal);
    let newer = catalog.tool(&name).filter(|_| is_replaced);
    let Some(newer) = newer.filter(|newer| !Arc::ptr_eq(newer, &tool)) else {
        return ended;
    };
    let restored = arguments
        .as_deref()
        .and_then(|arguments| newer.restore_names(arguments));
    let arguments = restored.or(arguments);
    set_tool(newer, arguments.as_deref(), &server, &context);
    let again = newer.call(
        server.call_host(),
        arguments.as_deref(),
        Resumption::default(),
        &context,
    );
    again.into_run().await
}

fn describe_unknown(catalog: &Catalog, name: &str) -> String {
    let see = match catalog.has_search() {
        true => "find tools with `search_tools`",
        false => "see tools/list",
    };
    format!("unknown tool `{name}`; {see}")
}

/// Returns the call that this one stands for, if it is one of `call_tool`.
pub(crate) fn read_inner_call(
    server: &Server,
    params: &Params<'_>,
    context: &Context,
) -> Option<InnerCall> {
    let catalog = server.catalog();
    if !catalog.has_search() {
        return None;
    }
    let (arguments, params) = params.split_object("arguments");
    let params: CallToolRequestParams = context.parse(&params).ok()?;
    let tool = catalog.tool(&params.name)?;
    tool.read_inner_call(arguments)
}

/// Describes a tool that exists but is faulty to a caller on this machine, so that a model does
/// not take it for deleted. Remote callers learn nothing about the files of this machine.
fn fault_for(context: &Context, catalog: &Catalog, name: &str) -> Option<String> {
    if context.peer.principal != Principal::local() {
        return None;
    }
    let script = catalog.faulty_script(name)?;
    let access = context.peer.principal.access();
    if access.is_some_and(|access| !access.allows(&script.path)) {
        return None;
    }
    let mut faults = script.diagnostics.iter();
    let fault = faults.find(|fault| fault.severity == Severity::Error)?;
    Some(format!(
        "the tool `{}` is not served because it is faulty: {}; the operator can get details with `mcpd check {}`",
        script.path,
        fault.message,
        script.file.display()
    ))
}

/// Records the called tool, and the spec of its arguments: that of the tool, or of the tool that
/// the call is to start.
fn set_tool(tool: &Tool, arguments: Option<&RawValue>, server: &Server, context: &Context) {
    let record = &context.record;
    if search::is_call_tool(tool) {
        // A faulty call: no tool declares which of its arguments are secret.
        return record.set_tool_for_unknown(tool.path());
    }
    let Some(started) = background_tools::started_tools(tool, arguments) else {
        return record.set_tool(tool.path(), tool.script().map(|script| &script.spec));
    };
    match started.secret_spec(&server.catalog()) {
        Ok(spec) => record.set_tool(tool.path(), spec),
        Err(UnknownStartedTool) => record.set_tool_for_unknown(tool.path()),
    }
}

/// Refuses a tool that runs as a task only. "If a server is unable to service a request to a
/// client that does not declare this extension capability without returning `CreateTaskResult`,
/// the server MUST return an error with the code `-32021`" -- SEP-2663
fn needs_tasks(context: &Context) -> Result<Handled, ErrorObject> {
    match context.version.wire() {
        Wire::Stateless => Err(ErrorObject::missing_required_client_capability(
            &tasks::capability(),
        )),
        // That wire has no such error; the model can at least try another way.
        Wire::Stateful => {
            let result = CallToolResult::error(
                "This tool runs only as a task, and this client does not support tasks. If there is a tool `runs_start`, use that to start it.",
            );
            let result = result.into();
            context.record.set_result(&result);
            Ok(Handled::Now(context.encode(result)))
        }
    }
}
