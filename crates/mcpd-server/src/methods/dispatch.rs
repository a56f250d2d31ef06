//! Request dispatch: one request, exactly one response. The table of methods per wire exists here
//! and nowhere else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use mcpd_protocol::jsonrpc::{self, ErrorObject, Request, RequestId};
use mcpd_protocol::{Params, Wire};
use serde_json::value::RawValue;

use crate::catalog::Catalog;
use crate::client::inflight::Inflight;
use crate::client::request::context::Context;
use crate::limits::admission::Rejection;
use crate::limits::memory_budget;
use crate::message::method::KnownMethod;
use crate::message::reply::{Handled, Later, MethodResult, unless_panicked};
use crate::methods::lists::list;
use crate::methods::{
    completion, lifecycle, prompts, resources, skills, subscriptions, tasks, tools,
};
use crate::observe::audit::request_log::RequestRecord;
use crate::server::Server;

/// Answer to a request that can be cancelled by its id: now, or later unless it is cancelled.
pub(crate) enum CancellableAnswer {
    Now(MethodResult),
    Later(Pin<Box<dyn Future<Output = Option<MethodResult>> + Send>>),
}

/// Answers `request` of a `method`, unless it is unknown. Excludes `initialize`, which opens a
/// session and is the transport's task.
pub(crate) fn dispatch(
    server: &Server,
    method: Option<KnownMethod>,
    request: &Request<'_>,
    params: &Params<'_>,
    mut context: Context,
) -> Handled {
    let engine = server.engine();
    // The rate limit comes before the record: a caller that exceeds it must not push the calls of
    // others out of the audit log.
    if method.is_some_and(KnownMethod::may_run_script)
        && let Err(error) = engine.admission.rate_limiter.admit(&context.peer.principal)
    {
        engine.observers.metrics.count_refusal(Rejection::Rate);
        return Handled::Now(Err(error));
    }
    let record = RequestRecord::new(&engine.observers, method, &request.id, context.origin());
    context.trace = record.span().continue_trace(context.trace);
    context.record = record;
    if method.is_some_and(KnownMethod::needs_catalog) && !server.live_catalog().is_scanned() {
        // The request may be cancelled before the catalog can say what it names.
        context.record.set_params(params);
        return wait_for_catalog(server.clone(), method, request, context);
    }
    answer_recorded(server, method, request, params, context)
}

/// Answers `request`, and reports it to the audit log, the metrics and the spans.
fn answer_recorded(
    server: &Server,
    method: Option<KnownMethod>,
    request: &Request<'_>,
    params: &Params<'_>,
    context: Context,
) -> Handled {
    let inner = match method {
        Some(KnownMethod::CallTool) => tools::read_inner_call(server, params, &context),
        _ => None,
    };
    let inner_params = inner.as_ref().map(|call| call.params(params));
    let (params, context) = match &inner_params {
        // Everything below sees the call that this one stands for, and nothing else.
        Some(inner) => (inner, context.without_parameter_headers()),
        None => (params, context),
    };
    let record = context.record.clone();
    let handled = catch_unwind(AssertUnwindSafe(|| {
        run_handler(server, method, request, params, context)
    }));
    let handled = unless_panicked(handled).unwrap_or_else(|error| Handled::Now(Err(error)));
    record.set_params(params);
    match handled {
        Handled::Now(result) => {
            server.engine().executor.note_other_work();
            record.finish(&result);
            Handled::Now(result)
        }
        Handled::Later(result) => Handled::later(async move {
            let result = match record.commit_begin().await {
                Ok(()) => record.unless_cancelled(result).await,
                Err(error) => Err(error),
            };
            record.finish(&result);
            result
        }),
    }
}

/// Answers `request`; a pending one can be cancelled through `inflight`.
///
/// # Errors
///
/// The client has too many open requests, or this id is in use.
pub(crate) fn answer(
    server: &Server,
    inflight: &Arc<Inflight>,
    request: &Request<'_>,
    params: &Params<'_>,
    context: Context,
) -> Result<CancellableAnswer, ErrorObject> {
    // The check comes before the request is recorded or counts against the rate limit.
    let method = KnownMethod::from_name(&request.method);
    if method.is_some_and(KnownMethod::may_run_script) {
        inflight.check(&request.id)?;
    }
    match dispatch(server, method, request, params, context) {
        Handled::Now(result) => Ok(CancellableAnswer::Now(result)),
        Handled::Later(result) => answer_later(inflight, &request.id, result),
    }
}

