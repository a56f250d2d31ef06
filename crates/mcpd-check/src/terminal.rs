//! Texts for a terminal: aligned, and without characters that a terminal obeys or hides, which a
//! stranger may have put there to fool its user.

use std::fmt::Write as _;

use mcpd_scriptspec::is_hidden;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Returns whether a terminal acts on a character, or hides it.
pub(crate) fn is_obeyed(char: char) -> bool {
    char.is_control() || is_hidden(char)
}

/// Text in which control characters are replaced, except line ends and tabs, and characters that
/// turn or hide what follows. Marks that belong to the spelling of a text remain.
#[must_use]
pub fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let is_mark = |char| matches!(char, '\u{ad}' | '\u{61c}' | '\u{200e}' | '\u{200f}');
    let is_plain = |char: char| {
        let is_obeyed = char.is_control() || is_hidden(char) && !is_mark(char);
        !is_obeyed || matches!(char, '\n' | '\t')
    };
    let shown = |char| if is_plain(char) { char } else { '\u{fffd}' };
    text.chars().map(shown).collect()
}

/// Formats two columns, the second shortened to `columns` in all.
#[must_use]
pub fn table<'a>(
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

/// Text without hidden characters.
#[must_use]
pub fn printable(text: &str) -> String {
    let is_plain = |char| !is_obeyed(char) || char == '\n';
    let shown = |char| if is_plain(char) { char } else { '\u{fffd}' };
    text.chars().map(shown).collect()
}

/// Text of a stranger for review: characters that a terminal hides or obeys are escaped.
#[must_use]
pub fn revealed(text: &str) -> String {
    let shown = text.chars().map(|char| match char {
        '\n' | '\t' => char.to_string(),
        char if is_obeyed(char) => char.escape_unicode().to_string(),
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
