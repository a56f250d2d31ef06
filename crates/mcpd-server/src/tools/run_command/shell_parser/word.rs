//! Words of a command, and the drafts that become words.

use super::grammar::is_grammar;

/// Word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools::run_command) enum Word {
    /// Known value.
    Known(String),
    /// Source text of a word whose value only the shell knows.
    Unknown(String),
}

impl Word {
    /// Value, or the source text of an unknown one.
    pub(in crate::tools::run_command) fn text(&self) -> &str {
        let (Self::Known(text) | Self::Unknown(text)) = self;
        text
    }

    pub(super) fn is_option(&self) -> bool {
        matches!(self, Self::Known(text) if text.starts_with('-'))
    }
}

/// Word under construction.
#[derive(Default)]
pub(super) struct WordDraft {
    /// Value, if it is known.
    pub(super) value: String,
    /// Source text, approximately.
    pub(super) written: String,
    pub(super) is_unknown: bool,
    pub(super) is_quoted: bool,
}

impl WordDraft {
    pub(super) fn push(&mut self, char: char) {
        self.value.push(char);
        self.written.push(char);
    }

    pub(super) fn push_unknown(&mut self, written: &str) {
        self.written.push_str(written);
        self.is_unknown = true;
    }

    /// Returns whether it is a descriptor number, if a redirection follows.
    pub(super) fn is_number(&self) -> bool {
        !self.is_quoted && !self.is_unknown && self.value.bytes().all(|byte| byte.is_ascii_digit())
    }
}

impl From<WordDraft> for Word {
    fn from(draft: WordDraft) -> Self {
        // These stand for themselves as words of their own.
        let is_plain = !draft.is_quoted && ["[", "[[", "{", "{}"].contains(&&*draft.written);
        match draft.is_unknown && !is_plain {
            true => Self::Unknown(draft.written),
            // A quoted keyword is an ordinary word.
            false if draft.is_quoted && is_grammar(&draft.value) => Self::Unknown(draft.written),
            false => Self::Known(draft.value),
        }
    }
}
