//! Run of a script for a request: its environment and input files, its wait in the run queue, the
//! redaction of its output, and the checks after its end.

mod hidden_files;
pub(crate) mod input_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use bytes::Bytes;
use mcpd_exec::egress::Connection;
use mcpd_exec::{Command, Executor, Level, Line, Network, Outcome};
use mcpd_scriptspec::{Invocation, OutputFormat, ScriptPath};
use serde_json::value::RawValue;

use self::hidden_files::HiddenFileSearch;
pub(crate) use self::input_files::change_owner;
use crate::client::request::context::Context;
use crate::client::subscribers::{Event, Subscribers};
use crate::execution::elsewhere::{self, KeptAt};
use crate::execution::engine::Engine;
use crate::execution::input_rounds::RoundInput;
use crate::execution::line_tap::LineTap;
use crate::execution::relay::ProgramKind;
use crate::execution::run_observer::RunObserver;
use crate::limits::admission::Rejection;
use crate::message::arguments::arguments_text;
use crate::message::trace::TraceContext;
use crate::observe::ending::Exit;
use crate::observe::ending::RunError;
use crate::policy::EffectivePolicy;
use crate::script::start_command::StartCommand;
use crate::script::version_check::VersionCheck;
use crate::script::{Launch, Script};

/// Maximum size of an output that an async worker redacts itself, in bytes: some tens of
/// microseconds.
const MAX_REDACTED_INLINE: u64 = 32 * 1024;

/// Maximum size of stdin that is also passed as a variable, in bytes.
const MAX_ARGUMENTS_VARIABLE: usize = 32 * 1024;

/// Request that a run serves: the method and the name in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose<'a> {
    pub(crate) method: &'static str,
    pub(crate) name: &'a str,
    /// Unguessable.
    pub(crate) call_id: &'a str,
}

/// Validated input of a script; every round of a request gets the same.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) stdin: Bytes,
    env: Vec<(String, String)>,
    args: Vec<String>,
    /// File that the interpreter of the script reads.
    file: Option<PathBuf>,
    /// Arguments that all that was made of, for a script that runs elsewhere.
    pub(crate) arguments: Bytes,
}

impl Input {
    pub(crate) fn new(
        script: &Script,
        arguments: Option<&RawValue>,
        invocation: Invocation,
    ) -> Self {
        let (file, arguments) = match &script.launch {
            Launch::Here(start_command) => (start_command.file_for(&invocation), None),
            Launch::There(_) => (None, Some(arguments_text(arguments))),
        };
        Self {
            file: file.map(Path::to_owned),
            arguments: arguments.unwrap_or_default().to_owned().into(),
            stdin: invocation.stdin.into(),
            env: invocation.env,
            args: invocation.args,
        }
    }

    /// Returns this input with the values of another invocation of the same script.
    pub(crate) fn with_values_of(self, invocation: Invocation) -> Self {
        Self {
            stdin: invocation.stdin.into(),
            env: invocation.env,
            args: invocation.args,
            ..self
        }
    }
}

/// End of a run, and the place where its outputs are, if that is not here.
pub(crate) type Ended = (Outcome, Option<KeptAt>);

/// Runs `script` once, with its input files.
///
/// # Errors
///
/// Fails if nothing was run, or the end of a run elsewhere is not known.
///
/// # Cancel safety
///
/// Dropping the future ends the process and its group.
pub(crate) async fn run_script(
    engine: &Arc<Engine>,
    script: &Script,
    purpose: Purpose<'_>,
    input: &Input,
    round: &RoundInput,
    context: &Context,
) -> Result<Ended, RunError> {
    let files = input_files::contents(script, purpose, round, context).map_err(RunError::Files)?;
    // A failed or cancelled run may have changed the state before.
    let _publish_on_drop = script.spec.state.then(|| {
        let uri = script.path.state_uri();
        PublishOnDrop(Arc::clone(&engine.subscribers), Event::ResourceUpdated(uri))
    });
    let job = Job::of(script, Some(ProgramKind::of_script(script, purpose.method)));
    let start_command = match &script.launch {
        Launch::Here(start_command) => start_command,
        Launch::There(elsewhere) => {
            let mut request = elsewhere::request(script, elsewhere, purpose, context);
            request.arguments = input.arguments.clone();
            request.files = files;
            return elsewhere::run(engine, context, job, elsewhere, request).await;
        }
    };
    let run_as = script.policy.sandbox().run_as;
    let files = input_files::write_input_files(engine, run_as, files).await;
    let files = files.map_err(RunError::Files)?;
    let command = command(script, start_command, input);
    let mut command = with_call(command, purpose.call_id, context);
    if let Some(directory) = client_directory(script, context) {
        command = command.env("MCPD_CLIENT_DIR", directory);
    }
    if let Some(files) = &files {
        command = files.add_to(command);
    }
    if let Some(warm) = script.policy.warm() {
        command = command.warm(warm.clone());
    }
    Ok((run(engine, context, job, command).await?, None))
}

