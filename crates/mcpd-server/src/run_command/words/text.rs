//! The characters of a command, one after the other. Two lines that a backslash joins are one, but for those who ask
//! for what is written.

/// What is left of a text.
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

    /// The next character where a backslash means nothing, or where one has just been read.
    pub(super) fn next_written(&mut self) -> Option<char> {
        let next = self.peek_written()?;
        self.next += 1;
        Some(next)
    }

    fn peek_written(&self) -> Option<char> {
        self.chars.get(self.next).copied()
    }

    /// The rest of a line, whose end is passed over. Lines are joined unless it is wanted `as_written`.
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

    /// Passes over the rest of a line, but not over its end.
    pub(super) fn skip_line(&mut self) {
        while self.peek_written().is_some_and(|char| char != '\n') {
            self.next += 1;
        }
    }
}
