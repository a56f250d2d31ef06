//! The result of a command: a message where there is something to say, then what it printed, each stream by itself.

use mcpd_exec::{Captured, Ending, Outcome, Stream};
use mcpd_protocol::{CallToolResult, ContentBlock};

use super::exit::{Exit, explanation};
use super::{rest, text};
use crate::archive::Shelf;

/// What the caller gets for a command that has run.
///
/// Must be called on a tokio runtime.
pub(crate) fn command_result(outcome: &Outcome, shelf: &Shelf) -> CallToolResult {
    let message = message(outcome).map(ContentBlock::text);
    let mut content: Vec<_> = message.into_iter().collect();
    content.extend(printed(Stream::Stdout, &outcome.stdout, shelf));
    content.extend(printed(Stream::Stderr, &outcome.stderr, shelf));
    let mut result = CallToolResult::new(content);
    if !outcome.success() {
        text::mark_failure(&mut result, &Exit::of_any_program(outcome));
    }
    let stdout = &outcome.stdout;
    text::note_totals(&mut result.meta, stdout.total_bytes, stdout.omitted_bytes);
    result
}

/// What there is to say beside the output.
fn message(outcome: &Outcome) -> Option<String> {
    let is_silent = outcome.stdout.total_bytes + outcome.stderr.total_bytes == 0;
    match outcome.ending {
        Ending::Exited(0) if is_silent => {
            Some("The command succeeded and printed nothing.".to_owned())
        }
        Ending::Exited(0) => None,
        Ending::Exited(code) => Some(format!("The command failed with exit code {code}.")),
        _ => explanation("The command", outcome, is_silent),
    }
}

/// One stream, and where its rest can be read. Nothing if nothing was printed there.
fn printed(stream: Stream, output: &Captured, shelf: &Shelf) -> Vec<ContentBlock> {
    if output.total_bytes == 0 {
        return Vec::new();
    }
    let mut content = vec![ContentBlock::text(text::of(output))];
    if output.omitted_bytes > 0 {
        content.extend(rest::content(stream, output, shelf));
    }
    content
}
