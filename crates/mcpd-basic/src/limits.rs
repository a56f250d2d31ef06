//! How much a program may do. Every step is counted, and what a step makes or reads counts as further
//! steps, so that one number bounds the time of a run and the memory that it can ever take.

use crate::error::Error;
use crate::value::Size;

/// How many bytes are made for one step.
const MADE_IN_A_STEP: usize = 16;
/// How many bytes are read for one step.
const READ_IN_A_STEP: usize = 64;
/// How deep lists and objects may hold each other.
pub(crate) const NESTING: usize = 64;

/// What a run may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How many steps it may take, each a statement or a part of an expression, or 16 bytes of what
    /// one of them makes.
    pub operations: u64,
    /// How big a text, list or object may become, in bytes.
    pub value_bytes: usize,
    /// How deep functions may call each other; each level counts several times, for the blocks and
    /// expressions that the call is in.
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

/// What is left of the limits.
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
                "the program has used up its {} operations",
                self.limits.operations
            ))
            .help("look for a loop that never ends, or allow more with --max-operations")),
        }
    }

    /// Counts that so many bytes are gone through.
    pub(crate) fn read(&mut self, bytes: usize) -> Result<(), Error> {
        self.count(bytes / READ_IN_A_STEP)
    }

    /// Counts that a value is about to be made, and refuses one that is too big.
    pub(crate) fn make(&mut self, size: Size) -> Result<(), Error> {
        self.fits(size)?;
        self.count(size.bytes / MADE_IN_A_STEP)
    }

    /// Refuses a value that is too big.
    pub(crate) fn fits(&self, size: Size) -> Result<(), Error> {
        if size.bytes > self.limits.value_bytes {
            return Err(Error::new(format!(
                "a text, list or object would become bigger than {} bytes",
                self.limits.value_bytes
            )));
        }
        if size.depth > NESTING {
            return Err(Error::too_deep());
        }
        Ok(())
    }

    /// One level deeper, until [`leave`](Self::leave).
    pub(crate) fn enter(&mut self) -> Result<(), Error> {
        if self.depth == self.limits.depth {
            return Err(Error::new("functions call each other too deeply")
                .help("look for a function that calls itself without end"));
        }
        self.depth += 1;
        self.count(1)
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }
}
