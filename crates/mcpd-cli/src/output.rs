//! Output for people and pipes: results on stdout, remarks on stderr. The stdio transport uses
//! neither; stdout carries its messages.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, ErrorKind, IsTerminal as _, Write as _};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context as _, bail};
use mcpd_scriptspec::is_hidden;
use mcpd_service::stderr;
use serde::Serialize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Writes a result verbatim.
pub(crate) fn write(bytes: &[u8]) -> anyhow::Result<()> {
    stderr::flush_before_answer();
    let mut stdout = io::stdout().lock();
    unless_closed(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

/// Writes a result of mcpd's own, in colour if the terminal and the user want it.
pub(crate) fn write_styled(text: &str) -> anyhow::Result<()> {
    stderr::flush_before_answer();
    let mut stdout = anstream::stdout().lock();
    unless_closed(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    )
}

/// Writes a result as indented JSON.
pub(crate) fn write_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value).context("encode the answer")?;
    text.push('\n');
    write(text.as_bytes())
}

/// Writes a text, with the final newline that a terminal needs.
pub(crate) fn write_text(text: &str) -> anyhow::Result<()> {
    let newline = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    write(format!("{text}{newline}").as_bytes())
}

/// Writes the text of a script or a server. A terminal gets no control characters of it, which
/// could fool its user, unless they are wanted.
pub(crate) fn write_foreign(text: &str, is_raw: bool) -> anyhow::Result<()> {
    match is_raw || !io::stdout().is_terminal() {
        true => write_text(text),
        false => write_text(&visible(text)),
    }
}

/// Writes bytes as [`write_foreign`] writes a text.
pub(crate) fn write_foreign_bytes(bytes: &[u8], is_raw: bool) -> anyhow::Result<()> {
    match is_raw || !io::stdout().is_terminal() {
        true => write(bytes),
        false => write_text(&visible(&String::from_utf8_lossy(bytes))),
    }
}

/// Text in which control characters are replaced, except line ends and tabs, and characters that
/// turn or hide what follows. Marks that belong to the spelling of a text remain.
pub(crate) fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let is_mark = |char| matches!(char, '\u{ad}' | '\u{61c}' | '\u{200e}' | '\u{200f}');
    let is_plain = |char: char| {
        let is_obeyed = char.is_control() || is_hidden(char) && !is_mark(char);
        !is_obeyed || matches!(char, '\n' | '\t')
    };
    let shown = |char| if is_plain(char) { char } else { '\u{fffd}' };
    text.chars().map(shown).collect()
}

/// Writes a remark that quotes a script or a server, to a terminal without control characters.
pub(crate) fn note_foreign(text: &str) {
    match io::stderr().is_terminal() {
        true => note(&visible(text)),
        false => note(text),
    }
}

/// Reports an error.
pub(crate) fn error(message: &str) {
    note(&format!("mcpd: error: {message}\n"));
}

/// Writes a remark, in colour if the terminal and the user want it.
pub(crate) fn note_styled(text: &str) {
    if has_colours() {
        note(text);
    } else {
        note(&strip_str(text).to_string());
    }
}

/// Returns whether standard error has colours: the terminal supports
/// them, and the user wants them.
pub(crate) fn has_colours() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// A command as it is typed into a shell.
pub(crate) fn shell_command<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    // Words from files and flags have no NUL, which is the only unquotable character.
    shlex::try_join(words).unwrap_or_default()
}

/// Clears the terminal at stdout before a new result; output to a file or a pipe goes on.
pub(crate) fn clear_screen() -> anyhow::Result<()> {
    const CLEAR: &[u8] = b"\x1b[2J\x1b[3J\x1b[H";
    if io::stdout().is_terminal() {
        write(CLEAR)?;
    }
    Ok(())
}

