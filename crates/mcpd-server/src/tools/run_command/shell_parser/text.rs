//! Characters of a command in sequence. A backslash before a newline joins two lines, except in
//! verbatim reads.

/// Rest of a text.
#[derive(Debug)]
pub(super) struct Text {
    text: String,
    /// Offset of the next character.
    next: usize,
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            next: 0,
        }
    }
}

impl Text {
    pub(super) fn peek(&mut self) -> Option<char> {
        while self.written().starts_with("\\\n") {
            self.next += 2;
        }
        self.peek_written()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        self.peek();
        self.next_written()
    }

    pub(super) fn next_if(&mut self, wanted: impl FnOnce(char) -> bool) -> Option<char> {
        self.peek().filter(|char| wanted(*char))?;
        self.next_written()
    }

    pub(super) fn take(&mut self, wanted: char) -> bool {
        self.next_if(|char| char == wanted).is_some()
    }

    /// Returns the next character verbatim: within single quotes, or after a backslash.
    pub(super) fn next_written(&mut self) -> Option<char> {
        let next = self.peek_written()?;
        self.next += next.len_utf8();
        Some(next)
    }

    fn peek_written(&self) -> Option<char> {
        self.written().chars().next()
    }

    /// Returns the rest verbatim.
    pub(super) fn written(&self) -> &str {
        &self.text[self.next..]
    }

    /// Skips `length` bytes.
    pub(super) fn skip(&mut self, length: usize) {
        self.next += length;
    }

    /// Skips the rest of a line, but not its end.
    pub(super) fn skip_line(&mut self) {
        let rest = self.written();
        self.next += rest.find('\n').unwrap_or(rest.len());
    }
}
