//! Output as text: what there is to read, and what is said where there is nothing.

use mcpd_exec::{Captured, Outcome, Stream};
use mcpd_protocol::meta::ResultMeta;
use mcpd_protocol::{CallToolResult, ContentBlock};
use serde_json::json;

use super::exit::{Exit, explanation};
use super::rest;
use crate::archive::Shelf;

/// How much of the beginning and of the end of an output is given as text when it was meant to be JSON, in
/// bytes each.
pub(super) const KEPT: usize = 64 * 1024;

/// How much of stderr a result repeats when the script printed nothing else, in bytes.
const STDERR_TAIL: usize = 4096;

/// What the caller of a tool gets for a run whose output is text, of which `stdout` is shown.
pub(super) fn result(outcome: &Outcome, stdout: &Captured, shelf: &Shelf) -> CallToolResult {
    let text = of(stdout);
    let exit = Exit::of(outcome);
    let (text, cut) = if text.is_empty() && !outcome.success() {
        // A script that fails silently on stdout has usually said why on stderr.
        let stderr = &outcome.stderr;
        let kept = stderr.head.len() + stderr.tail.len();
        let is_cut = kept > STDERR_TAIL || stderr.omitted_bytes > 0;
        (tail(stderr), is_cut.then_some((Stream::Stderr, stderr)))
    } else {
        let is_cut = stdout.omitted_bytes > 0;
        (text, is_cut.then_some((Stream::Stdout, &outcome.stdout)))
    };
    let is_silent = text.is_empty() && !outcome.success();
    let message =
        explanation("The script", outcome, is_silent).or_else(|| is_silent.then(|| silence(&exit)));
    let texts = message.into_iter().chain((!is_silent).then_some(text));
    let mut content: Vec<_> = texts.map(ContentBlock::text).collect();
    if let Some((stream, output)) = cut {
        content.extend(rest::content(stream, output, shelf));
    }
    let mut result = CallToolResult::new(content);
    if !outcome.success() {
        mark_failure(&mut result, &exit);
    }
    note_totals(&mut result.meta, stdout.total_bytes, stdout.omitted_bytes);
    result
}

/// The result of a run elsewhere, of which nothing is known but what it printed and its exit code.
pub(crate) fn exit_result(stdout: String, code: i32) -> CallToolResult {
    let mut result = CallToolResult::text(stdout);
    if code != 0 {
        mark_failure(&mut result, &Exit::with_code(code));
    }
    result
}

/// Says how much of an output is left out, if anything is.
pub(crate) fn note_totals(meta: &mut ResultMeta, total: u64, omitted: u64) {
    if omitted > 0 {
        let totals = json!({"totalBytes": total, "omittedBytes": omitted});
        meta.other.insert("mcpd/output".to_owned(), totals);
    }
}

/// Makes a result one of a run that failed, and says how.
pub(super) fn mark_failure(result: &mut CallToolResult, exit: &Exit) {
    result.is_error = Some(true);
    result.meta.other.insert(
        "mcpd/exit".to_owned(),
        json!({"code": exit.code, "name": exit.name}),
    );
}

/// The output with no more of it than is given as text.
pub(super) fn shortened(stdout: &Captured) -> Captured {
    let mut shortened = stdout.clone();
    let (head, tail) = (&mut shortened.head, &mut shortened.tail);
    if head.len() > 2 * KEPT {
        let mut rest = head.split_off(KEPT);
        if tail.is_empty() {
            *tail = rest.split_off(rest.len() - KEPT);
        }
        shortened.omitted_bytes += rest.len() as u64;
    }
    shortened
}

/// An output as text.
pub(super) fn of(output: &Captured) -> String {
    let mut text = output.to_text_lossy();
    text.truncate(without_line_end(&text).len());
    text
}

/// The text without the newline that `echo` ends every output with, and that nobody means.
pub(super) fn without_line_end(text: &str) -> &str {
    let text_alone = text.strip_suffix("\r\n");
    text_alone.or(text.strip_suffix('\n')).unwrap_or(text)
}

/// What there is to say of a failure without a word.
fn silence(exit: &Exit) -> String {
    format!(
        "The script ended with exit code {} ({}) and printed nothing.",
        exit.code, exit.name
    )
}

/// The end of a stream.
pub(crate) fn tail(stream: &Captured) -> String {
    last_lines(stream.to_text_lossy().trim_end(), STDERR_TAIL).to_owned()
}

/// Whole lines from the end of a text that come to no more than so many bytes, or a part of the last one if that has more.
fn last_lines(text: &str, most: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(most));
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
    fn the_end_of_a_text_begins_with_a_line() {
        for (most, end) in [
            (100, "one\ntwo\nthree"),
            (9, "two\nthree"),
            (8, "three"),
            (5, "three"),
            (3, "ree"),
        ] {
            assert_eq!(last_lines("one\ntwo\nthree", most), end, "{most}");
        }
    }

    #[test]
    fn one_newline_is_not_part_of_the_answer() {
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
