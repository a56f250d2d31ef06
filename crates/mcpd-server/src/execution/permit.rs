//! Permits of the run queue and the memory budget, for work that no process does.

use std::fmt;
use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use tokio::task::yield_now;

use crate::execution::engine::Engine;
use crate::limits::admission::Rejection;
use crate::limits::memory_budget::{Exhausted, Reservation};
use crate::limits::rate_limit;
use crate::limits::run_queue::{Busy, ScriptQueue, busy_error};
use crate::policy::principal::Principal;
use crate::request::context::Context;

/// Waits for memory for `bytes` that are to be read for a caller.
///
/// # Errors
///
/// Fails with `429` if memory does not become free in time.
pub(crate) async fn reserve_memory(
    engine: &Arc<Engine>,
    principal: &Principal,
    bytes: u64,
) -> Result<Option<Reservation>, ErrorObject> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let reservation = engine.admission.contents.reserve(principal, bytes).await;
    reservation.map_err(|Exhausted| {
        engine.observers.metrics.count_refusal(Rejection::Busy);
        rate_limit::overload_error("the server's memory budget for reads is exhausted")
    })
}

/// Runs `work` when it is the caller's turn. No process of the server runs it, so only the
/// caller's quota limits it. `kind` and `name` identify it to the caller, such as the tool `x`.
pub(crate) fn run_with_permit<T, N, W>(
    engine: &Arc<Engine>,
    context: &Context,
    script_queue: &Arc<ScriptQueue>,
    (kind, name): (&'static str, N),
    work: W,
) -> impl Future<Output = Result<T, ErrorObject>> + use<T, N, W>
where
    N: fmt::Display,
    W: Future<Output = Result<T, ErrorObject>>,
{
    let run_queue = engine.admission.calls.clone();
    let (caller, script_queue) = (context.peer.principal.clone(), Arc::clone(script_queue));
    let (metrics, record) = (
        Arc::clone(&engine.observers.metrics),
        context.record.clone(),
    );
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
                Err(busy_error(&format!("The {kind} `{name}`"), busy))
            }
        }
    }
}
