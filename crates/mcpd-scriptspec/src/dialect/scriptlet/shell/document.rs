//! Here-documents of shells: their delimiters, and the expansions in them.

use super::{ESCAPED, ShellFiller, placeholders, variable};

/// A here-document that begins on the next line.
#[derive(Debug)]
pub(super) struct HereDocument {
    pub(super) delimiter: String,
    pub(super) is_quoted: bool,
    /// Tabs may stand before its lines.
    pub(super) is_indented: bool,
}

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
                _ if quote.is_none() && (char.is_whitespace() || ";|&<>()".contains(char)) => {
                    length = place;
                    break;
                }
                _ => delimiter.push(char),
            }
        }
        let is_quoted = word[..length].contains(['\'', '"', '\\']);
        let total = prefix + blank + length;
        // `<<` alone is a bit shift, or a mistake.
        if !delimiter.is_empty() {
            self.documents.push_back(HereDocument {
                delimiter,
                is_quoted,
                is_indented,
            });
        }
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

impl HereDocument {
    /// Length of the document, including its last line.
    pub(super) fn length(&self, text: &str) -> usize {
        let mut length = 0;
        for line in text.split_inclusive('\n') {
            length += line.len();
            let line = line.trim_end_matches(['\r', '\n']);
            let line = if self.is_indented {
                line.trim_start_matches('\t')
            } else {
                line
            };
            if line == self.delimiter {
                break;
            }
        }
        length
    }
}

/// Returns whether a document contains expansions besides variables.
pub(super) fn has_commands(document: &str) -> bool {
    let document = document.replace("\\\n", "");
    ["$(", "${", "$[", "`"]
        .iter()
        .any(|sign| document.contains(sign))
}
