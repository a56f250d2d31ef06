//! Redaction of a source's secrets in its messages, as in the output of scripts. Finds exact
//! matches only, and no secret short enough to occur by chance.

use std::fmt::Display;
use std::sync::Arc;

use crate::policy::Redactor;

/// Secrets of a source. They are displayed nowhere: `[redacted NAME]` stands in their place.
#[derive(Debug, Clone, Default)]
pub struct Secrets {
    redactor: Option<Arc<Redactor>>,
    /// Names of secrets too short to be redacted.
    short: Vec<String>,
}

impl Secrets {
    /// Creates a set of secrets from pairs of name and value.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let secrets: Vec<_> = secrets.into_iter().collect();
        let is_short = |secret: &&(&str, &str)| Redactor::new(std::iter::once(**secret)).is_none();
        let short = secrets.iter().filter(is_short);
        Self {
            short: short.map(|(name, _)| (*name).to_owned()).collect(),
            redactor: Redactor::new(secrets.into_iter()).map(Arc::new),
        }
    }

    /// Redacts a text.
    #[must_use]
    pub fn redact(&self, text: String) -> String {
        match &self.redactor {
            Some(redactor) => {
                let text = redactor.redact_bytes(text.into_bytes(), false);
                String::from_utf8_lossy(&text).into_owned()
            }
            None => text,
        }
    }

    /// Redacts the beginning of a text, whose end may be a part of a secret.
    #[must_use]
    pub fn redact_beginning(&self, beginning: Vec<u8>) -> Vec<u8> {
        match &self.redactor {
            Some(redactor) => redactor.redact_bytes(beginning, true),
            None => beginning,
        }
    }

    /// Redacts a JSON text, which stays JSON.
    #[must_use]
    pub fn redact_json(&self, json: Vec<u8>) -> Vec<u8> {
        match &self.redactor {
            Some(redactor) => redactor.redact_json_text(&json).into_owned(),
            None => json,
        }
    }

    /// Warns of the secrets that `source` may reveal.
    pub fn warn_of_short(&self, source: &dyn Display) {
        for name in &self.short {
            tracing::warn!(
                "secret `{name}` is too short to be redacted; {source} discloses it by repeating it"
            );
        }
    }
}
