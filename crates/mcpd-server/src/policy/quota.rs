//! Quota of a caller, as the operator sets it: concurrent calls, and a rate limit.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

/// Default number of concurrent calls of one caller.
const DEFAULT_CONCURRENCY: NonZeroUsize = NonZeroUsize::new(32).expect("it is not zero");

/// Limits of one caller.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Quota {
    /// Number of its calls that run at a time; further ones are queued. 32.
    pub concurrency: NonZeroUsize,
    /// Rate limit of its calls. Unlimited.
    pub rate: Option<RateLimit>,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            concurrency: DEFAULT_CONCURRENCY,
            rate: None,
        }
    }
}

/// Rate limit: a number of calls a second, with a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Time that one call uses up.
    pub(crate) interval: Duration,
    /// Time by which calls may run ahead of the clock: the depth of the bucket.
    pub(crate) burst_time: Duration,
}

impl RateLimit {
    /// Allows `per_second` calls in the long run, and `burst` of them at once; `None` unless both
    /// are representable.
    #[must_use]
    pub fn new(per_second: f64, burst: NonZeroU32) -> Option<Self> {
        let interval = Duration::try_from_secs_f64(1.0 / per_second).ok()?;
        Some(Self {
            interval,
            burst_time: interval.checked_mul(burst.get() - 1)?,
        })
    }
}
