//! Words as they are typed into a shell.

/// Quotes words, and joins them to a command.
pub(crate) fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    // No path and no flag has a NUL, which is the only unquotable character.
    shlex::try_join(words).unwrap_or_default()
}
