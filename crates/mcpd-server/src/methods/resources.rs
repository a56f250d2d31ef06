//! Handler of `resources/read`: the state of a script, the output of a script or of an earlier run,
//! a file, a built-in resource, or one of a source.

use std::sync::Arc;

use mcpd_exec::Outcome;
use mcpd_protocol::Method as _;
use mcpd_protocol::Params;
use mcpd_protocol::Wire;
use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use mcpd_protocol::meta::Meta;
use mcpd_protocol::method::{
    Interactive, ReadResourceRequest, ReadResourceRequestParams, ReadResourceResult,
};
use mcpd_scriptspec::{ScriptPath, ScriptSpec};
use serde_json::value::RawValue;

use crate::catalog::handler::{EntryBody, ResourceHandler, convert_error};
use crate::catalog::{Catalog, ContentSource, ReadError, StaticFile};
use crate::client::request::context::Context;
use crate::execution::archive::{self, ArchivedOutput};
use crate::execution::call::ScriptCall;
use crate::execution::elsewhere;
use crate::execution::engine::Engine;
use crate::execution::for_front::MAX_STATE_BYTES;
use crate::execution::input_rounds::Resumption;
use crate::execution::output;
use crate::execution::permit;
use crate::execution::run::{self, Job, Purpose};
use crate::limits::memory_budget;
use crate::message::arguments::text_arguments;
use crate::message::raw::raw;
use crate::message::reply::{Handled, MethodResult};
use crate::observe::ending::{Exit, RunError};
use crate::policy::access::Defaults;
use crate::remote::{KeptOutput, NotRun, Question};
use crate::script::{Launch, Script};
use crate::server::Server;

/// Reads a resource, listed or made from a template.
pub(crate) fn read(
    server: &Server,
    params: &Params<'_>,
    context: Context,
) -> Result<Handled, ErrorObject> {
    let params: ReadResourceRequestParams = context.parse(params)?;
    if let Some(output) = server.engine().archive.find(
        &params.uri,
        &context.peer.principal,
        context.introduced_session(),
    ) {
        return Ok(read_output(server, output, params.uri, context));
    }
    if let Some(output) = archive::kept_elsewhere(&params.uri, &context.peer.principal) {
        return Ok(read_elsewhere(server, output, params.uri, context));
    }
    let catalog = server.catalog_for(&context.peer.principal);
    if let Some(resource) = catalog.resource(&params.uri) {
        return match resource.source() {
            ContentSource::State(script) => Ok(read_state(server, script, params.uri, context)),
            ContentSource::Script(script) => run_script(server, script, None, params, context),
            ContentSource::File(file) => {
                let mime_type = resource.definition().mime_type.clone();
                let form = (mime_type, resource.definition().meta.clone());
                let file = Arc::clone(file);
                Ok(read_file(server, file, form, params.uri, context))
            }
            ContentSource::Function(handler) => {
                if !handler.is_built_in() {
                    context.record.set_tool(handler.path(), None);
                }
                Ok(call_handler(server, handler, params.uri, context))
            }
        };
    }
    let Some((template, values)) = catalog.template_of(&params.uri) else {
        let wire = context.version.wire();
        let unknown = ErrorObject::resource_not_found(&params.uri, wire);
        let whole = server.catalog();
        return Err(match producer_of(&whole, &params.uri) {
            Some((path, spec)) => {
                context.record.set_tool(path, spec);
                if whole.resource(&params.uri).is_none() {
                    context.record.mark_uri_as_made();
                }
                context.refuse(Some(path), "denied", unknown)
            }
            // Static resources run nothing, so they are not recorded.
            None => match whole.resource(&params.uri) {
                Some(there) => context.refuse(Some(there.path()), "denied", unknown),
                None => unknown,
            },
        });
    };
    context.record.mark_uri_as_made();
    let arguments = raw(&text_arguments(values));
    match template.body() {
        EntryBody::Script(script) => run_script(server, script, Some(&arguments), params, context),
        EntryBody::Function(handler) => {
            context.record.set_tool(handler.path(), None);
            context
                .judge(handler.path(), Some(&arguments), None, Defaults::new)
                .map_err(ErrorObject::invalid_params)?;
            Ok(call_handler(server, handler, params.uri, context))
        }
    }
}

