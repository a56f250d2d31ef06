//! One run of a script on behalf of a request: its environment, the files it is told about, and its
//! log and progress on their way to the caller.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use mcpd_exec::{Command, Line, Outcome, StartError, Stream};
use mcpd_protocol::LoggingLevel;
use mcpd_scriptspec::{
    Invocation, LogLevel, OutputFormat, Role, ScriptSpec, log_line, progress_line,
};
use serde::Serialize;
use serde_json::json;
use tempfile::TempDir;

use crate::Server;
use crate::context::{Context, SideStream};
use crate::interaction::Answers;
use crate::subscribers::Event;
use crate::tool::Script;

/// How much of an output is kept that is of use only as a whole, in bytes.
const STRUCTURED_OUTPUT: usize = 16 << 20;

/// What a run is for: the method and what it names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purpose<'a> {
    pub(crate) method: &'static str,
    pub(crate) name: &'a str,
}

/// What a script is given, checked; every round of a request gets the same.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) stdin: Bytes,
    env: Vec<(String, String)>,
}

impl From<Invocation> for Input {
    fn from(invocation: Invocation) -> Self {
        Self {
            stdin: invocation.stdin.into(),
            env: invocation.env,
        }
    }
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The process could not be started.
    #[error(transparent)]
    Start(StartError),
    /// The files for it could not be written.
    #[error("write the files of a run: {0}")]
    Files(std::io::Error),
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
    let files = files(script, purpose, answers, context)
        .await
        .map_err(RunError::Files)?;
    let command = command(server, script, input, context);
    let command = files
        .iter()
        .flat_map(|files| &files.variables)
        .fold(command, |command, (name, path)| command.env(name, path));
    let mut side = context.side.clone();
    let on_line = |line: Line<'_>| relay(&mut side, script.path.as_str(), line);
    let ended = server.executor().run_with(command, on_line).await;
    if script.spec.state {
        // Whatever the ending: the script may have written before it failed.
        server
            .subscribers()
            .publish(&Event::ResourceUpdated(script.path.state_uri()));
    }
    ended.map_err(RunError::Start)
}

fn command(server: &Server, script: &Script, input: &Input, context: &Context) -> Command {
    let mut limits = server.limits().clone();
    if let Some(timeout) = script.spec.timeout {
        limits.wall = timeout;
    }
    if is_wanted_whole(&script.spec) {
        limits.capture_head = limits.capture_head.max(STRUCTURED_OUTPUT);
    }
    let command = Command::new(&script.file)
        .current_dir(&script.directory)
        .limits(limits)
        .stdin(input.stdin.clone());
    let mut command = server
        .environment()
        .prepare(command)
        .env("MCPD_TOOL", script.path.as_str())
        .env("MCPD_CALL_ID", unique_id());
    let trace = [
        ("TRACEPARENT", &context.trace.parent),
        ("TRACESTATE", &context.trace.state),
        ("BAGGAGE", &context.trace.baggage),
    ];
    for (name, value) in trace {
        if let Some(value) = value {
            command = command.env(name, value);
        }
    }
    for (name, value) in &input.env {
        command = command.env(name, value);
    }
    command
}

/// Of a text the beginning and the end are worth something; of JSON, or of a resource, they aren't.
fn is_wanted_whole(spec: &ScriptSpec) -> bool {
    spec.output != OutputFormat::Text || matches!(spec.role, Role::Resource { .. })
}

/// Unique on this machine: this process, then a number.
pub(crate) fn unique_id() -> String {
    static IDS: AtomicU64 = AtomicU64::new(1);
    format!(
        "{}-{}",
        std::process::id(),
        IDS.fetch_add(1, Ordering::Relaxed)
    )
}

/// Files that live as long as the run, and the variables that name them.
struct Files {
    variables: Vec<(&'static str, std::path::PathBuf)>,
    _directory: TempDir,
}

/// Writes what is too large or too private for an environment variable; nothing for most runs.
async fn files(
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
    tokio::task::spawn_blocking(move || write(contents).map(Some)).await?
}

fn write(contents: Vec<(&'static str, Vec<u8>)>) -> std::io::Result<Files> {
    // Made for this user alone, so that nobody else reads or plants anything in it.
    let directory = tempfile::Builder::new().prefix("mcpd-run-").tempdir()?;
    let mut variables = Vec::with_capacity(contents.len());
    for (name, bytes) in contents {
        let path = directory
            .path()
            .join(format!("{}.json", name.to_ascii_lowercase()));
        std::fs::write(&path, bytes)?;
        variables.push((name, path));
    }
    Ok(Files {
        variables,
        _directory: directory,
    })
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

/// A line of stderr is progress or a log message; a line of stdout is part of the result.
fn relay(side: &mut SideStream, logger: &str, line: Line<'_>) {
    if line.stream != Stream::Stderr || !side.is_wanted() {
        return;
    }
    let text = String::from_utf8_lossy(line.bytes);
    if let Some(line) = progress_line(&text) {
        side.progress(line.progress, line.total, line.text);
    } else {
        let line = log_line(&text);
        side.log(logging_level(line.level), logger, line.text);
    }
}

fn logging_level(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Error => LoggingLevel::Error,
        LogLevel::Warning => LoggingLevel::Warning,
        LogLevel::Info => LoggingLevel::Info,
        // MCP has nothing below debug.
        LogLevel::Debug | LogLevel::Trace => LoggingLevel::Debug,
    }
}
