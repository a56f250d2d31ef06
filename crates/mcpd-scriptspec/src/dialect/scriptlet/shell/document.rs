//! Here-documents of shells: their delimiters, and the expansions in them.

use super::{ESCAPED, ShellFiller, placeholders, variable};
use crate::shell::HereDocument;

impl ShellFiller<'_> {
    /// Reads `<<` and the delimiter of a document.
    pub(super) fn document(&mut self) {
        let rest = self.rest();
        let is_indented = rest[2..].starts_with('-');
        let prefix = if is_indented { 3 } else { 2 };
        let blank = rest[prefix..].len() - rest[prefix..].trim_start_matches([' ', '\t']).len();
        let word = &rest[prefix + blank..];
        let mut delimiter = String::new();
        let mut length = word.len();
        let mut quote = None;
        for (place, char) in word.char_indices() {
            match char {
                '\'' | '"' if quote.is_none() => quote = Some(char),
                _ if quote == Some(char) => quote = None,
                '\\' if quote.is_none() => {}
                _ if quote.is_none() && " \t\n;|&<>()".contains(char) => {
                    length = place;
                    break;
                }
                _ => delimiter.push(char),
            }
        }
        let word = &word[..length];
        let is_quoted = word.contains(['\'', '"', '\\']);
        // A delimiter may continue on the next line, and expansions in it are none.
        let is_unclear = word.ends_with('\\') || word.contains(['\n', '$', '`']);
        let total = prefix + blank + length;
        // `<<` alone is a bit shift, or a mistake.
        if !delimiter.is_empty() {
            let document = HereDocument::new(delimiter, is_quoted, is_indented);
            self.documents.push_back(document);
        }
        self.is_unclear |= is_unclear;
        self.copy(total);
    }

    /// Reads text in which only variables are expanded.
    pub(super) fn copy_expanded(&mut self, length: usize) {
        let code = self.code;
        let (start, end) = (self.at, self.at + length);
        for (name, span) in placeholders(&code[start..end]) {
            self.copy(start + span.start - self.at);
            self.output.push_str(&format!("${{{}}}", variable(name)));
            let before = &code[start..self.at];
            let backslashes = before.len() - before.trim_end_matches('\\').len();
            let fault = (backslashes % 2 == 1).then_some(ESCAPED);
            self.add_placeholder(name.to_owned(), self.at, span.len(), fault);
            self.at += span.len();
        }
        self.copy(end - self.at);
    }
}

/// Returns whether the body of a document contains expansions besides variables.
pub(super) fn has_commands(body: &str) -> bool {
    ["$(", "${", "$[", "`"]
        .iter()
        .any(|sign| body.contains(sign))
}
