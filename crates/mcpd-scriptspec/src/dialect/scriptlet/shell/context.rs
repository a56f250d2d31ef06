//! Context of a placeholder in a shell script: what the shell would do with text there.

/// Construct around the current position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShellContext {
    /// `( )` or `$( )`
    Brackets,
    /// `" "`
    Quotes,
    /// Two `` ` ``.
    Backticks,
    /// `${ }`
    Expansion,
    /// `(( ))` or `$(( ))`, with the number of open brackets inside.
    Arithmetic(usize),
    /// `[ ]` after a name, or of a pattern, which looks the same.
    Subscript,
    /// `[[ ]]`
    Test,
}

impl ShellContext {
    /// Returns whether the content has positions of its own.
    pub(super) fn has_commands(self) -> bool {
        matches!(self, Self::Brackets | Self::Backticks | Self::Test)
    }

    pub(super) fn evaluates_arithmetic(self) -> bool {
        matches!(self, Self::Arithmetic(_) | Self::Subscript)
    }
}

pub(super) fn line_length(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

pub(super) fn starts_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word)
        .is_some_and(|rest| rest.starts_with([' ', '\t', '\n', '\\']))
}
