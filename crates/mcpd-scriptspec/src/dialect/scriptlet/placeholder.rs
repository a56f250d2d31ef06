//! Placeholders `{{name}}` in code.

use crate::json::Span;

/// A placeholder found in code.
#[derive(Debug)]
pub(super) struct Placeholder {
    pub(super) name: String,
    /// Place in the code.
    pub(super) span: Span,
    /// Reason why no variable can replace it there.
    pub(super) fault: Option<&'static str>,
}

/// The placeholder at the start of a text: its name and its length.
pub(super) fn first(text: &str) -> Option<(&str, usize)> {
    let inside = text.strip_prefix("{{")?;
    let end = inside.find(|char: char| !is_part(char) && char != ' ')?;
    let name = inside[..end].trim_matches(' ');
    let is_whole = is_name(name) && inside[end..].starts_with("}}");
    is_whole.then_some((name, end + 4))
}

/// Returns whether an input can have this name.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(is_part)
}

fn is_part(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

/// All placeholders, anywhere in the code.
pub(super) fn placeholders(code: &str) -> impl Iterator<Item = (&str, Span)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(next) = code[at..].find("{{") {
            let start = at + next;
            match first(&code[start..]) {
                Some((name, length)) => {
                    at = start + length;
                    return Some((name, start..at));
                }
                None => at = start + 1,
            }
        }
        None
    })
}
