//! Idle timeout of a connection: without an open request it is kept for a limited time, despite
//! any other traffic.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::support::sync::lock;

/// Open requests of one connection. All clones share them.
#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Mutex<IdleState>>);

#[derive(Debug)]
struct IdleState {
    open: usize,
    /// Time since which no request is open, if none is.
    since: Instant,
    /// Maximum length of that time.
    limit: Duration,
}

impl Activity {
    /// Creates the activity of a connection that began at `start` and must send its first request
    /// within `limit`.
    pub(super) fn new(start: Instant, limit: Duration) -> Self {
        Self(Arc::new(Mutex::new(IdleState {
            open: 0,
            since: start,
            limit,
        })))
    }

    /// Counts a request as open until the result is dropped. The next one must come within
    /// `limit` after that.
    pub(super) fn begin(&self, limit: Duration) -> ActiveRequest {
        let mut state = lock(&self.0);
        state.open += 1;
        state.limit = limit;
        ActiveRequest(self.clone())
    }

    /// Restarts the idle time, with a new `limit`.
    pub(super) fn limit(&self, limit: Duration) {
        let mut state = lock(&self.0);
        state.limit = limit;
        state.since = Instant::now();
    }

    /// Waits until no request has been open for the limit.
    pub(super) async fn wait_until_idle(&self) {
        loop {
            let deadline = {
                let state = lock(&self.0);
                // An open request has no limit. The check is repeated at the earliest time at
                // which the limit could expire after its end.
                let since = if state.open > 0 {
                    Instant::now()
                } else {
                    state.since
                };
                since + state.limit
            };
            if deadline <= Instant::now() {
                return;
            }
            sleep_until(deadline).await;
        }
    }
}

/// Guard of an open request.
#[derive(Debug)]
pub(super) struct ActiveRequest(Activity);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut state = lock(&self.0.0);
        state.open -= 1;
        state.since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn idle_timeout_starts_when_no_request_is_open() {
        let start = Instant::now();
        let activity = Activity::new(start, 10 * SECOND);
        activity.wait_until_idle().await;
        assert_eq!(start.elapsed(), 10 * SECOND);

        let (one, other) = (activity.begin(30 * SECOND), activity.begin(30 * SECOND));
        drop(one);
        let ending = async {
            tokio::time::sleep(100 * SECOND).await;
            drop(other);
        };
        tokio::join!(activity.wait_until_idle(), ending);
        assert_eq!(start.elapsed(), 140 * SECOND);

        activity.limit(SECOND);
        activity.wait_until_idle().await;
        assert_eq!(start.elapsed(), 141 * SECOND);
    }
}
