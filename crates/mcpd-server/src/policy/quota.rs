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

impl Quota {
    /// Returns the part of one of `servers` that count for themselves: together they allow what
    /// this quota allows, and each of them at least one call.
    #[must_use]
    pub fn divided_among(self, servers: NonZeroU32) -> Self {
        let number = usize::try_from(servers.get()).unwrap_or(usize::MAX);
        let concurrency = self.concurrency.get().div_ceil(number);
        Self {
            concurrency: NonZeroUsize::new(concurrency).unwrap_or(NonZeroUsize::MIN),
            rate: self.rate.map(|rate| rate.divided_among(servers)),
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

    fn divided_among(self, servers: NonZeroU32) -> Self {
        let servers = servers.get();
        // A server allows one call ahead of the clock at least, which needs no depth.
        let burst = self.burst_time.saturating_add(self.interval);
        let interval = self.interval.saturating_mul(servers);
        Self {
            interval,
            burst_time: burst.saturating_sub(interval),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quota_is_divided_among_servers() {
        let number = |number| NonZeroU32::new(number).unwrap();
        let quota = Quota {
            concurrency: NonZeroUsize::new(10).unwrap(),
            rate: RateLimit::new(20.0, number(40)),
        };
        let part = quota.divided_among(number(4));
        assert_eq!(part.concurrency.get(), 3);
        assert_eq!(part.rate, RateLimit::new(5.0, number(10)));
        // Each server allows one call at least.
        let part = quota.divided_among(number(100));
        assert_eq!(part.concurrency.get(), 1);
        assert_eq!(part.rate, RateLimit::new(0.2, number(1)));
        assert_eq!(quota.divided_among(NonZeroU32::MIN), quota);
    }
}
