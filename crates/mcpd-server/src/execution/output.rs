//! Results of runs: turns the outcome of a run into the result of its method. Everything a model
//! reads about a run is written here.

use std::sync::Arc;

use mcpd_exec::{Ending, Outcome};
use mcpd_protocol::Wire;
use mcpd_protocol::content::{ContentBlock, ResourceBody, ResourceContents, Role};
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::method::{CallToolResult, GetPromptResult, PromptMessage, ReadResourceResult};
use mcpd_scriptspec::{self as scriptspec, OutputFormat};
use serde_json::value::RawValue;

use crate::execution::archive::CallArchive;
use crate::execution::input_rounds::RunResult;
use crate::observe::ending::Exit;
use crate::script::Script;

mod command;
mod exit;
mod files;
mod json_output;
mod mcp;
mod media;
mod note;
mod text;
mod truncation_note;

use crate::observe::ending;
pub(crate) use command::command_result;
pub(crate) use exit::{describe_hidden_paths, with_last_words};
use files::EmbeddedFiles;
pub(crate) use json_output::without_position;
use json_output::{OutputError, OutputObject};
pub(crate) use media::{contents as media_contents, is_text};
pub(crate) use note::{describe_failure_alone, is_note};
pub(crate) use text::{exit_result, links_stderr, note_totals, tail};

/// Has `read` make the result, on a thread that may block if need be: an output can be megabytes of
/// JSON, and name files.
pub(crate) async fn interpret<R: Send + 'static>(
    script: Arc<Script>,
    outcome: Outcome,
    read: impl FnOnce(&Script, &Outcome) -> RunResult<R> + Send + 'static,
) -> RunResult<R> {
    if script.spec.output == OutputFormat::Text && outcome.stdout.head.len() <= text::MAX_TEXT_END {
        return read(&script, &outcome);
    }
    tokio::task::spawn_blocking(move || read(&script, &outcome))
        .await
        .unwrap_or_else(|error| {
            tracing::error!(%error, "failed to process the output of a script");
            RunResult::Refused(ErrorObject::internal_error("the result could not be read"))
        })
}

/// Makes the result of a tool.
pub(crate) fn tool(
    script: &Script,
    outcome: &Outcome,
    archive: &CallArchive,
) -> RunResult<CallToolResult> {
    let read = match script.spec.output {
        OutputFormat::Mcp => parse_mcp(script, outcome, mcp::tool),
        OutputFormat::Json => parse_json(outcome, structured_result),
        _ => Ok(RunResult::Complete(text::result(
            outcome,
            &outcome.stdout,
            archive,
        ))),
    };
    let mut run_result = match (read, outcome.ending) {
        (read, _) if outcome.success() => read
            .and_then(|run_result| check_output_schema(script, run_result))
            .unwrap_or_else(|fault| {
                RunResult::Complete(CallToolResult::error(describe_invalid(script, &fault)))
            }),
        (Ok(run_result @ (RunResult::Complete(_) | RunResult::Refused(_))), Ending::Exited(_)) => {
            run_result
        }
        // A failed run has no questions, and the output of a stopped one may be incomplete.
        _ => {
            let shown = text::truncate(&outcome.stdout);
            RunResult::Complete(text::result(outcome, &shown, archive))
        }
    };
    if let RunResult::Complete(result) = &mut run_result {
        text::add_notes(result, outcome, archive);
    }
    run_result
}

fn structured_result(value: &RawValue) -> CallToolResult {
    let mut result = CallToolResult::text(value.get());
    result.structured_content = Some(value.to_owned());
    result
}

/// Checks the structured content. "Servers MUST provide structured results that conform to this
/// schema." -- 2026-07-28/server/tools#output-schema
fn check_output_schema(
    script: &Script,
    run_result: RunResult<CallToolResult>,
) -> Result<RunResult<CallToolResult>, OutputError> {
    if let RunResult::Complete(result) = &run_result
        && let Some(schema) = &script.schemas.output
        && result.is_error != Some(true)
    {
        let content = result
            .structured_content
            .as_ref()
            .ok_or_else(|| OutputError::new("its `output_schema` requires `structuredContent`"))?;
        let content = serde_json::from_str(content.get())
            .map_err(|error| OutputError::new(format!("`structuredContent`: {error}")))?;
        schema.check(&content).map_err(|faults| {
            OutputError::new(format!("it does not match the `output_schema`: {faults}"))
        })?;
    }
    Ok(run_result)
}

/// Makes the result of a prompt.
pub(crate) fn prompt(script: &Script, outcome: &Outcome) -> RunResult<GetPromptResult> {
    let read = match script.spec.output {
        OutputFormat::Mcp => parse_mcp(script, outcome, mcp::prompt),
        OutputFormat::Json => parse_json(outcome, |value| message(value.get())),
        _ => Ok(RunResult::Complete(message(text::to_text(&outcome.stdout)))),
    };
    or_error(script, outcome, read, || failure_error(script, outcome))
}

fn message(text: impl Into<String>) -> GetPromptResult {
    let message = PromptMessage::new(Role::User, ContentBlock::text(text));
    GetPromptResult::new(vec![message])
}

