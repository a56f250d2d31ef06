//! Identifier of a run: 128 random bits, which are the key to its outputs, its state and its
//! cancellation, and the number of the attempt.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Identifier of one attempt of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct RunId {
    /// Random bits, the same for every attempt.
    pub(crate) id: u128,
    pub(crate) attempt: u8,
}

impl RunId {
    /// Returns the identifier of the next attempt.
    pub(crate) fn next(self) -> Self {
        Self {
            attempt: self.attempt.wrapping_add(1),
            ..self
        }
    }
}

/// Returns 128 bits that are impossible to guess.
pub(crate) fn random_bits() -> u128 {
    let mut random = [0; 16];
    getrandom::fill(&mut random).expect("a system that starts processes has randomness");
    u128::from_ne_bytes(random)
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}.{}", self.id, self.attempt)
    }
}

impl fmt::Debug for RunId {
    /// Only the beginning: the rest is a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}….{}", self.id >> 96, self.attempt)
    }
}

/// Text that is not an identifier of a run.
#[derive(Debug, thiserror::Error)]
#[error("not the identifier of a run")]
pub(crate) struct NotRunId;

impl FromStr for RunId {
    type Err = NotRunId;

    fn from_str(text: &str) -> Result<Self, NotRunId> {
        let (id, attempt) = text.split_once('.').ok_or(NotRunId)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if id.len() != 32 || !id.bytes().all(is_digit) {
            return Err(NotRunId);
        }
        if attempt.is_empty() || !attempt.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NotRunId);
        }
        Ok(Self {
            id: u128::from_str_radix(id, 16).map_err(|_| NotRunId)?,
            attempt: attempt.parse().map_err(|_| NotRunId)?,
        })
    }
}

impl TryFrom<String> for RunId {
    type Error = NotRunId;

    fn try_from(text: String) -> Result<Self, NotRunId> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_id_has_one_spelling() {
        let run = RunId {
            id: random_bits(),
            attempt: 2,
        };
        assert_eq!(run.to_string().parse::<RunId>().unwrap(), run);
        for text in [
            "",
            "ff.0",
            "000000000000000000000000000000FF.0",
            "+00000000000000000000000000000ff.0",
            "000000000000000000000000000000ff",
            "000000000000000000000000000000ff.",
            "000000000000000000000000000000ff.+1",
            "000000000000000000000000000000ff.256",
            "000000000000000000000000000000ff.0.>",
        ] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }
}
