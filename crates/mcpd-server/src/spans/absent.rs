//! Spans without their feature: none are made, and the trace context of a caller passes through
//! unchanged.

use mcpd_exec::Outcome;
use mcpd_protocol::jsonrpc::RequestId;
use mcpd_scriptspec::ScriptPath;

use crate::context::Context;
use crate::dispatch::MethodResult;
use crate::run::RunError;
use crate::trace::TraceContext;

#[derive(Debug, Clone, Default)]
pub(crate) struct Spans;

#[derive(Debug, Clone, Default)]
pub(crate) struct RequestSpan;

#[derive(Debug)]
pub(crate) struct ChildSpan;

impl Spans {
    pub(crate) fn request(
        &self,
        _method: &'static str,
        _id: &RequestId,
        _context: &Context,
    ) -> RequestSpan {
        RequestSpan
    }
}

impl RequestSpan {
    pub(crate) fn names(&self, _path: &ScriptPath) {}

    pub(crate) fn has_failed(&self) {}

    pub(crate) fn answered(&self, _result: &MethodResult) {}

    pub(crate) fn trace(&self, trace: TraceContext) -> TraceContext {
        trace
    }

    pub(crate) fn run(&self, _path: &ScriptPath) -> ChildSpan {
        ChildSpan
    }

    pub(crate) fn outgoing(&self, _method: &str, _name: Option<&str>) -> ChildSpan {
        ChildSpan
    }
}

impl ChildSpan {
    pub(crate) fn trace(&self, trace: TraceContext) -> TraceContext {
        trace
    }

    pub(crate) fn ended(self, _ended: &Result<Outcome, RunError>) {}

    pub(crate) fn answered(self, _error: Option<&str>) {}
}
