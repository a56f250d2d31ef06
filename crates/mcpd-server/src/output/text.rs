//! Output as text: what there is to read, and what is said where there is nothing.

use mcpd_exec::{Captured, Outcome};
use mcpd_protocol::{CallToolResult, ContentBlock};
use serde_json::json;

use super::exit::Exit;

/// How much of the beginning and of the end of an output is given as text when it was meant to be JSON, in
/// bytes each.
pub(super) const KEPT: usize = 64 * 1024;

/// How much of stderr a result repeats when the script printed nothing else, in bytes.
const STDERR_TAIL: usize = 4096;

/// What the caller of a tool gets for a run whose output is text.
pub(super) fn result(outcome: &Outcome) -> CallToolResult {
    let text = of(&outcome.stdout);
    let exit = Exit::of(outcome);
    let mut content = Vec::new();
    content.extend(exit.explanation(outcome));
    if !text.is_empty() || (content.is_empty() && outcome.success()) {
        content.push(text);
    }
    if content.is_empty() {
        content.push(last_words(outcome, &exit));
    }
    let mut result = CallToolResult::new(content.into_iter().map(ContentBlock::text).collect());
    if !outcome.success() {
        mark_failure(&mut result, outcome);
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

/// Makes a result one of a run that failed, and says how.
pub(super) fn mark_failure(result: &mut CallToolResult, outcome: &Outcome) {
    let exit = Exit::of(outcome);
    result.is_error = Some(true);
    result.meta.other.insert(
        "mcpd/exit".to_owned(),
        json!({"code": exit.code, "name": exit.name}),
    );
}

/// The outcome with no more output than is given as text.
pub(super) fn shortened(outcome: &Outcome) -> Outcome {
    let mut shortened = outcome.clone();
    let Captured { head, tail, .. } = &mut shortened.stdout;
    if head.len() > 2 * KEPT {
        if tail.is_empty() {
            *tail = head.slice(head.len() - KEPT..);
        }
        head.truncate(KEPT);
    }
    shortened
}

/// An output as text.
pub(super) fn of(output: &Captured) -> String {
    let mut text = output.to_text_lossy();
    // `echo` ends every output with a newline that nobody means.
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

/// A script that fails silently on stdout has usually said why on stderr.
fn last_words(outcome: &Outcome, exit: &Exit) -> String {
    match tail(&outcome.stderr) {
        words if words.is_empty() => format!(
            "The script ended with exit code {} ({}) and printed nothing.",
            exit.code, exit.name
        ),
        words => words,
    }
}

/// The end of a stream.
pub(super) fn tail(stream: &Captured) -> String {
    let text = stream.to_text_lossy();
    let text = text.trim_end();
    let start = text.ceil_char_boundary(text.len().saturating_sub(STDERR_TAIL));
    text[start..].to_owned()
}
