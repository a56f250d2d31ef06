//! What goes wrong while a program is read or run, with the place of it as bytes of the source. A
//! [`Fault`](crate::Fault) says the same with line and column, for people.

use std::ops::Range;

use crate::limits::NESTING;

/// Bytes of the source.
pub(crate) type Span = Range<usize>;

#[derive(Debug)]
pub(crate) struct Error {
    /// `None` until somebody knows it who knows the tree.
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
            "lists and objects would be nested deeper than {NESTING} levels"
        ))
    }

    /// Says where, unless that is known already: the innermost place is the best.
    #[must_use]
    pub(crate) fn at(mut self, span: &Span) -> Self {
        self.span.get_or_insert_with(|| span.clone());
        self
    }

    /// Says what to do.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A variable that is read and is none of `known`.
pub(crate) fn no_variable<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let mut error = Error::new(format!("there is no variable `{name}`"));
    error.help = closest(name, known).map(|known| format!("did you mean `{known}`?"));
    error
}

/// The word of `known` that was probably meant.
pub(crate) fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer ones take too long to compare, and nobody mistypes them.
    const LONGEST: usize = 64;
    let is_short = |word: &str| word.len() <= LONGEST;
    known
        .filter(|candidate| is_short(word) && is_short(candidate))
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
