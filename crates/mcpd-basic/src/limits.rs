//! Limits of a run. Every step is counted, and the bytes that a step makes or reads count as
//! further steps, so that one number bounds both the time of a run and its memory.

use crate::error::Error;
use crate::value::Size;

/// Number of bytes made per step.
const BYTES_MADE_PER_STEP: usize = 16;
/// Number of bytes read per step.
const BYTES_READ_PER_STEP: usize = 64;
/// Maximum nesting of lists and objects.
pub(crate) const MAX_VALUE_DEPTH: usize = 64;

/// Limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum number of steps: each is a statement, a part of an expression, or 16 bytes of a
    /// value it makes.
    pub operations: u64,
    /// Maximum size of a text, list or object, in bytes.
    pub value_bytes: usize,
    /// Maximum depth of function calls; each call counts several times, for the blocks and
    /// expressions around it.
    pub depth: usize,
}

impl Default for Limits {
    /// Ten million operations, values of 16 MiB, a depth of 300, which is about a hundred calls.
    fn default() -> Self {
        Self {
            operations: 10_000_000,
            value_bytes: 16 << 20,
            depth: 300,
        }
    }
}

/// Remaining budget of a run.
#[derive(Debug)]
pub(crate) struct Meter {
    limits: Limits,
    left: u64,
    depth: usize,
}

impl Meter {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            left: limits.operations,
            depth: 0,
        }
    }

    /// Counts steps.
    pub(crate) fn count(&mut self, steps: usize) -> Result<(), Error> {
        match self.left.checked_sub(steps as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Error::new(format!(
                "the program exceeded its limit of {} operations",
                self.limits.operations
            ))
            .help("check for an endless loop, or raise the limit with --max-operations")),
        }
    }

    /// Counts the reading of this number of bytes.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), Error> {
        self.count(bytes / BYTES_READ_PER_STEP)
    }

    /// Counts a value about to be made, and refuses one that is too big.
    pub(crate) fn make(&mut self, size: Size) -> Result<(), Error> {
        self.fits(size)?;
        self.count(size.bytes / BYTES_MADE_PER_STEP)
    }

    /// Refuses a value that is too big.
    pub(crate) fn fits(&self, size: Size) -> Result<(), Error> {
        if size.bytes > self.limits.value_bytes {
            return Err(Error::new(format!(
                "a string, list or object would exceed {} bytes",
                self.limits.value_bytes
            )));
        }
        if size.depth > MAX_VALUE_DEPTH {
            return Err(Error::too_deep());
        }
        Ok(())
    }

    /// Enters a level, until [`leave`](Self::leave).
    pub(crate) fn enter(&mut self) -> Result<(), Error> {
        if self.depth == self.limits.depth {
            return Err(Error::new("functions call each other too deeply")
                .help("check for a function that calls itself endlessly"));
        }
        self.depth += 1;
        self.count(1)
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }
}
