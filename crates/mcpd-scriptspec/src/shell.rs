//! Here-documents of shells, for all readers of shell code. What else a reader makes of quotes and
//! expansions depends on its question; where a document ends does not.

/// Here-document, as `<<` or `<<-` and a word announce it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HereDocument {
    /// Its last line.
    pub delimiter: String,
    /// The delimiter was quoted: the body is plain text.
    pub is_quoted: bool,
    /// Tabs before its lines are stripped, after `<<-`.
    pub is_indented: bool,
}

impl HereDocument {
    /// Creates the document that ends with the line `delimiter`.
    #[must_use]
    pub fn new(delimiter: String, is_quoted: bool, is_indented: bool) -> Self {
        Self {
            delimiter,
            is_quoted,
            is_indented,
        }
    }

    /// Reads the document at the start of `text`: its body, with the lines joined that end with a
    /// backslash, unless it is plain text, and its length in `text` with its last line.
    ///
    /// ```
    /// use mcpd_scriptspec::shell::HereDocument;
    ///
    /// let document = HereDocument::new("END".to_owned(), false, false);
    /// let text = "one \\\nEND\nEND\nrm x\n";
    /// let (body, length) = document.read(text);
    /// assert_eq!((&*body, &text[length..]), ("one END\n", "rm x\n"));
    /// ```
    #[must_use]
    pub fn read(&self, text: &str) -> (String, usize) {
        let mut body = String::new();
        let mut length = 0;
        while length < text.len() {
            let start = body.len();
            length += self.read_line(&text[length..], &mut body);
            let line = body[start..].trim_end_matches('\n');
            let line = match self.is_indented {
                true => line.trim_start_matches('\t'),
                false => line,
            };
            if line == self.delimiter {
                body.truncate(start);
                break;
            }
        }
        (body, length)
    }

    /// Appends the first line of `text` to `body`. Returns its length in `text`.
    fn read_line(&self, text: &str, body: &mut String) -> usize {
        let mut chars = text.char_indices();
        while let Some((place, char)) = chars.next() {
            match char {
                '\n' => {
                    body.push('\n');
                    return place + 1;
                }
                '\\' if !self.is_quoted => match chars.next() {
                    Some((_, '\n')) => {}
                    escaped => {
                        body.push('\\');
                        body.extend(escaped.map(|(_, char)| char));
                    }
                },
                _ => body.push(char),
            }
        }
        text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(operator: &str, text: &str, body: &str, rest: &str) {
        let is_quoted = operator.ends_with("'E'");
        let is_indented = operator.starts_with("<<-");
        let document = HereDocument::new("E".to_owned(), is_quoted, is_indented);
        let (read, length) = document.read(text);
        assert_eq!((&*read, &text[length..]), (body, rest), "{operator} {text}");
    }

    #[test]
    fn here_document_ends_at_its_delimiter() {
        check("<<E", "a\n E\nE \nE\nb", "a\n E\nE \n", "b");
        check("<<E", "\tE\nE", "\tE\n", "");
        check("<<-E", "\ta\n\t\tE\nb", "\ta\n", "b");
        check("<<E", "a\nb", "a\nb", "");
        check("<<E", "", "", "");
        check("<<E", "E\r\nE\n", "E\r\n", "");
    }

    #[test]
    fn line_after_a_backslash_does_not_end_a_document() {
        check("<<E", "a\\\nE\nE\nb", "aE\n", "b");
        check("<<E", "a\\\\\nE\nb", "a\\\\\n", "b");
        check("<<E", "\\\nE\nb", "", "b");
        check("<<'E'", "a\\\nE\nb", "a\\\n", "b");
        check("<<E", "a\\", "a\\", "");
    }
}
