//! Run of a script for another server, which is the front: the command is derived from the script
//! here and the arguments in the request, and runs under the policy here.

use std::sync::Arc;

use mcpd_exec::{Command, Outcome, StartError};
use mcpd_protocol::jsonrpc::RequestId;
use mcpd_protocol::{Params, ProtocolVersion};
use mcpd_scriptspec::OutputFormat;
use serde_json::json;
use serde_json::value::RawValue;

use crate::client::request::context::Context;
use crate::execution::archive;
use crate::execution::call::{SHARED_EXECUTOR_RETRY_DELAY, accepted_arguments};
use crate::execution::engine::Engine;
use crate::execution::line_tap::LineTap;
use crate::execution::output;
use crate::execution::relay::ProgramKind;
use crate::execution::run::input_files::{self, InputFiles};
use crate::execution::run::{self, Input, Job};
use crate::message::arguments::describe_faults;
use crate::message::method::KnownMethod;
use crate::message::raw::raw;
use crate::observe::audit::request_log::RequestRecord;
use crate::observe::ending::{Exit, RunError};
use crate::policy::principal::Principal;
use crate::policy::{SecretHeaders, stricter};
use crate::remote::{InputFile, NotRun, OnLine, OutputPart, Question, Request};
use crate::script::Script;
use crate::script::start_command::StartCommand;
use crate::script::version_check::VersionCheck;
use crate::support::error_chain::chain;

/// Maximum size of a state, in bytes: a truncated state would be a different one.
pub(crate) const MAX_STATE_BYTES: usize = 16 << 20;

/// Runs a script for a front. `version` tells whether it is still the one that the request names.
///
/// # Errors
///
/// See [`NotRun`].
///
/// # Cancel safety
///
/// Dropping the future ends the process and its group.
pub(crate) async fn execute(
    engine: &Arc<Engine>,
    script: &Arc<Script>,
    version: Arc<dyn VersionCheck>,
    request: Request,
    on_line: OnLine<'_>,
) -> Result<Outcome, NotRun> {
    if script.policy.sandbox().level < request.level {
        return Err(NotRun::Level);
    }
    let method = KnownMethod::from_name(&request.purpose.method)
        .filter(|method| method.may_run_script())
        .ok_or(NotRun::Version)?;
    let context = context(engine, method, &request)?;
    record(&context.record, script, &request)?;
    let begun = context.record.commit_begin().await;
    begun.map_err(|_| denied("the request cannot be recorded"))?;
    let script = &for_caller(script, &context).await?;
    let arguments = parse_arguments(&request)?;
    let (command, _files) = command(engine, script, &request, arguments.as_deref()).await?;
    let command = run::with_call(command, &request.purpose.call, &context);
    let kind = ProgramKind::of_script(script, method.name());
    let job = Job {
        version_check: Some(&version),
        ..Job::of(script, Some(kind))
    };
    let tap = request
        .lines
        .then(|| LineTap::new(kind, &script.policy, on_line));
    let ended = run::run_with_tap(engine, &context, job, command, tap.as_ref()).await;
    context.record.finish_run(ended.as_ref().ok().map(Exit::of));
    let mut outcome = ended.map_err(not_run)?;
    if script.spec.output == OutputFormat::Mcp {
        outcome = output::embed_files(script, outcome).await;
    }
    let principal = &context.peer.principal;
    archive::keep_for_front(&engine.archive, &request.run, principal, script, &outcome);
    Ok(outcome)
}

/// Creates the context of a run for a front.
fn context(
    engine: &Arc<Engine>,
    method: KnownMethod,
    request: &Request,
) -> Result<Context, NotRun> {
    if request.purpose.principal.is_empty() {
        return Err(denied("the request names no caller"));
    }
    // The front has judged how many calls the caller may have.
    let principal = Principal::unlimited(&request.purpose.principal);
    let version = ProtocolVersion::LATEST;
    let mut context = Context::for_front(
        engine.stamp(version.wire()),
        principal,
        version,
        request.trace.clone(),
        engine.stopping.child_token(),
    );
    let record = RequestRecord::new(
        &engine.observers,
        Some(method),
        &RequestId::from(&*request.run),
        context.origin(),
    );
    context.record = record;
    Ok(context)
}

/// Sets what the records say of the run.
fn record(record: &RequestRecord, script: &Arc<Script>, request: &Request) -> Result<(), NotRun> {
    record.set_tool(&script.path, Some(&script.spec));
    let digest = request.recorded_digest.as_ref().unwrap_or(&request.digest);
    record.set_run(&request.run, digest);
    if !request.purpose.call.is_empty() {
        record.set_call_id(&request.purpose.call);
    }
    let name = &request.purpose.name;
    let arguments = parse_arguments(request)?;
    let params = match &*request.purpose.method {
        "resources/read" => {
            if arguments.is_some_and(|arguments| arguments.get() != "{}") {
                record.mark_uri_as_made();
            }
            raw(&json!({ "uri": name }))
        }
        _ => raw(&json!({ "name": name, "arguments": arguments })),
    };
    if let Ok(params) = Params::read(Some(&params)) {
        record.set_params(&params);
    }
    Ok(())
}

