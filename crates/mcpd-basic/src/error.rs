//! Errors of compiling and running a program, located by bytes of the source. A
//! [`Fault`](crate::Fault) has line and column instead, for people.

use std::ops::Range;

use crate::limits::MAX_VALUE_DEPTH;

/// Range of bytes in the source.
pub(crate) type Span = Range<usize>;

#[derive(Debug)]
pub(crate) struct Error {
    /// Location; `None` until code that knows the tree adds it.
    pub(crate) span: Option<Span>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            span: None,
            message: message.into(),
            help: None,
        }
    }

    pub(crate) fn too_deep() -> Self {
        Self::new(format!(
            "lists and objects would be nested deeper than {MAX_VALUE_DEPTH} levels"
        ))
    }

    /// Adds a location unless there is one: the innermost is the best.
    #[must_use]
    pub(crate) fn at(mut self, span: &Span) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }

    /// Adds advice.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Makes the error for a read of a variable that is not in `known`.
pub(crate) fn no_variable<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let mut error = Error::new(format!("unknown variable `{name}`"));
    error.help = closest(name, known).map(|known| format!("did you mean `{known}`?"));
    error
}

/// Returns the word of `known` that was probably meant.
pub(crate) fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Maximum length of a compared word: longer ones take too long, and are rarely mistyped.
    const MAX_WORD_LENGTH: usize = 64;
    let is_short = |word: &str| word.len() <= MAX_WORD_LENGTH;
    known
        .filter(|candidate| is_short(word) && is_short(candidate))
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
