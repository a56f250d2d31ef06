//! One request, exactly one answer. Which method belongs to which wire is written here and nowhere else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use mcpd_protocol::jsonrpc::{self, ErrorObject, Request, RequestId};
use mcpd_protocol::{
    CallToolRequest, GetPromptRequest, Method as _, Params, ReadResourceRequest, Wire,
};
use serde_json::value::RawValue;

use crate::Server;
use crate::admission::Refused;
use crate::audit::trail::Trail;
use crate::catalog::Catalog;
use crate::context::Context;
use crate::handler::lists::list;
use crate::handler::{completion, lifecycle, prompts, resources, subscriptions, tasks, tools};
use crate::inflight::Inflight;
use crate::room;

/// The methods for which something may run: they are recorded, and counted against the quota of whoever calls.
pub(crate) const CALLS: [&str; 3] = [
    CallToolRequest::NAME,
    GetPromptRequest::NAME,
    ReadResourceRequest::NAME,
];

/// The methods there are.
const METHODS: [&str; 18] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "ping",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "server/discover",
    "subscriptions/listen",
    "tasks/cancel",
    "tasks/get",
    "tasks/update",
    "tools/call",
    "tools/list",
];

/// What metrics and spans call a method that is none of them: its name is whatever somebody has sent.
pub(crate) const OTHER: &str = "_OTHER";

/// The encoded result of a method, or the error.
pub(crate) type MethodResult = Result<Bytes, ErrorObject>;

/// A result now, or a future of it; dropping the future cancels the request.
pub(crate) enum Handled {
    Now(MethodResult),
    Later(Later),
}

/// A result that takes a while.
pub(crate) type Later = Pin<Box<dyn Future<Output = MethodResult> + Send>>;

/// The answer to a request that can be cancelled by its id: now, or later unless it is.
pub(crate) enum Answer {
    Now(MethodResult),
    Later(Pin<Box<dyn Future<Output = Option<MethodResult>> + Send>>),
}

impl Handled {
    /// A result that takes a while.
    pub(crate) fn later(result: impl Future<Output = MethodResult> + Send + 'static) -> Self {
        let result = AssertUnwindSafe(result).catch_unwind();
        Self::Later(Box::pin(result.map(unless_panicked)))
    }
}

/// Answers `request`, whose parameters are `params`, except for `initialize`, which opens a session and is its
/// transport's business.
pub(crate) fn dispatch(
    server: &Server,
    request: &Request<'_>,
    params: &Params<'_>,
    mut context: Context,
) -> Handled {
    // Before it is recorded: who calls too fast must not push the calls of others out of the audit log.
    if CALLS.contains(&&*request.method)
        && let Err(error) = server.admission().pace.admit(&context.principal)
    {
        server.metrics().refused(Refused::Rate);
        return Handled::Now(Err(error));
    }
    let known = METHODS.into_iter().find(|known| *known == request.method);
    let trail = Trail::new(server, known.unwrap_or(OTHER), &request.id, &context);
    context.trace = trail.span().trace(context.trace);
    context.trail = trail;
    if needs_catalog(&request.method) && !server.catalog_is_ready() {
        // It may be given up before anybody knows what it names.
        context.trail.asks(params);
        return wait_for_catalog(server.clone(), request, context);
    }
    recorded(server, request, params, context)
}

/// Answers `request`, and has the audit log and the metrics told of it.
fn recorded(
    server: &Server,
    request: &Request<'_>,
    params: &Params<'_>,
    context: Context,
) -> Handled {
    let trail = context.trail.clone();
    let handled = catch_unwind(AssertUnwindSafe(|| {
        handle(server, request, params, context)
    }));
    let handled = unless_panicked(handled).unwrap_or_else(|error| Handled::Now(Err(error)));
    trail.asks(params);
    match handled {
        Handled::Now(result) => {
            trail.answered(&result);
            Handled::Now(result)
        }
        Handled::Later(result) => Handled::later(async move {
            let result = match trail.begun().await {
                Ok(()) => result.await,
                Err(error) => Err(error),
            };
            trail.answered(&result);
            result
        }),
    }
}

/// A handler that panics fails its own request and no other: nothing it shared is left half changed,
/// for locks are never held across what can panic.
pub(crate) fn unless_panicked<T>(
    handled: std::thread::Result<Result<T, ErrorObject>>,
) -> Result<T, ErrorObject> {
    // What it said is on stderr, by the panic hook.
    handled.unwrap_or_else(|_| {
        Err(ErrorObject::internal_error(
            "the request failed inside of the server",
        ))
    })
}

