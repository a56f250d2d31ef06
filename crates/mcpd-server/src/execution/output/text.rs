//! Text output: its content, and a note in place of an empty one.

use mcpd_exec::{Captured, Outcome, Stream};
use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::meta::ResultMeta;
use mcpd_protocol::method::CallToolResult;
use serde_json::json;

use super::exit::{describe_exit, describe_hidden_paths};
use super::{note, truncation_note};
use crate::execution::archive::CallArchive;
use crate::observe::ending::Exit;

/// Maximum length of each end of an output that is given as text although it should be JSON, in
/// bytes.
pub(super) const MAX_TEXT_END: usize = 64 * 1024;

/// Member of a result's `_meta` with the number of processes that the run has left behind.
const LEFTOVERS: &str = "mcpd/leftovers";

/// Length of the end of stderr that the result of a failed run repeats, in bytes.
const STDERR_TAIL: usize = 4096;

/// Makes the result of a run whose output is text and that shows `stdout`.
pub(super) fn result(
    outcome: &Outcome,
    stdout: &Captured,
    archive: &CallArchive,
) -> CallToolResult {
    let mut result = CallToolResult::text(to_text(stdout));
    let omitted = stdout.terminal_view().omitted_bytes;
    if omitted > 0 {
        let rest = truncation_note::content(Stream::Stdout, &outcome.stdout, archive);
        result.content.extend(rest);
    }
    if outcome.success() {
        note::replace_silence(&mut result, "The script");
    }
    note_totals(&mut result.meta, stdout.total_bytes, omitted);
    result
}

/// Completes the result of a run with notes: its failure with the end of its stderr, and the
/// processes it left behind.
pub(super) fn add_notes(result: &mut CallToolResult, outcome: &Outcome, archive: &CallArchive) {
    if !outcome.success() {
        let exit = Exit::of(outcome);
        mark_failure(result, &exit);
        note::add_failure(result, note::describe_failure("The script", outcome, &exit));
        if links_stderr(outcome) {
            let rest = truncation_note::content(Stream::Stderr, &outcome.stderr, archive);
            result.content.extend(rest);
        }
        result
            .content
            .extend(describe_hidden_paths(outcome).map(ContentBlock::text));
    }
    if let Some(note) = note::leftovers("The script", outcome) {
        result.content.push(note);
        let processes = outcome.leftovers.into();
        (result.meta.other).insert(LEFTOVERS.to_owned(), processes);
    }
}

/// Returns whether the result of a run has only the end of its stderr, and a link to the whole.
pub(crate) fn links_stderr(outcome: &Outcome) -> bool {
    let stderr = outcome.stderr.terminal_view();
    let captured = stderr.head.len() + stderr.tail.len();
    !outcome.success() && (captured > STDERR_TAIL || stderr.omitted_bytes > 0)
}

/// Makes the result of a run elsewhere, of which only the output and the exit code are known.
pub(crate) fn exit_result(stdout: String, code: i32) -> CallToolResult {
    let mut result = CallToolResult::text(stdout);
    if code == 0 {
        note::replace_silence(&mut result, "The tool");
    } else {
        let exit = Exit::with_code(code);
        mark_failure(&mut result, &exit);
        note::add_failure(&mut result, describe_exit("The tool", &exit));
    }
    result
}

/// Reports the omitted part of an output, if there is one.
pub(crate) fn note_totals(meta: &mut ResultMeta, total: u64, omitted: u64) {
    if omitted > 0 {
        let totals = json!({"totalBytes": total, "omittedBytes": omitted});
        meta.other.insert("mcpd/output".to_owned(), totals);
    }
}

/// Marks a result as that of a failed run, with its exit.
pub(super) fn mark_failure(result: &mut CallToolResult, exit: &Exit) {
    result.is_error = Some(true);
    result.meta.other.insert(
        "mcpd/exit".to_owned(),
        json!({"code": exit.code, "name": exit.name}),
    );
}

/// Truncates the output to the length given as text.
pub(super) fn truncate(stdout: &Captured) -> Captured {
    let mut truncated = stdout.terminal_view().clone();
    let (head, tail) = (&mut truncated.head, &mut truncated.tail);
    if head.len() > 2 * MAX_TEXT_END {
        let mut rest = head.split_off(MAX_TEXT_END);
        if tail.is_empty() {
            *tail = rest.split_off(rest.len() - MAX_TEXT_END);
        }
        truncated.omitted_bytes += rest.len() as u64;
    }
    truncated
}

/// Returns an output as text.
pub(super) fn to_text(output: &Captured) -> String {
    let mut text = output.terminal_view().to_text_lossy();
    text.truncate(without_line_end(&text).len());
    text
}

/// Strips the newline at the end of an output, which `echo` adds.
pub(super) fn without_line_end(text: &str) -> &str {
    let text_alone = text.strip_suffix("\r\n");
    text_alone.or(text.strip_suffix('\n')).unwrap_or(text)
}

/// Returns the end of a stream.
pub(crate) fn tail(stream: &Captured) -> String {
    let text = stream.terminal_view().to_text_lossy();
    last_lines(text.trim_end(), STDERR_TAIL).to_owned()
}

/// Returns whole lines from the end of a text, at most `most` bytes, or a part of the last line
/// if that is longer.
fn last_lines(text: &str, max_bytes: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max_bytes));
    let (before, end) = text.split_at(start);
    match end.split_once('\n') {
        Some((_, lines)) if !before.is_empty() && !before.ends_with('\n') => lines,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tail_of_a_text_begins_with_a_line() {
        for (max_bytes, end) in [
            (100, "one\ntwo\nthree"),
            (9, "two\nthree"),
            (8, "three"),
            (5, "three"),
            (3, "ree"),
        ] {
            assert_eq!(last_lines("one\ntwo\nthree", max_bytes), end, "{max_bytes}");
        }
    }

    #[test]
    fn last_newline_is_stripped() {
        for (printed, answer) in [
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a\r", "a\r"),
            ("\n", ""),
            ("", ""),
        ] {
            assert_eq!(without_line_end(printed), answer, "{printed:?}");
        }
    }
}
