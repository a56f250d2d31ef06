//! Output for people and pipes: results on stdout, remarks on stderr. The stdio transport uses
//! neither; stdout carries its messages.

use std::io::{self, BufRead as _, ErrorKind, IsTerminal as _, Write as _};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use anyhow::{Context as _, bail};
use mcpd_check::terminal::{self, visible};
use mcpd_service::stderr;
use serde::Serialize;

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

/// Writes two columns, shortened to the terminal.
pub(crate) fn write_table<'a>(
    rows: impl Iterator<Item = (&'a str, &'a str)> + Clone,
) -> anyhow::Result<()> {
    write(terminal::table(rows, columns()).as_bytes())
}

/// Width of the terminal at stdout, in columns.
pub(crate) fn columns() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}
