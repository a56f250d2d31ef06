//! Rate limiter: a token bucket per caller. Errors that ask a caller to retry later are here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject};
use serde_json::json;

use crate::policy::principal::Principal;
use crate::policy::quota::RateLimit;
use crate::support::sync::lock;

/// Maximum number of callers whose rate is tracked.
const MAX_CALLERS: usize = 4096;
/// Error code of calls rejected for now, named as in HTTP: codes of JSON-RPC and MCP lie
/// elsewhere.
const TOO_MANY_CALLS: ErrorCode = ErrorCode::new(429);

/// Suggested retry delay of a caller that has too much open.
const OVERLOAD_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Rate limiter: a token bucket per caller, kept as the time up to which its calls are paid for
/// (the generic cell rate algorithm).
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    /// Time up to which the calls of each caller are paid for.
    paid_until: Mutex<BTreeMap<Arc<str>, Instant>>,
}

impl RateLimiter {
    /// Counts a call, or rejects it.
    ///
    /// # Errors
    ///
    /// `429` with the time after which to try again.
    pub(crate) fn admit(&self, caller: &Principal) -> Result<(), ErrorObject> {
        let Some(rate) = caller.quota().rate else {
            return Ok(());
        };
        self.count_call(caller.shared_name(), rate, Instant::now())
            .map_err(|wait| retry_later_error("too many calls", wait))
    }

    /// Counts a call, or returns the time until the next one is allowed.
    fn count_call(&self, caller: &Arc<str>, rate: RateLimit, now: Instant) -> Result<(), Duration> {
        let mut paid_until = lock(&self.paid_until);
        if paid_until.len() >= MAX_CALLERS && !paid_until.contains_key(caller) {
            paid_until.retain(|_, paid_until| *paid_until > now);
            if paid_until.len() >= MAX_CALLERS {
                paid_until.pop_first();
            }
        }
        let paid_until = paid_until.entry(Arc::clone(caller)).or_insert(now);
        let taken = paid_until.saturating_duration_since(now);
        if taken > rate.burst_time {
            return Err(taken - rate.burst_time);
        }
        *paid_until = now + taken + rate.interval;
        Ok(())
    }
}

/// Error of a call that is rejected for now, with the time after which to try again.
pub(crate) fn retry_later_error(reason: &str, wait: Duration) -> ErrorObject {
    // Rounded up, because a little sooner would be too soon again.
    let milliseconds = wait.as_millis() + 1;
    let message = format!("{reason}; try again in {milliseconds} ms");
    ErrorObject::new(TOO_MANY_CALLS, message)
        .with_data(&json!({ "retryAfterMs": milliseconds as u64 }))
}

/// Error of a request that has to wait until its sender has ended another.
pub(crate) fn overload_error(reason: &str) -> ErrorObject {
    retry_later_error(reason, OVERLOAD_RETRY_DELAY)
}

/// Returns the retry delay that an error suggests.
#[cfg(feature = "http")]
pub(crate) fn suggested_delay(error: &ErrorObject) -> Option<Duration> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RetryData {
        retry_after_ms: u64,
    }
    if error.code != TOO_MANY_CALLS {
        return None;
    }
    let data: RetryData = serde_json::from_str(error.data.as_ref()?.get()).ok()?;
    Some(Duration::from_millis(data.retry_after_ms))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn rate_limit_allows_a_burst_and_then_the_rate() {
        let (limiter, start) = (RateLimiter::default(), Instant::now());
        let rate = RateLimit::new(10.0, NonZeroU32::new(3).unwrap()).unwrap();
        let (alice, bob) = ("alice".into(), "bob".into());
        let at = |ms| start + Duration::from_millis(ms);
        for _ in 0..3 {
            assert_eq!(limiter.count_call(&alice, rate, start), Ok(()));
        }
        let wait = |ms| Err(Duration::from_millis(ms));
        assert_eq!(limiter.count_call(&alice, rate, start), wait(100));
        assert_eq!(limiter.count_call(&alice, rate, at(60)), wait(40));
        assert_eq!(
            limiter.count_call(&bob, rate, at(60)),
            Ok(()),
            "each has its own"
        );
        assert_eq!(limiter.count_call(&alice, rate, at(100)), Ok(()));
        assert_eq!(limiter.count_call(&alice, rate, at(100)), wait(100));
        // A full bucket allows one burst, and no more.
        for _ in 0..3 {
            assert_eq!(limiter.count_call(&alice, rate, at(10_000)), Ok(()));
        }
        assert_eq!(limiter.count_call(&alice, rate, at(10_000)), wait(100));
    }

    #[test]
    fn rate_limiter_tracks_a_bounded_number_of_callers() {
        let (limiter, now) = (RateLimiter::default(), Instant::now());
        let rate = RateLimit::new(1.0, NonZeroU32::MIN).unwrap();
        for caller in 0..MAX_CALLERS + 10 {
            assert_eq!(
                limiter.count_call(&caller.to_string().into(), rate, now),
                Ok(())
            );
        }
        assert_eq!(lock(&limiter.paid_until).len(), MAX_CALLERS);
    }

    #[test]
    fn rate_limit_rejects_invalid_numbers() {
        let burst = NonZeroU32::new(40).unwrap();
        for wrong in [0.0, -1.0, f64::NAN, 1e-300] {
            assert_eq!(RateLimit::new(wrong, burst), None, "{wrong}");
        }
        assert!(RateLimit::new(f64::INFINITY, burst).is_some());
    }
}
