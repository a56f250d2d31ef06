//! Admission control: the rate limit of callers, the run queue and the memory budget for what is
//! read.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use tokio::task::yield_now;

use crate::execution::call;
use crate::limits::memory_budget::{Exhausted, MemoryBudget, Reservation};
use crate::limits::rate_limit::{self, RateLimiter};
use crate::limits::run_queue::{Busy, RunQueue, ScriptQueue};
use crate::policy::principal::Principal;
use crate::request::context::Context;
use crate::server::Server;

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
    contents: MemoryBudget,
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

/// Waits for memory for `bytes` that are to be read for a caller.
///
/// # Errors
///
/// Fails with `429` if memory does not become free in time.
pub(crate) async fn reserve_memory(
    server: &Server,
    principal: &Principal,
    bytes: u64,
) -> Result<Option<Reservation>, ErrorObject> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let reservation = server.admission().contents.reserve(principal, bytes).await;
    reservation.map_err(|Exhausted| {
        server.metrics().count_refusal(Rejection::Busy);
        rate_limit::overload_error("the server's memory budget for reads is exhausted")
    })
}

/// Runs `work` when it is the caller's turn. No process of the server runs it, so only the
/// caller's quota limits it. `kind` and `name` identify it to the caller, such as the tool `x`.
pub(crate) fn run_with_permit<T, N, W>(
    server: &Server,
    context: &Context,
    script_queue: &Arc<ScriptQueue>,
    (kind, name): (&'static str, N),
    work: W,
) -> impl Future<Output = Result<T, ErrorObject>> + use<T, N, W>
where
    N: fmt::Display,
    W: Future<Output = Result<T, ErrorObject>>,
{
    let run_queue = server.admission().calls.clone();
    let (caller, script_queue) = (context.principal.clone(), Arc::clone(script_queue));
    let (metrics, record) = (Arc::clone(server.metrics()), context.record.clone());
    async move {
        match run_queue.acquire(&caller, &script_queue).await {
            Ok(_turn) => {
                // The transport polls each request once and leaves the rest to the task that
                // waits for the answer. The first poll ends here, so that messages are read and
                // answered while a function works before its first wait.
                yield_now().await;
                work.await
            }
            Err(busy) => {
                metrics.count_refusal(Rejection::Busy);
                record.set_outcome(Busy::NAME);
                Err(call::busy_error(&format!("The {kind} `{name}`"), busy))
            }
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
