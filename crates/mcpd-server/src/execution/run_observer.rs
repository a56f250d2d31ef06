//! Observer of one run: what its span, the metrics, the record of its request and its caller learn
//! of it, in three callbacks.

use std::pin::Pin;

use mcpd_exec::{Line, Outcome};

use crate::client::request::context::Context;
use crate::execution::engine::Engine;
use crate::execution::line_tap::LineTap;
use crate::execution::relay::Relay;
use crate::execution::run::Job;
use crate::message::trace::TraceContext;
use crate::observe::ending::RunError;
use crate::observe::metrics::RunCounter;
use crate::observe::spans::ChildSpan;

/// Observer of one run. Dropping it means that the run was cancelled.
pub(super) struct RunObserver<'a> {
    engine: &'a Engine,
    context: &'a Context,
    job: Job<'a>,
    span: ChildSpan,
    /// Messages to the caller, if the run has any.
    relay: Option<Relay<'a>>,
    /// Receiver of its lines on another machine, if it runs for one.
    tap: Option<&'a LineTap<'a>>,
}

impl<'a> RunObserver<'a> {
    /// Observes a run that has been requested.
    pub(super) fn new(engine: &'a Engine, context: &'a Context, job: Job<'a>) -> Self {
        let relay = |kind| Relay::new(kind, job.path, job.policy, context.side.clone());
        Self {
            engine,
            context,
            span: context.record.span().start_run(job.path),
            relay: job.kind.map(relay),
            tap: None,
            job,
        }
    }

    /// Also passes its lines to `tap`.
    pub(super) fn with_tap(mut self, tap: Option<&'a LineTap<'a>>) -> Self {
        self.tap = tap;
        self
    }

    /// Trace that the process continues.
    pub(super) fn trace(&self) -> TraceContext {
        self.span.continue_trace(self.context.trace.clone())
    }

    /// Waits for the end of the run, and relays its messages meanwhile.
    pub(super) async fn relay_while<T>(&self, run: Pin<&mut impl Future<Output = T>>) -> T {
        match &self.relay {
            Some(relay) => relay.relay_while(run).await,
            None => run.await,
        }
    }

    /// The run has its permit, and a process starts. Returns the counter of its ending.
    pub(super) fn started(&self) -> RunCounter {
        self.engine.observers.metrics.start_run()
    }

    /// The process has written a line.
    pub(super) fn line(&self, line: Line<'_>) {
        self.context.record.pass_line(&line);
        if let Some(relay) = &self.relay {
            relay.accept_line(line);
        }
        if let Some(tap) = self.tap {
            tap.accept_line(line);
        }
    }

    /// The run has ended, or nothing was run.
    pub(super) fn ended(self, ended: &Result<Outcome, RunError>) {
        self.span.finish_run(ended);
        if let Some(exit) = self.job.exit {
            self.context.record.add_run(ended, exit);
        }
    }
}
