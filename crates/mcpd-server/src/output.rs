//! From the outcome of a run to the result of its method. What a model reads about a run, it reads from
//! here.

use mcpd_exec::Outcome;
use mcpd_protocol::jsonrpc::ErrorObject;
use mcpd_protocol::{CallToolResult, ContentBlock, GetPromptResult, PromptMessage};
use mcpd_protocol::{ReadResourceResult, ResourceBody, ResourceContents, Role, Wire};
use serde_json::json;

use crate::interaction::Produced;
use crate::tool::Script;

mod exit;

/// How much of stderr a result repeats when the script printed nothing else, in bytes.
const STDERR_TAIL: usize = 4096;

/// The result of a tool.
pub(crate) async fn tool_result(_script: &Script, outcome: &Outcome) -> Produced<CallToolResult> {
    Produced::Complete(text_result(outcome))
}

/// The result of a prompt.
#[expect(dead_code, reason = "nothing serves prompts yet")]
pub(crate) async fn prompt_result(script: &Script, outcome: &Outcome) -> Produced<GetPromptResult> {
    if !outcome.success() {
        return Produced::Refused(failed(script));
    }
    let text = without_final_newline(outcome.stdout.to_text_lossy());
    let message = PromptMessage::new(Role::User, ContentBlock::text(text));
    Produced::Complete(GetPromptResult::new(vec![message]))
}

/// The result of reading `uri`, which a script answers for.
#[expect(dead_code, reason = "nothing serves the resources of scripts yet")]
pub(crate) async fn resource_result(
    script: &Script,
    uri: &str,
    outcome: &Outcome,
    wire: Wire,
) -> Produced<ReadResourceResult> {
    if exit::Exit::of(outcome).name == "not-found" {
        return Produced::Refused(ErrorObject::resource_not_found(uri, wire));
    }
    if !outcome.success() {
        return Produced::Refused(failed(script));
    }
    let text = without_final_newline(outcome.stdout.to_text_lossy());
    let contents = ResourceContents::new(uri, ResourceBody::Text(text));
    Produced::Complete(ReadResourceResult::new(vec![contents]))
}

/// Where only a result can be shown, the cause of a failure is for the operator's log.
fn failed(script: &Script) -> ErrorObject {
    ErrorObject::internal_error(format!("the script `{}` failed", script.path))
}

/// What the caller gets for a run that took place.
fn text_result(outcome: &Outcome) -> CallToolResult {
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
