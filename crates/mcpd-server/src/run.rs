//! One run of a script on behalf of a request: its environment, and the files it is told about.

mod lack;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use mcpd_exec::{
    Command, Enforced, Executor, Level, Line, MissingMechanism, Outcome, RunAs, StartError,
};
use mcpd_protocol::{CallToolRequest, Method as _};
use mcpd_scriptspec::{Invocation, OutputFormat, ScriptPath};
use scopeguard::ScopeGuard;
use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::task::JoinError;

use self::lack::Lack;
use crate::Server;
use crate::admission::Refused;
use crate::context::Context;
use crate::interaction::Answers;
use crate::output::Exit;
use crate::policy::Terms;
use crate::private;
use crate::relay::{Relay, Speaker};
use crate::subscribers::{Event, Subscribers};
use crate::sync;
use crate::tool::Script;
use crate::trace::TraceContext;
use crate::turns::Busy;

/// The longest stdin that a script also gets as a variable, in bytes.
const MAX_ARGUMENTS: usize = 32 * 1024;

/// What a run is for: the method and what it names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose<'a> {
    pub(crate) method: &'static str,
    pub(crate) name: &'a str,
    /// Nobody can guess it.
    pub(crate) call_id: &'a str,
}

/// What a script is given, checked; every round of a request gets the same.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) stdin: Bytes,
    env: Vec<(String, String)>,
    args: Vec<String>,
    /// File that the interpreter of the script reads.
    file: Option<PathBuf>,
}

impl Input {
    pub(crate) fn new(script: &Script, invocation: Invocation) -> Self {
        Self {
            file: script.launch.file_for(&invocation).map(Path::to_owned),
            stdin: invocation.stdin.into(),
            env: invocation.env,
            args: invocation.args,
        }
    }
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The process could not be started.
    #[error(transparent)]
    Start(StartError),
    /// Too many calls are waiting.
    #[error(transparent)]
    Busy(Busy),
    /// Its output could not be searched for secrets, and is not told.
    #[error("take the secrets out of an output: {0}")]
    Redaction(JoinError),
    /// The files for it could not be written.
    #[error("write the files of a run: {0}")]
    Files(std::io::Error),
}

impl RunError {
    /// The same in a word.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Busy(_) | Self::Start(StartError::Busy { .. }) => Busy::NAME,
            Self::Start(StartError::ShuttingDown) => "shutting-down",
            Self::Redaction(_) => "not-redacted",
            _ => "not-started",
        }
    }
}

/// Runs `script`, telling the caller what it logs meanwhile.
///
/// # Errors
///
/// When nothing was run.
///
/// # Cancel safety
///
/// Dropping the future ends the process and its group.
pub(crate) async fn run(
    server: &Server,
    script: &Script,
    purpose: Purpose<'_>,
    input: &Input,
    answers: &Answers,
    context: &Context,
) -> Result<Outcome, RunError> {
    let files = files(server, script, purpose, answers, context)
        .await
        .map_err(RunError::Files)?;
    let mut command = command(script, purpose, input);
    if let Some(files) = &files {
        command = files.show(command);
    }
    let speaker = match script.spec.output {
        OutputFormat::Text if purpose.method == CallToolRequest::NAME => Speaker::TextScript,
        _ => Speaker::Script,
    };
    // Even one that fails or is cancelled may have written before.
    let _told = script.spec.state.then(|| {
        let uri = script.path.state_uri();
        Told(
            Arc::clone(server.subscribers()),
            Event::ResourceUpdated(uri),
        )
    });
    let relay = Relay::new(speaker, &script.path, &script.terms, context.side.clone());
    let run = pin!(execute(
        (server, context),
        Job::of(script),
        command,
        |line| relay.line(line)
    ));
    let ended = relay.during(run).await;
    context.trail.ran(&ended, Exit::of);
    ended
}

/// Tells everybody of an event when it is dropped.
struct Told(Arc<Subscribers>, Event);

impl Drop for Told {
    fn drop(&mut self) {
        self.0.publish(&self.1);
    }
}

/// What a command is run as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    /// What in the catalog it runs for.
    pub(crate) path: &'a ScriptPath,
    pub(crate) terms: &'a Terms,
    /// How to read what it prints.
    pub(crate) format: OutputFormat,
}

impl<'a> Job<'a> {
    /// What a script is run as.
    pub(crate) fn of(script: &'a Script) -> Self {
        Self {
            path: &script.path,
            terms: &script.terms,
            format: script.spec.output,
        }
    }
}

