//! Stub of the metrics for builds without their feature: nothing is counted.

use std::sync::Arc;

use mcpd_exec::Outcome;

use crate::limits::admission::Rejection;
use crate::message::reply::MethodResult;
use crate::observe::approval::ApprovalStep;
use crate::observe::ending::RunError;

#[derive(Debug)]
pub(crate) struct Metrics;

#[derive(Debug, Clone, Default)]
pub(crate) struct Operation;

#[derive(Debug)]
pub(crate) struct RunCounter;

#[cfg(feature = "http")]
#[derive(Debug)]
pub(crate) struct OpenGuard;

impl Metrics {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn start_operation(self: &Arc<Self>, _method: &'static str) -> Operation {
        Operation
    }

    pub(crate) fn count_refusal(&self, _reason: Rejection) {}

    pub(crate) fn count_approval(&self, _step: ApprovalStep) {}

    pub(crate) fn start_run(&self) -> RunCounter {
        RunCounter
    }

    #[cfg(feature = "http")]
    pub(crate) fn open_connection(&self) -> OpenGuard {
        OpenGuard
    }

    #[cfg(feature = "http")]
    pub(crate) fn open_session(&self) -> OpenGuard {
        OpenGuard
    }
}

impl Operation {
    pub(crate) fn set_tool(&self, _path: &str) {}

    pub(crate) fn mark_failed(&self) {}

    pub(crate) fn finish(&self, _result: &MethodResult) {}
}

impl RunCounter {
    pub(crate) fn finish(self, _ended: &Result<Outcome, RunError>) {}
}