fn denied(why: &str) -> NotRun {
    NotRun::Denied {
        why: why.to_owned(),
    }
}

/// Parses the arguments; the question for a state has none.
fn parse_arguments(request: &Request) -> Result<Option<Box<RawValue>>, NotRun> {
    if request.arguments.is_empty() {
        return Ok(None);
    }
    let arguments = serde_json::from_slice(&request.arguments);
    arguments.map(Some).map_err(|error| NotRun::Arguments {
        faults: error.to_string(),
    })
}

/// Returns the script as it runs for the caller of a front, with the secrets that it has here.
async fn for_caller(script: &Arc<Script>, context: &Context) -> Result<Arc<Script>, NotRun> {
    let principal = &context.peer.principal;
    let script = script.for_caller(principal);
    if script.policy.client_directories().is_some() {
        return Err(denied("it runs in the directory of a client"));
    }
    let headers = SecretHeaders::default();
    let script = script.with_secrets_of(principal, &headers).await;
    script.map_err(|why| denied(&why))
}

/// Returns the command of a run, and the files that have to exist meanwhile.
async fn command(
    engine: &Arc<Engine>,
    script: &Arc<Script>,
    request: &Request,
    arguments: Option<&RawValue>,
) -> Result<(Command, Option<InputFiles>), NotRun> {
    // A server that is a front itself passes nothing on.
    let start_command = script.start_command().ok_or(NotRun::Unknown)?;
    let mut limits = stricter(script.policy.limits(), &request.limits);
    if request.question == Question::State {
        limits.capture_head = limits.capture_head.max(MAX_STATE_BYTES);
        return Ok((script.state_command(start_command).limits(limits), None));
    }
    let command = command_of_call(script, start_command, arguments)?.limits(limits);
    let run_as = script.policy.sandbox().run_as;
    check_files(&request.files)?;
    let files = input_files::write_input_files(engine, run_as, request.files.clone()).await;
    let files = files.map_err(|error| NotRun::NotStarted {
        why: chain(&RunError::Files(error)),
    })?;
    Ok(match files {
        Some(files) => (files.add_to(command), Some(files)),
        None => (command, None),
    })
}

/// Checks the arguments as if a client had sent them here.
fn command_of_call(
    script: &Script,
    start_command: &StartCommand,
    arguments: Option<&RawValue>,
) -> Result<Command, NotRun> {
    let fault = |faults| NotRun::Arguments { faults };
    let accepted = accepted_arguments(script, arguments).map_err(fault)?;
    let variable = |name: &str| script.policy.variable(name);
    let invocation = script
        .spec
        .invocation_with_env(&variable, accepted.as_deref())
        .map_err(|faults| fault(describe_faults(&faults)))?;
    let input = Input::new(script, accepted.as_deref(), invocation);
    Ok(run::command(script, start_command, &input))
}

/// A file is named by a variable, which must not be any other one.
fn check_files(files: &[InputFile]) -> Result<(), NotRun> {
    let is_known = |file: &InputFile| InputFile::VARIABLES.contains(&&*file.variable);
    match files.iter().all(is_known) {
        true => Ok(()),
        false => Err(NotRun::Version),
    }
}

/// Tells the front why there is no outcome.
fn not_run(error: RunError) -> NotRun {
    match error {
        RunError::Busy(busy) => NotRun::busy(busy.wait()),
        RunError::Start(StartError::Busy { .. }) => NotRun::busy(SHARED_EXECUTOR_RETRY_DELAY),
        RunError::Start(StartError::ShuttingDown) => NotRun::Draining,
        RunError::Start(StartError::Unenforceable { .. }) => NotRun::Level,
        RunError::NotApproved(_) => NotRun::Digest,
        RunError::Redaction(_) => {
            NotRun::lost("its output could not be searched for secrets, and is withheld")
        }
        RunError::Elsewhere(not_run) => not_run,
        error => NotRun::NotStarted { why: chain(&error) },
    }
}

/// Reads a part of a kept output for a front.
///
/// # Errors
///
/// It is not there any more, or unreadable.
pub(crate) async fn read(
    engine: &Engine,
    run: &str,
    stream: &str,
    principal: &str,
    range: std::ops::Range<u64>,
) -> Result<OutputPart, NotRun> {
    let uri = archive::uri(run, stream);
    let principal = Principal::unlimited(principal);
    let output = engine.archive.find(&uri, &principal, None);
    let output = output.ok_or(NotRun::Unknown)?;
    let (size, omitted_bytes) = (output.size(), output.omitted_bytes());
    let read = tokio::task::spawn_blocking(move || output.read_part(range));
    let part = read.await.map_err(std::io::Error::other).flatten();
    let part = part.map(|bytes| OutputPart::new(bytes.into(), size, omitted_bytes));
    part.map_err(|error| NotRun::NotStarted {
        why: format!("read an output: {error}"),
    })
}