/// Asks a question at the terminal.
///
/// # Errors
///
/// There is none: the `attempt` fails, and `--yes` is the way to `act` all the same.
pub(crate) fn confirm(question: &str, attempt: &str, act: &str) -> anyhow::Result<bool> {
    if !can_ask() {
        bail!("{attempt}: there is no terminal to ask at; add `--yes` to {act}");
    }
    let is_agreed = ask(question)?;
    if !is_agreed {
        note("nothing changed\n");
    }
    Ok(is_agreed)
}

/// Returns whether there is a terminal to ask at.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal()
}

/// Asks a question at the terminal, and returns whether the answer is yes.
pub(crate) fn ask(question: &str) -> anyhow::Result<bool> {
    note_foreign(question);
    let mut answer = String::new();
    io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes a remark to standard error.
pub(crate) fn note(text: &str) {
    stderr::write(text.as_bytes());
}

/// Ignores a closed pipe: its reader has what it wants, as in `mcpd list DIR | head -1`.
pub(crate) fn unless_closed(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("write to stdout"),
    }
}

/// Width of the terminal at stdout, in columns.
pub(crate) fn columns() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// Formats two columns, the second shortened to `columns` in all.
pub(crate) fn table<'a>(
    rows: impl Iterator<Item = (&'a str, &'a str)> + Clone,
    columns: Option<usize>,
) -> String {
    let first_column = rows
        .clone()
        .map(|(first, _)| first.width())
        .max()
        .unwrap_or(0);
    let mut table = String::new();
    for (first, second) in rows {
        let (first, second) = (printable(first), &printable(second));
        let gap = " ".repeat(first_column - first.width() + 2);
        let second = match columns {
            Some(columns) => shorten(second, columns.saturating_sub(first_column + 2)),
            None => second.to_owned(),
        };
        writeln!(table, "{}", format!("{first}{gap}{second}").trim_end())
            .expect("a string takes everything");
    }
    table
}

/// Text without hidden characters, which a stranger may have put there to fool a terminal.
pub(crate) fn printable(text: &str) -> String {
    let is_plain = |char: char| !(char.is_control() || is_hidden(char)) || char == '\n';
    let shown = |char| if is_plain(char) { char } else { '\u{fffd}' };
    text.chars().map(shown).collect()
}

/// Text of a stranger for review: characters that a terminal hides or obeys are escaped.
pub(crate) fn revealed(text: &str) -> String {
    let shown = text.chars().map(|char| match char {
        '\n' | '\t' => char.to_string(),
        char if is_hidden(char) || char.is_control() => char.escape_unicode().to_string(),
        char => char.to_string(),
    });
    shown.collect()
}

/// Shortens `text` to `columns`, with an ellipsis.
fn shorten(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |char: &char| {
        used += char.width().unwrap_or(0);
        used <= columns
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_of_others_are_replaced() {
        let text = "a\u{1b}[2J\u{9b}m\u{7}\u{202e}\u{200b}\u{e0041}\n";
        assert_eq!(
            printable(text),
            "a\u{fffd}[2J\u{fffd}m\u{fffd}\u{fffd}\u{fffd}\u{fffd}\n"
        );
        assert_eq!(visible(text), printable(text));
        assert_eq!(visible("\u{5d0}\u{200f}\tb\r\n"), "\u{5d0}\u{200f}\tb\n");
        assert_eq!(revealed("\u{1b}\u{202e}\r"), "\\u{1b}\\u{202e}\\u{d}");
    }

    #[track_caller]
    fn check(columns: Option<usize>, expected: &str) {
        let rows = [("a", "says hello"), ("größe", "日本語"), ("c", "")];
        assert_eq!(table(rows.into_iter(), columns), expected);
    }

    #[test]
    fn table_columns_align_in_any_writing_system() {
        check(None, "a      says hello\ngröße  日本語\nc\n");
    }

    #[test]
    fn table_row_is_shortened_to_the_terminal() {
        check(Some(13), "a      says …\ngröße  日本語\nc\n");
        check(Some(11), "a      say…\ngröße  日…\nc\n");
        check(Some(3), "a      …\ngröße  …\nc\n");
    }
}
