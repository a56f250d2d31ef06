//! Regular expressions with the semantics of JSON Schema: ECMA-262, matched anywhere in
//! the text, in linear time.

use std::fmt;

use regex::{Regex, RegexBuilder};

/// Maximum size of a compiled expression, in bytes.
const MAX_COMPILED: usize = 1 << 20;

/// A regular expression without look-around and back-references.
#[derive(Clone)]
pub struct Pattern {
    /// The declared expression; the compiled one is a translation.
    source: String,
    regex: Regex,
}

impl Pattern {
    pub(crate) fn new(source: &str) -> Option<Self> {
        let translated = jsonschema_regex::to_rust_regex(source).ok()?;
        let regex = RegexBuilder::new(&translated)
            .size_limit(MAX_COMPILED)
            .build()
            .ok()?;
        Some(Self {
            source: source.to_owned(),
            regex,
        })
    }

    /// The expression as declared.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.source)
    }
}
