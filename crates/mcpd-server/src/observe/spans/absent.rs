//! Stub of the spans for builds without their feature: none are made, and the trace context of a
//! caller passes through unchanged.

use mcpd_exec::Outcome;
use mcpd_protocol::jsonrpc::RequestId;
use mcpd_scriptspec::ScriptPath;

use crate::message::reply::MethodResult;
use crate::message::trace::TraceContext;
use crate::observe::RequestOrigin;
use crate::observe::ending::RunError;

#[derive(Debug, Clone, Default)]
pub(crate) struct Spans;

#[derive(Debug, Clone, Default)]
pub(crate) struct RequestSpan;

#[derive(Debug)]
pub(crate) struct ChildSpan;

impl Spans {
    pub(crate) fn start_request(
        &self,
        _method: &'static str,
        _id: &RequestId,
        _origin: RequestOrigin<'_>,
    ) -> RequestSpan {
        RequestSpan
    }
}

impl RequestSpan {
    pub(crate) fn set_tool(&self, _path: &ScriptPath) {}

    pub(crate) fn mark_failed(&self) {}

    pub(crate) fn finish(&self, _result: &MethodResult) {}

    pub(crate) fn continue_trace(&self, trace: TraceContext) -> TraceContext {
        trace
    }

    pub(crate) fn start_run(&self, _path: &ScriptPath) -> ChildSpan {
        ChildSpan
    }

    pub(crate) fn start_outgoing(&self, _method: &str, _name: Option<&str>) -> ChildSpan {
        ChildSpan
    }
}

impl ChildSpan {
    pub(crate) fn continue_trace(&self, trace: TraceContext) -> TraceContext {
        trace
    }

    pub(crate) fn finish_run(self, _ended: &Result<Outcome, RunError>) {}

    pub(crate) fn finish_request(self, _error: Option<&str>) {}
}