/// Answers `request`; one that takes a while can be cancelled through `inflight`.
///
/// # Errors
///
/// The client has too many requests open, or this id already.
pub(crate) fn answer(
    server: &Server,
    inflight: &Arc<Inflight>,
    request: &Request<'_>,
    params: &Params<'_>,
    context: Context,
) -> Result<Answer, ErrorObject> {
    // Before it counts as a call of its sender's, or is recorded.
    if CALLS.contains(&&*request.method) {
        inflight.check(&request.id)?;
    }
    match dispatch(server, request, params, context) {
        Handled::Now(result) => Ok(Answer::Now(result)),
        Handled::Later(result) => answer_later(inflight, &request.id, result),
    }
}

/// Has `result` answer the request `id` when it is there, which may be at once.
///
/// # Errors
///
/// As of [`answer`].
pub(crate) fn answer_later(
    inflight: &Arc<Inflight>,
    id: &RequestId,
    mut result: Later,
) -> Result<Answer, ErrorObject> {
    let open = inflight.begin(id)?;
    let over = if open.is_cancelled() {
        None
    } else {
        begin(&mut result)
    };
    Ok(match over {
        Some(result) => Answer::Now(result),
        None => Answer::Later(Box::pin(open.unless_cancelled(result))),
    })
}

/// Has it begin here: a script starts while the runtime is still waking up, and a refusal costs no task.
pub(crate) fn begin(result: &mut Later) -> Option<MethodResult> {
    result.now_or_never()
}

/// A result or an error as a response.
pub(crate) fn encode(id: &RequestId, result: MethodResult) -> Bytes {
    match result {
        Ok(result) => {
            let response = jsonrpc::response_raw(id, &result);
            room::made_of([result], response)
        }
        Err(error) => jsonrpc::error_response(Some(id), &error).into(),
    }
}

fn handle(
    server: &Server,
    request: &Request<'_>,
    params: &Params<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let now = |result: MethodResult| Ok(Handled::Now(result));
    match (context.version.wire(), &*request.method) {
        (Wire::Stateless, "server/discover") => Ok(lifecycle::discover(server.clone(), context)),
        (Wire::Stateless, "subscriptions/listen") => {
            subscriptions::listen(server, &request.id, params, context)
        }
        (Wire::Stateless, "tasks/get") => tasks::get(server, params, context),
        (Wire::Stateless, "tasks/update") => tasks::update(server, params, context),
        (Wire::Stateless, "tasks/cancel") => tasks::cancel(server, params, context),
        // Alone it opens a session, and does not come here.
        (Wire::Stateful, "initialize") => Err(ErrorObject::invalid_request(
            "`initialize` must not be part of a batch",
        )),
        (Wire::Stateful, "ping") => now(Ok(lifecycle::empty())),
        (Wire::Stateful, "logging/setLevel") => now(lifecycle::set_level(params, &context)),
        (Wire::Stateful, "resources/subscribe") => now(subscriptions::subscribe(params, &context)),
        (Wire::Stateful, "resources/unsubscribe") => {
            now(subscriptions::unsubscribe(params, &context))
        }
        (_, "tools/list") => now(list(server, params, &context, Catalog::tools_page)),
        (_, "tools/call") => tools::call(server, params, context),
        (_, "prompts/list") => now(list(server, params, &context, Catalog::prompts_page)),
        (_, "prompts/get") => prompts::get(server, params, context),
        (_, "resources/list") => now(list(server, params, &context, Catalog::resources_page)),
        (_, "resources/templates/list") => {
            now(list(server, params, &context, Catalog::templates_page))
        }
        (_, "resources/read") => resources::read(server, params, context),
        (_, "completion/complete") => now(completion::complete(server, params, &context)),
        (_, method) => Err(ErrorObject::method_not_found(method)),
    }
}

/// What is built in is known at once; everything else waits for the first look at the roots.
fn needs_catalog(method: &str) -> bool {
    ["tools/", "prompts/", "resources/", "completion/"]
        .iter()
        .any(|prefix| method.starts_with(prefix))
}

fn wait_for_catalog(server: Server, request: &Request<'_>, context: Context) -> Handled {
    let id = request.id.clone();
    let method = request.method.clone().into_owned();
    let params = request.params.map(RawValue::to_owned);
    Handled::later(async move {
        server.catalog_ready().await;
        // The request outlives its bytes here, so it is put together again from owned parts.
        let request = Request::new(id, method, params.as_deref());
        let params = Params::read(request.params)?;
        match recorded(&server, &request, &params, context) {
            Handled::Now(result) => result,
            Handled::Later(result) => result.await,
        }
    })
}
