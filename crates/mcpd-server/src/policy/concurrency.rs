//! Concurrency limit of a script, as the operator sets it.

use std::num::NonZeroUsize;
use std::time::Instant;

/// Concurrency limit of a script queue, and the time at which it was set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConcurrencyLimit {
    pub(crate) limit: NonZeroUsize,
    pub(crate) set_at: Instant,
}

impl ConcurrencyLimit {
    /// Creates a limit that replaces all earlier ones.
    pub(crate) fn new(limit: NonZeroUsize) -> Self {
        let set_at = Instant::now();
        Self { limit, set_at }
    }
}