/// Returns the directory that the client works in, if the script may know it.
fn client_directory<'a>(script: &'a Script, context: &'a Context) -> Option<&'a Path> {
    match script.is_in_client_directory {
        true => Some(&script.directory),
        false => context.peer.directory.as_deref(),
    }
}

/// Publishes an event when it is dropped.
struct PublishOnDrop(Arc<Subscribers>, Event);

impl Drop for PublishOnDrop {
    fn drop(&mut self) {
        self.0.publish(&self.1);
    }
}

/// Attributes of a command that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    /// Catalog entry for which it runs.
    pub(crate) path: &'a ScriptPath,
    pub(crate) policy: &'a EffectivePolicy,
    /// Format of its output.
    pub(crate) format: OutputFormat,
    /// Kind of program, if its caller receives messages of the run.
    pub(crate) kind: Option<ProgramKind>,
    /// Names of its endings in the record of the request, if that has the run.
    pub(crate) exit: Option<fn(&Outcome) -> Exit>,
    /// Approval without which it must not run, where only approved scripts are served.
    pub(crate) version_check: Option<&'a Arc<dyn VersionCheck>>,
}

impl<'a> Job<'a> {
    /// Returns the attributes of a run of a script.
    pub(crate) fn of(script: &'a Script, kind: Option<ProgramKind>) -> Self {
        Self {
            path: &script.path,
            policy: &script.policy,
            format: script.spec.output,
            kind,
            exit: Some(Exit::of),
            version_check: script.version_check.get(),
        }
    }
}

/// Runs `command` for a request when its turn comes, relays its messages to the caller meanwhile,
/// and redacts its output.
///
/// # Errors
///
/// Fails if nothing was run.
///
/// # Cancel safety
///
/// Dropping the future ends the process and its group.
pub(crate) fn run<'a>(
    engine: &'a Arc<Engine>,
    context: &'a Context,
    job: Job<'a>,
    command: Command,
) -> impl Future<Output = Result<Outcome, RunError>> + Send + 'a {
    run_with_tap(engine, context, job, command, None)
}

/// Runs `command` as [`run`] does, and passes its lines to `tap` as well.
///
/// # Errors
///
/// Fails if nothing was run.
///
/// # Cancel safety
///
/// Dropping the future ends the process and its group.
pub(super) async fn run_with_tap<'a>(
    engine: &'a Arc<Engine>,
    context: &'a Context,
    job: Job<'a>,
    command: Command,
    tap: Option<&'a LineTap<'a>>,
) -> Result<Outcome, RunError> {
    let observer = RunObserver::new(engine, context, job).with_tap(tap);
    let command = with_trace(command, &observer.trace());
    let ended = {
        // The future is large, and every future that awaits it would move it.
        let mut run = Box::pin(run_when_permitted(engine, context, job, command, &observer));
        observer.relay_while(run.as_mut()).await
    };
    observer.ended(&ended);
    ended
}

async fn run_when_permitted(
    engine: &Arc<Engine>,
    context: &Context,
    Job {
        path,
        policy,
        format,
        version_check,
        ..
    }: Job<'_>,
    command: Command,
    observer: &RunObserver<'_>,
) -> Result<Outcome, RunError> {
    let arrived = Instant::now();
    let runs = &engine.admission.runs;
    let script_queue = runs.script_queue(path.as_str(), policy.concurrency_limit());
    let permit = runs.acquire(&context.peer.principal, &script_queue).await;
    let permit = permit.map_err(|busy| {
        engine.observers.metrics.count_refusal(Rejection::Busy);
        RunError::Busy(busy)
    })?;
    let command = match version_check.map(Arc::clone) {
        Some(check) => command.precondition(Arc::new(move || check_version(&*check))),
        None => command,
    };
    // A script whose call was cancelled has a grace period, and keeps its turn until it has
    // ended.
    let command = command.hold(Arc::new(permit));
    let command = report_connections(command, path, policy, context);
    let counter = observer.started();
    let waited = arrived.elapsed();
    let search = HiddenFileSearch::of(&command, policy);
    let on_line = |line: Line<'_>| observer.line(line);
    let ended = run_redacted(&engine.executor, policy, format, command, on_line).await;
    counter.finish(&ended);
    let mut outcome = ended?;
    outcome.timing.queued += waited;
    if let Some(search) = search {
        search.find(path, &mut outcome).await;
    }
    engine.missing_enforcement.report(&outcome.enforced);
    engine.missing_enforcement.report_cold(path, &outcome);
    regain_files(engine, policy);
    report_leftovers(path, &outcome);
    Ok(outcome)
}

