//! Admission control: the rate limit of callers, the run queue and the memory budget for what is
//! read.

use crate::limits::memory_budget::MemoryBudget;
use crate::limits::rate_limit::RateLimiter;
use crate::limits::run_queue::RunQueue;

/// Size of the largest file that is read, in bytes.
pub(crate) const MAX_FILE_SIZE: u64 = 16 << 20;
/// Memory budget for contents that wait for their readers, in largest files: overall and per
/// client.
const MAX_CONTENTS: usize = 16;
const MAX_CONTENTS_PER_CLIENT: usize = 4;
/// Size of the largest file, in bytes.
const MAX_CONTENT_SIZE: usize = MAX_FILE_SIZE as usize;

/// Limits of one server.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Rate limit per caller.
    pub(crate) rate_limiter: RateLimiter,
    /// Scheduler of processes.
    pub(crate) runs: RunQueue,
    /// Scheduler of calls that run no local process.
    pub(crate) calls: RunQueue,
    /// Memory budget of contents that are read, until they are sent.
    pub(crate) contents: MemoryBudget,
}

impl Admission {
    /// Creates the limits of a server that runs `processes` at a time.
    pub(crate) fn new(processes: usize) -> Self {
        Self {
            rate_limiter: RateLimiter::default(),
            runs: RunQueue::new(processes),
            calls: RunQueue::new(usize::MAX),
            contents: MemoryBudget::new(MAX_CONTENT_SIZE, MAX_CONTENTS, MAX_CONTENTS_PER_CLIENT),
        }
    }
}

/// Reason for which a request was rejected before it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// Rate limit of the caller.
    Rate,
    /// Full queue or exhausted memory budget.
    Busy,
    /// Origin, host or address that is not allowed.
    #[cfg(feature = "http")]
    Source,
    /// Missing or wrong token.
    #[cfg(feature = "http")]
    Token,
}