/// Makes the result of reading `uri` from a script.
pub(crate) fn resource(
    script: &Script,
    uri: &str,
    outcome: &Outcome,
    wire: Wire,
) -> RunResult<ReadResourceResult> {
    let mime_type = match &script.spec.role {
        scriptspec::Role::Resource { mime_type, .. } => mime_type.as_deref(),
        _ => None,
    };
    let contents = |bytes: &[u8]| ReadResourceResult::new(vec![contents(uri, mime_type, bytes)]);
    let read = match script.spec.output {
        OutputFormat::Mcp => parse_mcp(script, outcome, |object, files| {
            mcp::resource(object, files, uri)
        }),
        OutputFormat::Json => parse_json(outcome, |value| contents(value.get().as_bytes())),
        _ => json_output::readable(&outcome.stdout)
            .map(|bytes| RunResult::Complete(contents(&bytes))),
    };
    or_error(script, outcome, read, || match outcome.ending {
        Ending::Exited(ending::NOT_FOUND) => ErrorObject::resource_not_found(uri, wire),
        _ => failure_error(script, outcome),
    })
}

/// Builds the contents of a resource: text if the bytes are text, and of type JSON if the type is
/// unknown and the text is JSON.
pub(crate) fn contents(uri: &str, mime_type: Option<&str>, bytes: &[u8]) -> ResourceContents {
    let mut contents = media::contents(uri, mime_type, bytes.to_vec());
    if let ResourceBody::Text(text) = &mut contents.body {
        text.truncate(text::without_line_end(text).len());
        let is_json = || serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        if mime_type.is_none() && is_json() {
            contents.mime_type = Some("application/json".to_owned());
        }
    }
    contents
}

fn parse_mcp<R>(
    script: &Script,
    outcome: &Outcome,
    result: impl FnOnce(&OutputObject<'_>, &mut EmbeddedFiles<'_>) -> Result<R, OutputError>,
) -> Result<RunResult<R>, OutputError> {
    let whole = json_output::require_output(outcome)?;
    let files = match script.elsewhere() {
        Some(_) => EmbeddedFiles::elsewhere(),
        None => EmbeddedFiles::new(&script.directory),
    };
    let mut files = files.with_terms(&script.policy);
    let read = mcp::read(&whole, |object| result(object, &mut files));
    for remark in files.remarks() {
        tracing::warn!(script = %script.path, "{remark}");
    }
    read
}

/// Embeds the files that an output names, for a server on another machine that makes the result.
pub(crate) async fn embed_files(script: &Arc<Script>, outcome: Outcome) -> Outcome {
    let script = Arc::clone(script);
    let unchanged = outcome.clone();
    let embed = move || {
        let mut outcome = outcome;
        let mut files = EmbeddedFiles::new(&script.directory).with_terms(&script.policy);
        if let Ok(whole) = json_output::whole(&outcome.stdout)
            && let Some(text) = mcp::embed_files(&whole, &mut files)
        {
            let stdout = &mut outcome.stdout;
            stdout.total_bytes = text.len() as u64;
            stdout.head = text.into();
            stdout.tail.clear();
            stdout.terminal = None;
        }
        for remark in files.remarks() {
            tracing::warn!(script = %script.path, "{remark}");
        }
        outcome
    };
    tokio::task::spawn_blocking(embed)
        .await
        .unwrap_or_else(|error| {
            tracing::error!(%error, "failed to embed the files of an output");
            unchanged
        })
}

fn parse_json<R>(
    outcome: &Outcome,
    result: impl FnOnce(&RawValue) -> R,
) -> Result<RunResult<R>, OutputError> {
    let whole = json_output::require_output(outcome)?;
    json_output::parse_value(&whole).map(|value| RunResult::Complete(result(value)))
}

/// Turns a failure into an error, for a method whose results cannot express failures.
fn or_error<R>(
    script: &Script,
    outcome: &Outcome,
    read: Result<RunResult<R>, OutputError>,
    failure: impl FnOnce() -> ErrorObject,
) -> RunResult<R> {
    match read {
        Ok(RunResult::Refused(error)) => RunResult::Refused(error),
        _ if !outcome.success() => RunResult::Refused(failure()),
        Ok(run_result) => run_result,
        Err(fault) => RunResult::Refused(ErrorObject::internal_error(describe_invalid(
            script, &fault,
        ))),
    }
}

/// Describes an invalid output to its reader, and logs it for the operator.
fn describe_invalid(script: &Script, fault: &OutputError) -> String {
    tracing::warn!(script = %script.path, "invalid output: {fault}");
    format!(
        "The output of the script `{}` is not valid: {fault}",
        script.path
    )
}

/// Returns the error for a failed run, with the reason that the script gave.
fn failure_error(script: &Script, outcome: &Outcome) -> ErrorObject {
    let exit = Exit::of(outcome);
    let how = with_last_words(&exit, outcome);
    tracing::warn!(script = %script.path, "the script failed with {how}");
    let subject = format!("the script `{}`", script.path);
    ErrorObject::internal_error(describe_failure_alone(&subject, outcome, &exit))
}
