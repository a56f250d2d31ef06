//! Permits of the run queue and the memory budget, for work that no process does.

use std::sync::Arc;

use mcpd_protocol::jsonrpc::ErrorObject;
use tokio::task::yield_now;

use crate::client::request::context::Context;
use crate::execution::engine::Engine;
use crate::limits::admission::Rejection;
use crate::limits::memory_budget::{Exhausted, Reservation};
use crate::limits::rate_limit;
use crate::limits::run_queue::{Busy, RunQueue, ScriptQueue, busy_error};
use crate::observe::audit::request_log::RequestRecord;
use crate::observe::metrics::Metrics;
use crate::policy::principal::Principal;

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

/// Request for a permit to do work that no process of the server does, so that only the caller's
/// quota limits it.
pub(crate) struct PermitRequest {
    run_queue: RunQueue,
    caller: Principal,
    script_queue: Arc<ScriptQueue>,
    metrics: Arc<Metrics>,
    record: RequestRecord,
    kind: &'static str,
    name: String,
}

impl PermitRequest {
    /// `kind` and `name` identify the work to the caller, such as the tool `x`.
    pub(crate) fn new(
        engine: &Engine,
        context: &Context,
        script_queue: &Arc<ScriptQueue>,
        (kind, name): (&'static str, &str),
    ) -> Self {
        Self {
            run_queue: engine.admission.calls.clone(),
            caller: context.peer.principal.clone(),
            script_queue: Arc::clone(script_queue),
            metrics: Arc::clone(&engine.observers.metrics),
            record: context.record.clone(),
            kind,
            name: name.to_owned(),
        }
    }

    /// Does the work when it is the caller's turn.
    ///
    /// # Errors
    ///
    /// Fails with `429` if too many calls wait, or with the error of the work.
    pub(crate) async fn run<T>(
        self,
        work: impl Future<Output = Result<T, ErrorObject>>,
    ) -> Result<T, ErrorObject> {
        match self
            .run_queue
            .acquire(&self.caller, &self.script_queue)
            .await
        {
            Ok(_turn) => {
                // The transport polls each request once and leaves the rest to the task that
                // waits for the answer. The first poll ends here, so that messages are read and
                // answered while a function works before its first wait.
                yield_now().await;
                work.await
            }
            Err(busy) => {
                self.metrics.count_refusal(Rejection::Busy);
                self.record.set_outcome(Busy::NAME);
                Err(busy_error(
                    &format!("The {} `{}`", self.kind, self.name),
                    busy,
                ))
            }
        }
    }
}
