//! Result of a command: a message where one is needed, then the output, each stream separately.

use mcpd_exec::{Captured, Ending, Outcome, Stream};
use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::method::CallToolResult;

use super::exit::{describe_ending, describe_hidden_paths};
use super::{note, text, truncation_note};
use crate::execution::archive::CallArchive;
use crate::observe::ending::Exit;

/// Makes the result of a command that has run.
///
/// Must be called on a tokio runtime.
pub(crate) fn command_result(outcome: &Outcome, archive: &CallArchive) -> CallToolResult {
    let exit = Exit::of_any_program(outcome);
    let message = ending_message(outcome, &exit).map(ContentBlock::text);
    let mut content: Vec<_> = message.into_iter().collect();
    content.extend(stream_content(Stream::Stdout, &outcome.stdout, archive));
    content.extend(stream_content(Stream::Stderr, &outcome.stderr, archive));
    content.extend(note::leftovers("The command", outcome));
    content.extend(describe_hidden_paths(outcome).map(ContentBlock::text));
    let mut result = CallToolResult::new(content);
    if !outcome.success() {
        text::mark_failure(&mut result, &exit);
    }
    let stdout = &outcome.stdout;
    let omitted = stdout.terminal_view().omitted_bytes;
    text::note_totals(&mut result.meta, stdout.total_bytes, omitted);
    result
}

/// Returns the message to put before the output.
fn ending_message(outcome: &Outcome, exit: &Exit) -> Option<String> {
    let is_silent = outcome.stdout.total_bytes + outcome.stderr.total_bytes == 0;
    if outcome.success() {
        return is_silent.then(|| note::describe_silence("The command"));
    }
    let ending = describe_ending("The command", outcome, exit);
    Some(match (outcome.ending, is_silent) {
        (Ending::TimedOut { .. }, true) => format!("{ending} It had printed nothing before."),
        (Ending::TimedOut { .. }, false) => format!("{ending} Its output before that follows."),
        _ => ending,
    })
}

/// Returns the content of one stream, and a link to its rest; empty if nothing was printed there.
fn stream_content(stream: Stream, output: &Captured, archive: &CallArchive) -> Vec<ContentBlock> {
    if output.total_bytes == 0 {
        return Vec::new();
    }
    let mut content = vec![ContentBlock::text(text::to_text(output))];
    if output.terminal_view().omitted_bytes > 0 {
        content.extend(truncation_note::content(stream, output, archive));
    }
    content
}
