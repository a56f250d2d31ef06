//! Characters of a command in sequence. A backslash before a newline joins two lines, except in
//! verbatim reads.

/// Rest of a text.
#[derive(Debug)]
pub(super) struct Text {
    chars: Vec<char>,
    next: usize,
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            next: 0,
        }
    }
}

impl Text {
    pub(super) fn peek(&mut self) -> Option<char> {
        while self.chars[self.next..].starts_with(&['\\', '\n']) {
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
        self.next += 1;
        Some(next)
    }

    fn peek_written(&self) -> Option<char> {
        self.chars.get(self.next).copied()
    }

    /// Returns the rest of a line without its end. Joins lines unless `as_written`.
    pub(super) fn line(&mut self, as_written: bool) -> Option<String> {
        self.peek_written()?;
        let mut line = String::new();
        loop {
            let next = if as_written {
                self.next_written()
            } else {
                self.next()
            };
            match next {
                None | Some('\n') => return Some(line),
                Some('\\') if !as_written => {
                    line.push('\\');
                    line.extend(self.next_written());
                }
                Some(char) => line.push(char),
            }
        }
    }

    /// Skips the rest of a line, but not its end.
    pub(super) fn skip_line(&mut self) {
        while self.peek_written().is_some_and(|char| char != '\n') {
            self.next += 1;
        }
    }
}
