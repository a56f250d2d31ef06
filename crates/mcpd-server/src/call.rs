//! One call of a script: arguments → command → outcome → result. What a model reads about a run, it
//! reads from here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcpd_exec::{Command, Line, Outcome, StartError, Stream};
use mcpd_protocol::CallToolResult;
use mcpd_protocol::ContentBlock;
use mcpd_protocol::LoggingLevel;
use mcpd_scriptspec::{Invocation, LogLevel, log_line, progress_line};
use serde_json::json;
use serde_json::value::RawValue;

use crate::Server;
use crate::context::{Context, SideStream, Trace};
use crate::subscribers::Event;
use crate::tool::{Run, Script};

mod exit;

/// How much of stderr a result repeats when the script printed nothing else, in bytes.
const STDERR_TAIL: usize = 4096;

/// Checks the arguments and, if they are right, gives the future of the run.
pub(crate) fn start(
    server: &Server,
    script: &Arc<Script>,
    arguments: Option<&RawValue>,
    context: &Context,
) -> Run {
    match script.spec.invocation(arguments) {
        Ok(invocation) => {
            let command = command(server, script, invocation, &context.trace);
            Box::pin(run(
                server.clone(),
                Arc::clone(script),
                command,
                context.side.clone(),
            ))
        }
        Err(faults) => {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Box::pin(std::future::ready(invalid_arguments(&lines.join("\n"))))
        }
    }
}

fn command(server: &Server, script: &Script, invocation: Invocation, trace: &Trace) -> Command {
    let command = Command::new(&script.file)
        .current_dir(&script.directory)
        .limits(server.limits().clone())
        .stdin(invocation.stdin);
    let mut command = server
        .environment()
        .prepare(command)
        .env("MCPD_TOOL", script.path.as_str())
        .env("MCPD_CALL_ID", call_id());
    let trace = [("TRACEPARENT", &trace.parent), ("TRACESTATE", &trace.state)];
    for (name, value) in trace {
        if let Some(value) = value {
            command = command.env(name, value);
        }
    }
    for (name, value) in invocation.env {
        command = command.env(name, value);
    }
    command
}

/// Unique on this machine: this process, then this call.
fn call_id() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    format!(
        "{}-{}",
        std::process::id(),
        CALLS.fetch_add(1, Ordering::Relaxed)
    )
}

async fn run(
    server: Server,
    script: Arc<Script>,
    command: Command,
    mut side: SideStream,
) -> CallToolResult {
    let logger = script.path.as_str();
    let on_line = |line: Line<'_>| relay(&mut side, logger, line);
    let ended = server.executor().run_with(command, on_line).await;
    if script.spec.state {
        // Whatever the ending: the script may have written before it failed.
        server
            .subscribers()
            .publish(&Event::ResourceUpdated(script.path.state_uri()));
    }
    match ended {
        Ok(outcome) => result(&outcome),
        Err(error) => not_started(&script, &error),
    }
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

/// What the caller gets for a run that took place.
fn result(outcome: &Outcome) -> CallToolResult {
    let text = without_final_newline(outcome.stdout.to_text_lossy());
    let exit = exit::Exit::of(outcome);
    let mut content = Vec::new();
    content.extend(exit.explanation(outcome));
    if !text.is_empty() || (content.is_empty() && outcome.success()) {
        content.push(text);
    }
    if content.is_empty() {
        content.push(stderr_tail(outcome, &exit));
    }
    let mut result = CallToolResult::new(content.into_iter().map(ContentBlock::text).collect());
    result.is_error = Some(!outcome.success());
    if !outcome.success() {
        result.meta.other.insert(
            "mcpd/exit".to_owned(),
            json!({"code": exit.code, "name": exit.name}),
        );
    }
    if outcome.stdout.omitted() > 0 {
        let total = outcome.stdout.total_bytes;
        result.meta.other.insert(
            "mcpd/output".to_owned(),
            json!({"totalBytes": total, "omittedBytes": outcome.stdout.omitted()}),
        );
    }
    result
}

/// `echo` ends every output with a newline that nobody means.
fn without_final_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// A script that fails silently on stdout has usually said why on stderr.
fn stderr_tail(outcome: &Outcome, exit: &exit::Exit) -> String {
    let text = outcome.stderr.to_text_lossy();
    let text = text.trim_end();
    let mut start = text.len().saturating_sub(STDERR_TAIL);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    match &text[start..] {
        "" => format!(
            "The script ended with exit code {} ({}) and printed nothing.",
            exit.code, exit.name
        ),
        tail => tail.to_owned(),
    }
}

/// The operator learns why and where; the model only that, and whether trying again makes sense.
fn not_started(script: &Script, error: &StartError) -> CallToolResult {
    tracing::error!(script = %script.path, "failed to {error}");
    CallToolResult::error(match error {
        StartError::Busy { queued, .. } => {
            format!(
                "The server is busy: {queued} calls are waiting already. Try again in a few seconds."
            )
        }
        StartError::ShuttingDown => "The server is shutting down.".to_owned(),
        _ => format!(
            "The script `{}` could not be started. The server's log says why.",
            script.path
        ),
    })
}

/// "Input validation errors" are results, so that the model can mend its call
/// -- 2026-07-28/server/tools#error-handling
pub(crate) fn invalid_arguments(faults: &str) -> CallToolResult {
    CallToolResult::error(format!("Invalid arguments: {faults}"))
}