/// Returns the producer of the resource at `uri`, unless it is static: a script with its spec, or
/// a source.
fn producer_of<'a>(
    catalog: &'a Catalog,
    uri: &str,
) -> Option<(&'a ScriptPath, Option<&'a Arc<ScriptSpec>>)> {
    match catalog.resource(uri).map(|resource| resource.source()) {
        Some(ContentSource::State(script) | ContentSource::Script(script)) => {
            Some((&script.path, Some(&script.spec)))
        }
        Some(ContentSource::Function(handler)) if !handler.is_built_in() => {
            Some((handler.path(), None))
        }
        Some(ContentSource::File(_) | ContentSource::Function(_)) => None,
        None => {
            let body = catalog.template_of(uri)?.0.body();
            Some((body.path(), body.spec()))
        }
    }
}

/// Runs the script behind a resource. Invalid variables are reported in full: the resource could
/// exist, and the caller can correct the URI.
fn run_script(
    server: &Server,
    script: &Arc<Script>,
    arguments: Option<&RawValue>,
    params: ReadResourceRequestParams,
    context: Context,
) -> Result<Handled, ErrorObject> {
    context.record.set_tool(&script.path, Some(&script.spec));
    context
        .judge(&script.path, arguments, Some(&script.spec), || {
            script.defaults()
        })
        .map_err(ErrorObject::invalid_params)?;
    let uri = params.uri;
    let wire = context.version.wire();
    let call = ScriptCall::new(
        server.engine(),
        script,
        ("resources/read", &uri),
        arguments,
        &context,
    )
    .map_err(|refusal| refusal.into_error(wire))?;
    let resumption = Resumption {
        responses: params.input_responses,
        state: params.request_state,
    };
    Ok(Handled::later(async move {
        let was_asked = resumption.responses.is_some() || resumption.state.is_some();
        let interpret = |script, outcome| {
            let uri = uri.clone();
            output::interpret(script, outcome, move |script, outcome| {
                output::resource(script, &uri, outcome, wire)
            })
        };
        let mut result = call.run_to_result(resumption, interpret).await?;
        if let Interactive::Complete(result) = &mut result
            && was_asked
        {
            // A cache knows the URI, not the answers: a result made from answers must not be
            // cached.
            (result.ttl_ms, result.cache_scope) = (None, None);
        }
        context.encode_content(result)
    }))
}

/// Asks a script for its state.
fn read_state(server: &Server, script: &Arc<Script>, uri: String, context: Context) -> Handled {
    context.record.set_tool(&script.path, Some(&script.spec));
    let script = script.for_caller(&context.peer.principal);
    let server = server.clone();
    Handled::later(async move {
        let script = script.for_request(&context).await;
        let script = script.map_err(ErrorObject::internal_error)?;
        let text = ask_state(&server, &script, &uri, &context).await?;
        let contents = output::contents(&uri, None, text.as_bytes());
        context.encode_content(ReadResourceResult::new(vec![contents]))
    })
}

async fn ask_state(
    server: &Server,
    script: &Script,
    uri: &str,
    context: &Context,
) -> Result<String, ErrorObject> {
    let ended = run_for_state(server.engine(), script, uri, context).await;
    let outcome = ended.map_err(|error| script.log_not_run(&error))?;
    if !outcome.success() {
        let exit = Exit::of(&outcome);
        let how = output::with_last_words(&exit, &outcome);
        tracing::warn!(script = %script.path, "`--state` failed with {how}");
        let reason = output::describe_failure_alone("`--state`", &outcome, &exit);
        return Err(state_error(script, &reason));
    }
    let whole = outcome
        .stdout
        .terminal_view()
        .whole()
        .ok_or_else(|| state_error(script, "too large"))?;
    Ok(String::from_utf8_lossy(&whole).into_owned())
}

/// Runs a script with `--state`, here or elsewhere.
async fn run_for_state(
    engine: &Arc<Engine>,
    script: &Script,
    uri: &str,
    context: &Context,
) -> Result<Outcome, RunError> {
    let job = Job::of(script, None);
    match &script.launch {
        Launch::Here(start_command) => {
            let mut limits = script.policy.limits().clone();
            limits.capture_head = limits.capture_head.max(MAX_STATE_BYTES);
            let command = script.state_command(start_command).limits(limits);
            run::run(engine, context, job, command).await
        }
        Launch::There(elsewhere) => {
            let purpose = Purpose {
                method: ReadResourceRequest::NAME,
                name: uri,
                call_id: "",
            };
            let mut request = elsewhere::request(script, elsewhere, purpose, context);
            request.question = Question::State;
            let ended = elsewhere::run(engine, context, job, elsewhere, request).await;
            ended.map(|(outcome, _)| outcome)
        }
    }
}

/// Returns the error for a state that cannot be read.
fn state_error(script: &Script, reason: &str) -> ErrorObject {
    ErrorObject::internal_error(format!(
        "failed to read the state of `{}`: {reason}",
        script.path
    ))
}

