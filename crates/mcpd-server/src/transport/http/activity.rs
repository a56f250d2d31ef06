//! Whether a connection is of use: one without an open request is kept for a while only, whatever else happens on it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::sync::lock;

/// The requests of one connection. All clones are one.
#[derive(Debug, Clone)]
pub(super) struct Activity(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    open: usize,
    /// Since when none is open, if none is.
    since: Instant,
    /// How long that may last.
    limit: Duration,
}

impl Activity {
    /// That of a connection which has begun at `start`, and whose first request has to be there within `limit`.
    pub(super) fn new(start: Instant, limit: Duration) -> Self {
        Self(Arc::new(Mutex::new(State {
            open: 0,
            since: start,
            limit,
        })))
    }

    /// A request is open until what this returns is dropped. After it the next one has to be there within `limit`.
    pub(super) fn begin(&self, limit: Duration) -> Open {
        let mut state = lock(&self.0);
        state.open += 1;
        state.limit = limit;
        Open(self.clone())
    }

    /// From now on no request has to be open for `limit` only.
    pub(super) fn limit(&self, limit: Duration) {
        let mut state = lock(&self.0);
        state.limit = limit;
        state.since = Instant::now();
    }

    /// Waits until no request has been open for too long.
    pub(super) async fn ceased(&self) {
        loop {
            let deadline = {
                let state = lock(&self.0);
                // One that is open now may last for ever; it is looked at again no earlier than it could be missed.
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

/// A request that is open.
#[derive(Debug)]
pub(super) struct Open(Activity);

impl Drop for Open {
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
    async fn a_connection_ceases_when_no_request_has_been_open_for_too_long() {
        let start = Instant::now();
        let activity = Activity::new(start, 10 * SECOND);
        activity.ceased().await;
        assert_eq!(start.elapsed(), 10 * SECOND);

        let (one, other) = (activity.begin(30 * SECOND), activity.begin(30 * SECOND));
        drop(one);
        let ending = async {
            tokio::time::sleep(100 * SECOND).await;
            drop(other);
        };
        tokio::join!(activity.ceased(), ending);
        assert_eq!(start.elapsed(), 140 * SECOND);

        activity.limit(SECOND);
        activity.ceased().await;
        assert_eq!(start.elapsed(), 141 * SECOND);
    }
}
