//! Untrusted text in messages and metadata: detection of hidden characters, and safe excerpts.

use std::{
    fmt::{self, Write as _},
    ops::Range,
    str::Utf8Error,
};

/// The first bytes that are not UTF-8, and a message about them.
pub(crate) fn not_utf8(bytes: &[u8], error: Utf8Error) -> (Range<usize>, String) {
    let start = error.valid_up_to();
    let end = start + error.error_len().unwrap_or(bytes.len() - start);
    (start..end, format!("byte {start} is not UTF-8"))
}

/// Extends an empty span to one character: renderers of other formats need a visible one.
pub(crate) fn visible_span(text: &str, span: Range<usize>) -> Range<usize> {
    if !span.is_empty() {
        return span;
    }
    let (before, after) = text.split_at_checked(span.start).unwrap_or((text, ""));
    let next = after.chars().next().filter(|char| *char != '\n');
    let last = || before.trim_end().chars().next_back();
    match (next, last()) {
        (Some(next), _) => span.start..span.start + next.len_utf8(),
        (None, Some(last)) => {
            let end = before.trim_end().len();
            end - last.len_utf8()..end
        }
        (None, None) => span,
    }
}

/// Returns whether a character is hidden: control characters except line ends and tabs, direction
/// marks, invisible characters and tags.
///
/// The joiners U+200C and U+200D belong to the spelling of several writing
/// systems, and to many emoji.
#[must_use]
pub fn is_hidden(char: char) -> bool {
    match char {
        // Fast path for nearly all characters.
        ' '..='~' => false,
        '\n' | '\t' | '\r' => false,
        '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        // Letters and marks without a shape.
        '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' => {
            true
        }
        '\u{180b}'..='\u{180f}' | '\u{ffa0}' | '\u{1d173}'..='\u{1d17a}' => true,
        _ => char.is_control(),
    }
}

/// At most `max` characters of `text` on one line, with hidden ones escaped, and an
/// ellipsis for omitted text.
#[must_use]
pub fn excerpt(text: &str, max: usize) -> String {
    let mut excerpt = String::new();
    let mut chars = text.chars();
    for char in chars.by_ref().take(max) {
        if is_hidden(char) || char.is_control() {
            write!(excerpt, "\\u{{{:x}}}", u32::from(char))
                .expect("a string takes all that is written");
        } else {
            excerpt.push(char);
        }
    }
    if chars.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

/// Maximum length of a name in a message, in characters.
const MAX_NAME: usize = 64;

/// A name for a message, formatted only if the message is displayed.
pub(crate) fn name(text: &str) -> impl fmt::Display {
    fmt::from_fn(move |f| write!(f, "`{}`", excerpt(text, MAX_NAME)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_is_one_short_visible_line() {
        assert_eq!(excerpt("grüße", 5), "grüße");
        assert_eq!(excerpt("grüße", 4), "grüß…");
        assert_eq!(
            excerpt("a\n\u{202e}\u{1b}[2J", 99),
            "a\\u{a}\\u{202e}\\u{1b}[2J"
        );
    }

    #[test]
    fn empty_span_extends_to_a_visible_character() {
        for (text, at, seen) in [
            ("a = 'x", 6, 5..6),
            ("a = 'x\nb", 6, 5..6),
            ("a = ü", 4, 4..6),
            ("ab\n\n", 4, 1..2),
            ("", 0, 0..0),
        ] {
            assert_eq!(visible_span(text, at..at), seen, "{text:?}");
        }
        assert_eq!(visible_span("abc", 1..3), 1..3);
    }
}
