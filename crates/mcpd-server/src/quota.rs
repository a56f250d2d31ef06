//! Quotas of callers: concurrent calls, and a rate limit (a token bucket per caller).

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use serde_json::json;

use crate::principal::Principal;
use crate::sync::lock;

/// Default number of concurrent calls of one caller.
const CONCURRENCY: NonZeroUsize = NonZeroUsize::new(32).expect("it is not zero");
/// Maximum number of callers whose rate is tracked.
const MAX_CALLERS: usize = 4096;
/// Error code of calls rejected for now, named as in HTTP: codes of JSON-RPC and MCP lie
/// elsewhere.
const TOO_MANY_CALLS: ErrorCode = ErrorCode::new(429);

/// Suggested retry delay of a caller that has too much open.
const CROWDED: Duration = Duration::from_secs(1);

/// Limits of one caller.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Quota {
    /// Number of its calls that run at a time; further ones are queued. 32.
    pub concurrency: NonZeroUsize,
    /// Rate limit of its calls. Unlimited.
    pub rate: Option<Rate>,
}

impl Default for Quota {
    fn default() -> Self {
        Self {
            concurrency: CONCURRENCY,
            rate: None,
        }
    }
}

/// Rate limit: a number of calls a second, with a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Time that one call uses up.
    each: Duration,
    /// Time by which calls may run ahead of the clock: the depth of the bucket.
    ahead: Duration,
}

impl Rate {
    /// Allows `per_second` calls in the long run, and `burst` of them at once; `None` unless both
    /// are representable.
    #[must_use]
    pub fn new(per_second: f64, burst: NonZeroU32) -> Option<Self> {
        let each = Duration::try_from_secs_f64(1.0 / per_second).ok()?;
        Some(Self {
            each,
            ahead: each.checked_mul(burst.get() - 1)?,
        })
    }
}

/// Rate limiter: a token bucket per caller, kept as the time up to which its calls are paid for
/// (the generic cell rate algorithm).
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// Time up to which the calls of each caller are paid for.
    until: Mutex<BTreeMap<Arc<str>, Instant>>,
}

impl Pace {
    /// Counts a call, or rejects it.
    ///
    /// # Errors
    ///
    /// `429` with the time after which to try again.
    pub(crate) fn admit(&self, caller: &Principal) -> Result<(), ErrorObject> {
        let Some(rate) = caller.quota().rate else {
            return Ok(());
        };
        self.count(caller.shared_name(), rate, Instant::now())
            .map_err(|wait| try_again("too many calls", wait))
    }

    /// Counts a call, or returns the time until the next one is allowed.
    fn count(&self, caller: &Arc<str>, rate: Rate, now: Instant) -> Result<(), Duration> {
        let mut until = lock(&self.until);
        if until.len() >= MAX_CALLERS && !until.contains_key(caller) {
            until.retain(|_, until| *until > now);
            if until.len() >= MAX_CALLERS {
                until.pop_first();
            }
        }
        let until = until.entry(Arc::clone(caller)).or_insert(now);
        let taken = until.saturating_duration_since(now);
        if taken > rate.ahead {
            return Err(taken - rate.ahead);
        }
        *until = now + taken + rate.each;
        Ok(())
    }
}

/// Error of a call that is rejected for now, with the time after which to try again.
pub(crate) fn try_again(reason: &str, wait: Duration) -> ErrorObject {
    // Rounded up, because a little sooner would be too soon again.
    let milliseconds = wait.as_millis() + 1;
    let message = format!("{reason}; try again in {milliseconds} ms");
    ErrorObject::new(TOO_MANY_CALLS, message)
        .with_data(&json!({ "retryAfterMs": milliseconds as u64 }))
}

/// Error of a request that has to wait until its sender has ended another.
pub(crate) fn crowded(reason: &str) -> ErrorObject {
    try_again(reason, CROWDED)
}

/// Returns the retry delay that an error suggests.
#[cfg(feature = "http")]
pub(crate) fn wait(error: &ErrorObject) -> Option<Duration> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Data {
        retry_after_ms: u64,
    }
    if error.code != TOO_MANY_CALLS {
        return None;
    }
    let data: Data = serde_json::from_str(error.data.as_ref()?.get()).ok()?;
    Some(Duration::from_millis(data.retry_after_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_and_then_the_rate() {
        let (pace, start) = (Pace::default(), Instant::now());
        let rate = Rate::new(10.0, NonZeroU32::new(3).unwrap()).unwrap();
        let (alice, bob) = ("alice".into(), "bob".into());
        let at = |ms| start + Duration::from_millis(ms);
        for _ in 0..3 {
            assert_eq!(pace.count(&alice, rate, start), Ok(()));
        }
        let wait = |ms| Err(Duration::from_millis(ms));
        assert_eq!(pace.count(&alice, rate, start), wait(100));
        assert_eq!(pace.count(&alice, rate, at(60)), wait(40));
        assert_eq!(pace.count(&bob, rate, at(60)), Ok(()), "each has its own");
        assert_eq!(pace.count(&alice, rate, at(100)), Ok(()));
        assert_eq!(pace.count(&alice, rate, at(100)), wait(100));
        // A full bucket allows one burst, and no more.
        for _ in 0..3 {
            assert_eq!(pace.count(&alice, rate, at(10_000)), Ok(()));
        }
        assert_eq!(pace.count(&alice, rate, at(10_000)), wait(100));
    }

    #[test]
    fn callers_are_forgotten_before_they_are_too_many() {
        let (pace, now) = (Pace::default(), Instant::now());
        let rate = Rate::new(1.0, NonZeroU32::MIN).unwrap();
        for caller in 0..MAX_CALLERS + 10 {
            assert_eq!(pace.count(&caller.to_string().into(), rate, now), Ok(()));
        }
        assert_eq!(lock(&pace.until).len(), MAX_CALLERS);
    }

    #[test]
    fn what_is_no_rate_is_none() {
        let burst = NonZeroU32::new(40).unwrap();
        for wrong in [0.0, -1.0, f64::NAN, 1e-300] {
            assert_eq!(Rate::new(wrong, burst), None, "{wrong}");
        }
        assert!(Rate::new(f64::INFINITY, burst).is_some());
    }
}
