//! Notes on a run beside its output. They follow it, each in a separate content block with a
//! mark, so that a reader can tell the two apart.

use mcpd_exec::{Captured, Ending, Level, Outcome};
use mcpd_protocol::content::ContentBlock;
use mcpd_protocol::meta::Meta;
use mcpd_protocol::method::CallToolResult;
use serde_json::json;

use super::exit::describe_ending;
use super::text::tail;
use crate::observe::ending::Exit;

/// Member of a block's `_meta` that marks it as a note.
const NOTE_KEY: &str = "mcpd/note";

/// Returns a note.
fn note(text: impl Into<String>) -> ContentBlock {
    let mut block = ContentBlock::text(text);
    if let ContentBlock::Text(content) = &mut block {
        let mut meta = Meta::new();
        meta.insert(NOTE_KEY.to_owned(), json!(true));
        content.meta = Some(meta);
    }
    block
}

/// Returns whether `block` is a note on a run, and not output.
pub(crate) fn is_note(block: &ContentBlock) -> bool {
    let ContentBlock::Text(content) = block else {
        return false;
    };
    let meta = content.meta.as_ref();
    meta.is_some_and(|meta| meta.contains_key(NOTE_KEY))
}

/// Describes a failed run, with the end of its stderr and with `subject` as the subject.
pub(crate) fn describe_failure(subject: &str, outcome: &Outcome, exit: &Exit) -> String {
    describe_with(subject, outcome, exit, &[("stderr", &outcome.stderr)])
}

/// Describes a failed run to a reader without its stdout: the end of stdout follows if stderr is
/// empty.
pub(crate) fn describe_failure_alone(subject: &str, outcome: &Outcome, exit: &Exit) -> String {
    let streams = [("stderr", &outcome.stderr), ("stdout", &outcome.stdout)];
    describe_with(subject, outcome, exit, &streams)
}

/// Describes a failed run with the end of the first of `streams` that has any text.
fn describe_with(
    subject: &str,
    outcome: &Outcome,
    exit: &Exit,
    streams: &[(&str, &Captured)],
) -> String {
    let ending = describe_ending(subject, outcome, exit);
    let ends = streams.iter().map(|(name, stream)| (name, tail(stream)));
    let mut ends = ends.filter(|(_, end)| !end.is_empty());
    match ends.next() {
        Some((name, end)) => format!("{ending} The end of its {name}:\n{end}"),
        None if outcome.stdout.total_bytes == 0 => format!("{ending} It printed nothing."),
        None => ending,
    }
}

/// Describes a run that succeeded without output.
pub(super) fn describe_silence(subject: &str) -> String {
    format!("{subject} succeeded and printed nothing.")
}

/// Adds the note on a failure after the output, if there is any.
pub(super) fn add_failure(result: &mut CallToolResult, text: String) {
    if is_silent(result) {
        result.content.clear();
    }
    result.content.push(note(text));
}

/// Replaces an empty text by a note; some models refuse to read an empty one.
pub(super) fn replace_silence(result: &mut CallToolResult, subject: &str) {
    if is_silent(result) {
        result.content = vec![note(describe_silence(subject))];
    }
}

fn is_silent(result: &CallToolResult) -> bool {
    let is_empty =
        |block: &ContentBlock| matches!(block, ContentBlock::Text(text) if text.text.is_empty());
    result.content.iter().all(is_empty)
}

/// Returns the note on processes that a run has left behind, if there are any.
pub(super) fn leftovers(subject: &str, outcome: &Outcome) -> Option<ContentBlock> {
    // A stopped run was ended with all of its processes, which its note says already.
    if !matches!(outcome.ending, Ending::Exited(_) | Ending::Signaled { .. }) {
        return None;
    }
    let (processes, verb) = match outcome.leftovers? {
        0 => return None,
        1 => ("1 process".to_owned(), ["was", "is"]),
        processes => (format!("{processes} processes"), ["were", "are"]),
    };
    let subject = subject.to_lowercase();
    let [past, present] = verb;
    Some(note(match outcome.enforced.level {
        Level::None => format!("{processes} that {subject} started {present} still running."),
        _ => format!("{processes} that {subject} left running {past} ended with it."),
    }))
}