/// Reads an archived output of a script.
fn read_output(server: &Server, output: ArchivedOutput, uri: String, context: Context) -> Handled {
    let server = server.clone();
    Handled::later(async move {
        let reservation =
            permit::reserve_memory(server.engine(), &context.peer.principal, output.size()).await?;
        let (size, omitted) = (output.size(), output.omitted_bytes());
        let bytes = output.read().await.map_err(|error| {
            tracing::error!(%uri, "failed to read an output: {error}");
            ErrorObject::internal_error("the output could not be read")
        })?;
        let result = encode_output(&context, &uri, bytes, (size, omitted))?;
        Ok(memory_budget::attach_guard(result, reservation))
    })
}

/// Reads an output that a worker keeps, which any front may have asked it to run.
fn read_elsewhere(server: &Server, output: KeptOutput, uri: String, context: Context) -> Handled {
    let server = server.clone();
    Handled::later(async move {
        let failed = |error| match error {
            NotRun::Unknown => ErrorObject::resource_not_found(&uri, context.version.wire()),
            error => {
                tracing::error!(%uri, %error, "failed to read an output");
                ErrorObject::internal_error("the output could not be read")
            }
        };
        let catalog = server.catalog();
        let offers = catalog.offers().iter();
        let places: Vec<_> = offers.flat_map(|one| one.places()).cloned().collect();
        let found = elsewhere::find_kept(&places, &output).await;
        let (place, first) = found.map_err(failed)?;
        let reservation =
            permit::reserve_memory(server.engine(), &context.peer.principal, first.size).await?;
        let (size, omitted) = (first.size, first.omitted_bytes);
        let bytes = elsewhere::read_kept(&*place, &output, first).await;
        let bytes = bytes.map_err(failed)?;
        let result = encode_output(&context, &uri, bytes, (size, omitted))?;
        Ok(memory_budget::attach_guard(result, reservation))
    })
}

/// Encodes a kept output with its size and the number of bytes that were not kept.
fn encode_output(
    context: &Context,
    uri: &str,
    bytes: Vec<u8>,
    (size, omitted): (u64, u64),
) -> MethodResult {
    let mut result = ReadResourceResult::new(vec![output::media_contents(uri, None, bytes)]);
    output::note_totals(&mut result.meta, size.saturating_add(omitted), omitted);
    context.encode_content(result)
}

/// Reads a file on a thread that may block.
fn read_file(
    server: &Server,
    file: Arc<StaticFile>,
    (mime_type, meta): (Option<String>, Option<Meta>),
    uri: String,
    context: Context,
) -> Handled {
    let server = server.clone();
    Handled::later(async move {
        let reservation =
            permit::reserve_memory(server.engine(), &context.peer.principal, file.size()).await?;
        let opened = Arc::clone(&file);
        let bytes = tokio::task::spawn_blocking(move || opened.read())
            .await
            .map_err(|_| ErrorObject::internal_error("the file could not be read"))?
            .map_err(|error| {
                tracing::warn!(%file, "failed to read a file: {error}");
                read_error(&error, &uri, context.version.wire())
            })?;
        let mut contents = output::media_contents(&uri, mime_type.as_deref(), bytes);
        contents.meta = meta;
        let result = context.encode_content(ReadResourceResult::new(vec![contents]))?;
        Ok(memory_budget::attach_guard(result, reservation))
    })
}

/// Calls the function of the embedding program or of a source.
fn call_handler(
    server: &Server,
    handler: &ResourceHandler,
    uri: String,
    context: Context,
) -> Handled {
    // A built-in resource is known by its URI, one of a source by its path.
    let name = match handler.is_built_in() {
        true => uri.as_str(),
        false => handler.path().as_str(),
    };
    let named = ("resource", name);
    let result = handler.handle(server.call_host(), &context, named, uri.clone());
    Handled::later(async move {
        let result = result.await.map_err(|error| match error.code {
            // The code for a missing resource depends on the caller's wire.
            ErrorCode::RESOURCE_NOT_FOUND => {
                ErrorObject::resource_not_found(&uri, context.version.wire())
            }
            _ => convert_error(error),
        });
        context.encode_content(result?)
    })
}

/// Returns the error for a file that was not read. One that is gone or replaced is reported as
/// not found.
fn read_error(error: &ReadError, uri: &str, wire: Wire) -> ErrorObject {
    match error {
        ReadError::NotThere(_) => ErrorObject::resource_not_found(uri, wire),
        ReadError::TooLarge => {
            ErrorObject::internal_error(format!("failed to read the file: {error}"))
        }
        ReadError::Io(_) => ErrorObject::internal_error("the file could not be read"),
    }
}