/// Runs `command` for a request, when it is its turn. What it printed is told without secrets.
///
/// # Errors
///
/// When nothing was run.
///
/// # Cancel safety
///
/// Dropping the future ends the process and its group.
pub(crate) async fn execute(
    (server, context): (&Server, &Context),
    job: Job<'_>,
    command: Command,
    on_line: impl FnMut(Line<'_>) + Send,
) -> Result<Outcome, RunError> {
    let span = context.trail.span().run(job.path);
    let command = traced(command, &span.trace(context.trace.clone()));
    let ended = take_turn((server, context), job, command, on_line).await;
    span.ended(&ended);
    ended
}

async fn take_turn(
    (server, context): (&Server, &Context),
    Job {
        path,
        terms,
        format,
    }: Job<'_>,
    command: Command,
    on_line: impl FnMut(Line<'_>) + Send,
) -> Result<Outcome, RunError> {
    let arrived = Instant::now();
    let runs = &server.admission().runs;
    let lane = runs.lane(path.as_str(), terms.width());
    let turn = runs.take(&context.principal, &lane).await;
    let turn = turn.map_err(|busy| {
        server.metrics().refused(Refused::Busy);
        RunError::Busy(busy)
    })?;
    // A script whose call was cancelled has some time to end, and nobody runs in its place until then.
    let command = command.hold(Arc::new(turn));
    let run = server.metrics().run();
    let waited = arrived.elapsed();
    let lack = Lack::of(&command, terms);
    let ended = execute_with(server.executor(), terms, format, command, on_line).await;
    run.ended(&ended);
    let mut outcome = ended?;
    outcome.timing.queued += waited;
    if let Some(lack) = lack {
        lack.find(path, &mut outcome).await;
    }
    server.gaps().report(&outcome.enforced);
    regain_files(server, terms);
    report_leftovers(path, &outcome);
    Ok(outcome)
}

/// Takes back what a run may have taken of the server's rights to its own files, and records it.
/// Nothing waits for that.
fn regain_files(server: &Server, terms: &Terms) {
    let Some(files) = terms.endangered_files().map(Arc::clone) else {
        return;
    };
    let auditor = server.auditor().map(Arc::clone);
    tokio::task::spawn_blocking(move || {
        for regained in files.regain() {
            if let Some(auditor) = &auditor {
                auditor.audit.note_regained(&regained);
            }
        }
    });
}

/// Says what a run has left behind. Only at the level `none` somebody may have to look after it.
fn report_leftovers(path: &ScriptPath, outcome: &Outcome) {
    let processes = outcome.leftovers.unwrap_or_default();
    match outcome.enforced.level {
        _ if processes == 0 => {}
        Level::None => {
            tracing::warn!(script = %path, processes, "the script has ended, and processes it has started go on");
        }
        _ => {
            tracing::info!(script = %path, processes, "processes that the script has left behind were ended");
        }
    }
}

/// The same on any executor, for mcpd itself and at once.
pub(crate) async fn execute_with(
    executor: &Executor,
    terms: &Terms,
    format: OutputFormat,
    command: Command,
    on_line: impl FnMut(Line<'_>) + Send,
) -> Result<Outcome, RunError> {
    // It is large, and would be moved by each of those that wait for it.
    let ended = Box::pin(executor.run_with(command, on_line)).await;
    let mut outcome = ended.map_err(RunError::Start)?;
    if terms.keeps_escapes() {
        outcome.stdout.shown = None;
        outcome.stderr.shown = None;
    }
    redacted(terms, format, outcome).await
}

/// The outcome without the secrets there are, but for what is on disk: that is searched when it is read.
async fn redacted(
    terms: &Terms,
    format: OutputFormat,
    mut outcome: Outcome,
) -> Result<Outcome, RunError> {
    let Some(redactor) = terms.redactor().map(Arc::clone) else {
        return Ok(outcome);
    };
    let redact = move || {
        outcome.stdout = if format == OutputFormat::Text {
            redactor.text(&outcome.stdout)
        } else {
            redactor.json(&outcome.stdout)
        };
        outcome.stderr = redactor.text(&outcome.stderr);
        outcome
    };
    // An output can be megabytes.
    let redacting = tokio::task::spawn_blocking(redact);
    redacting.await.map_err(RunError::Redaction)
}

/// What has been said of what is missing: each is worth one line, not one for every run.
#[derive(Debug, Default)]
pub(crate) struct Gaps(Mutex<BTreeSet<String>>);

impl Gaps {
    fn report(&self, enforced: &Enforced) {
        for missing in &enforced.missing {
            // One mechanism may lack several things.
            if sync::lock(&self.0).insert(missing.to_string()) {
                tracing::warn!(level = %enforced.level, "scripts are confined less than they should be: {missing}");
            }
        }
    }
}

impl Gaps {
    /// Says what probes go without: it is not the calls that lack it.
    pub(crate) fn report_probe(&self, missing: &[MissingMechanism]) {
        for missing in missing {
            if sync::lock(&self.0).insert(missing.to_string()) {
                tracing::warn!(
                    "scripts are asked for `--help` less confined than they should be: {missing}; \
                     `[probe]` with `require = true` asks none"
                );
            }
        }
    }
}

fn command(script: &Script, purpose: Purpose<'_>, input: &Input) -> Command {
    let command = script
        .command_with(input.file.as_deref())
        .args(&input.args)
        .stdin(input.stdin.clone());
    let command = identified(command, purpose.call_id);
    let variables = input.env.iter();
    let command = variables.fold(command, |command, (name, value)| command.env(name, value));
    // It is JSON, as scripts for action endpoints expect it.
    match str::from_utf8(&input.stdin) {
        Ok(arguments) if arguments.len() <= MAX_ARGUMENTS => command.env("TOOL_ARGS", arguments),
        _ => command,
    }
}

/// The command of one call.
pub(crate) fn identified(command: Command, call_id: &str) -> Command {
    command.env("MCPD_CALL_ID", call_id)
}

/// The command as a part of a trace.
fn traced(command: Command, trace: &TraceContext) -> Command {
    trace.members().fold(command, |command, (name, value)| {
        command.env(name.to_ascii_uppercase(), value)
    })
}

/// Files that live as long as the run, and the variables that name them.
struct Files {
    variables: Vec<(&'static str, PathBuf)>,
    directory: ScopeGuard<TempDir, fn(TempDir)>,
}

/// Removing files takes its time, and threads of the runtime have none for that.
fn remove_aside(directory: TempDir) {
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn_blocking(move || drop(directory)));
    }
}

impl Files {
    /// Tells the command where they are.
    fn show(&self, command: Command) -> Command {
        let command = command.visible(self.directory.path());
        let variables = self.variables.iter();
        variables.fold(command, |command, (name, path)| command.env(name, path))
    }
}

/// Writes what is too large or too private for an environment variable; nothing for most runs.
async fn files(
    server: &Server,
    script: &Script,
    purpose: Purpose<'_>,
    answers: &Answers,
    context: &Context,
) -> std::io::Result<Option<Files>> {
    let mut contents = Vec::new();
    if let Some(responses) = &answers.responses {
        contents.push(("MCPD_INPUT_RESPONSES", encode(responses)?));
    }
    if let Some(state) = &answers.state {
        contents.push(("MCPD_REQUEST_STATE", state.get().as_bytes().to_vec()));
    }
    if script.spec.context {
        contents.push(("MCPD_CONTEXT", encode(&described(purpose, context))?));
    }
    if contents.is_empty() {
        return Ok(None);
    }
    let run_as = script.terms.sandbox().run_as;
    let inputs = Arc::clone(server.inputs());
    let write = move || write(inputs.path()?, contents, run_as).map(Some);
    tokio::task::spawn_blocking(write).await?
}

fn write(
    inputs: &Path,
    contents: Vec<(&'static str, Vec<u8>)>,
    run_as: Option<RunAs>,
) -> std::io::Result<Files> {
    if run_as.is_some() {
        // To be entered by who knows where.
        private::permit(inputs, 0o711)?;
    }
    // Made for this user alone, so that nobody else reads or plants anything in it.
    let directory = private::directory_in(inputs, "")?;
    let mut variables = Vec::with_capacity(contents.len());
    for (name, bytes) in contents {
        let path = directory
            .path()
            .join(format!("{}.json", name.to_ascii_lowercase()));
        std::fs::write(&path, bytes)?;
        give(&path, run_as)?;
        variables.push((name, path));
    }
    give(directory.path(), run_as)?;
    Ok(Files {
        variables,
        directory: scopeguard::guard(directory, remove_aside),
    })
}

/// Hands a file to whom the script runs as, if that is somebody else.
#[cfg(unix)]
pub(crate) fn give(path: &Path, run_as: Option<RunAs>) -> std::io::Result<()> {
    match run_as {
        Some(run_as) => std::os::unix::fs::chown(path, Some(run_as.user), Some(run_as.group)),
        None => Ok(()),
    }
}

/// Nobody else runs scripts there.
#[cfg(not(unix))]
pub(crate) fn give(_: &Path, _: Option<RunAs>) -> std::io::Result<()> {
    Ok(())
}

fn encode(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(std::io::Error::other)
}

/// What a script that declares `context` is told of its caller.
fn described(purpose: Purpose<'_>, context: &Context) -> serde_json::Value {
    json!({
        "method": purpose.method,
        "name": purpose.name,
        "protocolVersion": context.version,
        "clientCapabilities": context.capabilities,
        "clientInfo": context.client,
        "logLevel": context.side.log_level(),
        "progress": context.side.wants_progress(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::runtime::Builder;
    use tokio::task::spawn_blocking;

    use super::*;

    #[test]
    fn files_are_removed_where_nobody_else_has_to_wait() {
        let inputs = tempfile::tempdir().unwrap();
        let files = write(inputs.path(), vec![("A", b"{}".to_vec())], None).unwrap();
        let file = files.variables[0].1.clone();
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (release, released) = mpsc::channel::<()>();
            let busy = spawn_blocking(move || released.recv());
            drop(files);
            assert!(file.exists());
            drop(release);
            busy.await.unwrap().unwrap_err();
            // Behind the removal.
            spawn_blocking(|| {}).await.unwrap();
            assert!(!file.exists());
        });
    }
}
