//! Exponential back-off between attempts to reach a server.

use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Pauses that double up to a limit.
#[derive(Debug)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    /// Returns the next pause.
    pub(crate) fn next_pause(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(MAX_PAUSE);
        pause
    }
}