/// Lets `result` answer the request `id` when it is ready, which may be at once.
///
/// # Errors
///
/// See [`answer`].
pub(crate) fn answer_later(
    inflight: &Arc<Inflight>,
    id: &RequestId,
    mut result: Later,
) -> Result<CancellableAnswer, ErrorObject> {
    let open = inflight.begin(id)?;
    let over = if open.is_cancelled() {
        None
    } else {
        // Polled once, here: a script starts while the runtime is still waking up, and a refusal
        // costs no task.
        (&mut result).now_or_never()
    };
    Ok(match over {
        Some(result) => CancellableAnswer::Now(result),
        None => CancellableAnswer::Later(Box::pin(open.unless_cancelled(result))),
    })
}

/// Encodes a result or an error as a response.
pub(crate) fn encode(id: &RequestId, result: MethodResult) -> Bytes {
    match result {
        Ok(result) => {
            let response = jsonrpc::response_raw(id, &result);
            memory_budget::inherit_guards([result], response)
        }
        Err(error) => jsonrpc::error_response(Some(id), &error).into(),
    }
}

fn run_handler(
    server: &Server,
    method: Option<KnownMethod>,
    request: &Request<'_>,
    params: &Params<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    use KnownMethod as Known;
    let now = |result: MethodResult| Ok(Handled::Now(result));
    let unknown = || Err(ErrorObject::method_not_found(&request.method));
    let Some(method) = method else {
        return unknown();
    };
    match (context.version.wire(), method) {
        (Wire::Stateless, Known::Discover) => Ok(lifecycle::discover(server.clone(), context)),
        (Wire::Stateless, Known::ListenToChanges) => {
            subscriptions::listen(server, &request.id, params, context)
        }
        (Wire::Stateless, Known::GetTask) => tasks::get(server, params, context),
        (Wire::Stateless, Known::UpdateTask) => tasks::update(server, params, context),
        (Wire::Stateless, Known::CancelTask) => tasks::cancel(server, params, context),
        // Outside a batch `initialize` opens a session, and never comes here.
        (Wire::Stateful, Known::Initialize) => Err(ErrorObject::invalid_request(
            "`initialize` must not be part of a batch",
        )),
        (Wire::Stateful, Known::Ping) => now(Ok(lifecycle::empty())),
        (Wire::Stateful, Known::SetLevel) => now(lifecycle::set_level(params, &context)),
        (Wire::Stateful, Known::SubscribeToResource) => {
            now(subscriptions::subscribe(params, &context))
        }
        (Wire::Stateful, Known::UnsubscribeFromResource) => {
            now(subscriptions::unsubscribe(params, &context))
        }
        (_, Known::ListTools) => now(list(server, params, &context, Catalog::tools_page)),
        (_, Known::CallTool) => tools::call(server, params, context),
        (_, Known::ListPrompts) => now(list(server, params, &context, Catalog::prompts_page)),
        (_, Known::GetPrompt) => prompts::get(server, params, context),
        (_, Known::ListResources) => now(list(server, params, &context, Catalog::resources_page)),
        (_, Known::ListTemplates) => now(list(server, params, &context, Catalog::templates_page)),
        (_, Known::ListSkills) => now(list(server, params, &context, Catalog::skills_page)),
        (_, Known::GetSkill) => now(skills::get(server, params, &context)),
        (_, Known::ReadResource) => resources::read(server, params, context),
        (_, Known::Complete) => now(completion::complete(server, params, &context)),
        // Methods of one wire are unknown on the other.
        (
            Wire::Stateful,
            Known::CancelTask
            | Known::Discover
            | Known::GetTask
            | Known::ListenToChanges
            | Known::UpdateTask,
        )
        | (
            Wire::Stateless,
            Known::Initialize
            | Known::Ping
            | Known::SetLevel
            | Known::SubscribeToResource
            | Known::UnsubscribeFromResource,
        ) => unknown(),
    }
}

fn wait_for_catalog(
    server: Server,
    known: Option<KnownMethod>,
    request: &Request<'_>,
    context: Context,
) -> Handled {
    let id = request.id.clone();
    let method = request.method.clone().into_owned();
    let params = request.params.map(RawValue::to_owned);
    Handled::later(async move {
        server.catalog_ready().await;
        // The request outlives its bytes here, so it is rebuilt from owned parts.
        let request = Request::new(id, method, params.as_deref());
        let params = Params::read(request.params)?;
        match answer_recorded(&server, known, &request, &params, context) {
            Handled::Now(result) => result,
            Handled::Later(result) => result.await,
        }
    })
}
