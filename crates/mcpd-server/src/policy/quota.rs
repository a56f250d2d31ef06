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

    /// Returns the calls a second that it allows in the long run; infinite without a limit.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        1.0 / self.interval.as_secs_f64()
    }

    /// Returns the number of calls that it allows at once.
    #[must_use]
    pub fn burst(&self) -> u64 {
        let ahead = self
            .burst_time
            .as_nanos()
            .checked_div(self.interval.as_nanos());
        ahead.map_or(u64::MAX, |ahead| {
            u64::try_from(ahead).unwrap_or(u64::MAX).saturating_add(1)
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
    fn rate_limit_has_the_numbers_it_was_made_of() {
        for (per_second, burst) in [(20.0, 40), (0.5, 1), (3.0, 7)] {
            let limit = RateLimit::new(per_second, NonZeroU32::new(burst).unwrap()).unwrap();
            assert!((limit.per_second() - per_second).abs() < 1e-6);
            assert_eq!(limit.burst(), u64::from(burst));
        }
        let unlimited = RateLimit::new(f64::INFINITY, NonZeroU32::MIN).unwrap();
        assert!(unlimited.per_second().is_infinite());
        assert_eq!(unlimited.burst(), u64::MAX);
    }

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
