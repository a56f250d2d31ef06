//! View and actions of operators beside the clients of a server: its numbers, and the cancellation
//! of requests.

use tokio_util::sync::CancellationToken;

use crate::support::sync::unless_cancelled;

/// Numbers of a server at one time. Counters count from its start.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerNumbers {
    /// Calls of tools that have ended.
    pub calls: u64,
    /// Calls among them that have failed.
    pub failures: u64,
    /// Time that all of them took together, in seconds.
    pub seconds: f64,
    /// Numbers of calls that took at most so many seconds.
    pub calls_by_duration: Vec<(f64, u64)>,
    /// Requests refused before any work.
    pub refusals: u64,
    /// Numbers of these refusals, by their reasons in the metrics.
    pub refusals_by_reason: Vec<(String, u64)>,
    /// Running processes.
    pub running: usize,
    /// Maximum number of running processes.
    pub max_running: usize,
    /// Runs that wait in the queue.
    pub queued: usize,
    /// Maximum number of runs that wait.
    pub max_queued: usize,
    /// Open HTTP sessions.
    pub sessions: u64,
    /// Open HTTP connections.
    pub connections: u64,
    /// Memory of this process, in bytes, where the system tells.
    pub memory_bytes: Option<u64>,
}

/// Handle that cancels a request for an operator. Its client gets an error.
#[derive(Debug, Clone, Default)]
pub struct RequestCancel(CancellationToken);

impl RequestCancel {
    /// Cancels the request, unless it has ended. Its run is killed.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Waits for `answer`; `None` if the request is cancelled first.
    pub(crate) async fn unless_cancelled<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        unless_cancelled(&self.0, answer).await
    }
}