/// Adds the connections of a run to the record of its request, and to the log, if its destinations
/// are limited.
fn report_connections(
    command: Command,
    path: &ScriptPath,
    policy: &EffectivePolicy,
    context: &Context,
) -> Command {
    if policy.sandbox().network != Network::Listed {
        return command;
    }
    let (path, record) = (path.clone(), context.record.clone());
    let has_warned = AtomicBool::new(false);
    command.on_connection(Arc::new(move |connection: Connection| {
        let (destination, verdict) = (&connection.destination, connection.verdict);
        if verdict.is_refusal() && !has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                script = %path,
                "`{path}` may not connect to `{destination}` ({verdict}): see `network` of its sandbox"
            );
        }
        let address = connection.address.map(tracing::field::display);
        tracing::debug!(
            script = %path,
            destination = connection.destination,
            address,
            verdict = %connection.verdict,
            sent_bytes = connection.sent,
            received_bytes = connection.received,
            "connection of a script"
        );
        record.add_connection(&connection);
    }))
}

/// Compares a script with what its operator approved. Blocks.
fn check_version(check: &dyn VersionCheck) -> Result<(), String> {
    let changes = check.changes();
    match changes.is_empty() {
        true => Ok(()),
        false => Err(changes.join(", ")),
    }
}

/// Restores the rights to the server's own files that a run may have changed, and records it. No
/// request waits for that.
fn regain_files(engine: &Arc<Engine>, policy: &EffectivePolicy) {
    let Some(files) = policy.endangered_files().map(Arc::clone) else {
        return;
    };
    let Some(wait) = files.request_check() else {
        return;
    };
    let auditor = engine.observers.auditor.as_ref().map(Arc::clone);
    let check = move || {
        for regained in files.regain() {
            if let Some(auditor) = &auditor {
                auditor.audit.note_regained(&regained);
            }
        }
    };
    if wait.is_zero() {
        tokio::task::spawn_blocking(check);
        return;
    }
    tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        tokio::task::spawn_blocking(check).await.ok();
    });
}

/// Logs processes that a run has left behind. Only at the level `none` the operator may have to
/// act.
fn report_leftovers(path: &ScriptPath, outcome: &Outcome) {
    let processes = outcome.leftovers.unwrap_or_default();
    match outcome.enforced.level {
        _ if processes == 0 => {}
        Level::None => {
            tracing::warn!(script = %path, processes, "the script has ended, but processes that it started are still running");
        }
        _ => {
            tracing::info!(script = %path, processes, "processes left behind by the script were killed");
        }
    }
}

/// Runs `command` on any executor, without queueing, for mcpd itself.
pub(crate) async fn run_redacted(
    executor: &Executor,
    policy: &EffectivePolicy,
    format: OutputFormat,
    command: Command,
    on_line: impl FnMut(Line<'_>) + Send,
) -> Result<Outcome, RunError> {
    // The future is large, and every future that awaits it would move it.
    let ended = Box::pin(executor.run_with(command, on_line)).await;
    let mut outcome = ended?;
    if policy.keeps_escapes() {
        outcome.stdout.terminal = None;
        outcome.stderr.terminal = None;
    }
    redact_outcome(policy, format, outcome).await
}

/// Redacts the outcome, except for kept files: these are redacted when they are read.
async fn redact_outcome(
    policy: &EffectivePolicy,
    format: OutputFormat,
    mut outcome: Outcome,
) -> Result<Outcome, RunError> {
    let Some(redactor) = policy.redactor().map(Arc::clone) else {
        return Ok(outcome);
    };
    let size = outcome.stdout.total_bytes + outcome.stderr.total_bytes;
    let redact = move || {
        outcome.stdout = if format == OutputFormat::Text {
            redactor.redact_text(&outcome.stdout)
        } else {
            redactor.redact_json(&outcome.stdout)
        };
        outcome.stderr = redactor.redact_text(&outcome.stderr);
        outcome
    };
    if size <= MAX_REDACTED_INLINE {
        return Ok(redact());
    }
    let redacting = tokio::task::spawn_blocking(redact);
    redacting.await.map_err(RunError::Redaction)
}

/// Returns the command of a call, without the attributes that differ for each.
pub(crate) fn command(script: &Script, start_command: &StartCommand, input: &Input) -> Command {
    let command = script
        .command_with(start_command, input.file.as_deref())
        .args(&input.args)
        .stdin(input.stdin.clone());
    let variables = input.env.iter();
    let command = variables.fold(command, |command, (name, value)| command.env(name, value));
    // JSON, as scripts for action endpoints expect it.
    let is_short = input.stdin.len() <= MAX_ARGUMENTS_VARIABLE;
    match is_short.then(|| str::from_utf8(&input.stdin)) {
        Some(Ok(arguments)) => command.env("TOOL_ARGS", arguments),
        _ => command,
    }
}

/// Adds the id of the call, and the name of its caller, to a command.
pub(crate) fn with_call(command: Command, call_id: &str, context: &Context) -> Command {
    command
        .env("MCPD_CALL_ID", call_id)
        .env("MCPD_PRINCIPAL", context.peer.principal.name())
}

/// Adds the trace context to a command.
fn with_trace(command: Command, trace: &TraceContext) -> Command {
    trace.members().fold(command, |command, (name, value)| {
        command.env(name.to_ascii_uppercase(), value)
    })
}
