//! Takes the secrets of a source out of what it says, as is done with what scripts print. Exact matches only, and nothing
//! that is so short that it is found by chance.

use std::fmt::Display;
use std::sync::Arc;

use crate::policy::Redactor;

/// What a source was given that nobody else may read. Displayed nowhere: `[redacted NAME]` stands in its place.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    redactor: Option<Arc<Redactor>>,
    /// The names of those that are not looked for.
    short: Vec<String>,
}

impl Secrets {
    /// These, by their names.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let secrets: Vec<_> = secrets.into_iter().collect();
        let is_short = |secret: &&(&str, &str)| Redactor::new(std::iter::once(**secret)).is_none();
        let short = secrets.iter().filter(is_short);
        Self {
            short: short.map(|(name, _)| (*name).to_owned()).collect(),
            redactor: Redactor::new(secrets.into_iter()).map(Arc::new),
        }
    }

    /// A text without them.
    #[must_use]
    pub fn redact(&self, text: String) -> String {
        match &self.redactor {
            Some(redactor) => {
                let text = redactor.bytes(text.into_bytes(), false);
                String::from_utf8_lossy(&text).into_owned()
            }
            None => text,
        }
    }

    /// The beginning of something without them: what it ends with may be a part of one.
    #[must_use]
    pub fn redact_beginning(&self, beginning: Vec<u8>) -> Vec<u8> {
        match &self.redactor {
            Some(redactor) => redactor.bytes(beginning, true),
            None => beginning,
        }
    }

    /// A text that is JSON, and stays so, without them.
    #[must_use]
    pub fn redact_json(&self, json: Vec<u8>) -> Vec<u8> {
        match &self.redactor {
            Some(redactor) => redactor.json_text(&json).into_owned(),
            None => json,
        }
    }

    /// Tells the operator which of them `source` may give away.
    pub fn warn_of_short(&self, source: &dyn Display) {
        for name in &self.short {
            tracing::warn!(
                "the value of `{name}` is too short to be redacted: {source} gives it away if it repeats it"
            );
        }
    }
}
