//! Spans of OpenTelemetry: one for each request, and below it one for each run and for each request to another server
//! that is made for it. They say what was asked for, how long it
//! took and how it ended, under the names that the conventions for MCP have for it; never what was given or printed.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_exec::Outcome;
use mcpd_protocol::jsonrpc::RequestId;
use mcpd_protocol::{CallToolRequest, GetPromptRequest, Method as _};
use mcpd_scriptspec::ScriptPath;
use opentelemetry::global::{self, BoxedSpan, BoxedTracer};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _,
    TraceFlags, TraceId, Tracer as _,
};
use opentelemetry::{InstrumentationScope, KeyValue, StringValue};

use crate::context::Context;
use crate::dispatch::MethodResult;
use crate::output::Exit;
use crate::run::RunError;
use crate::sync::lock;
use crate::trace::TraceContext;
use crate::wire::Transport;

/// How much of an id is told, in characters.
const MAX_ID: usize = 128;

/// What makes the spans of a server, if anybody wants them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spans(Option<Arc<BoxedTracer>>);

/// The span of one request. All clones are one; without an answer, it was cancelled when the last is gone.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestSpan(Option<Arc<Recorded>>);

struct Recorded {
    tracer: Arc<BoxedTracer>,
    method: &'static str,
    span: Mutex<BoxedSpan>,
}

/// The span of one run, or of one request to another server. It was cancelled if it is dropped before its end.
#[derive(Debug)]
pub(crate) struct ChildSpan(Option<BoxedSpan>);

impl Spans {
    /// Those that the program sends to where it wants them.
    pub(crate) fn global() -> Self {
        let scope = InstrumentationScope::builder("mcpd").with_version(env!("CARGO_PKG_VERSION"));
        Self(Some(Arc::new(global::tracer_with_scope(scope.build()))))
    }

    /// A request that has arrived.
    pub(crate) fn request(
        &self,
        method: &'static str,
        id: &RequestId,
        context: &Context,
    ) -> RequestSpan {
        let Some(tracer) = &self.0 else {
            return RequestSpan::default();
        };
        let span = SpanBuilder::from_name(method)
            .with_kind(SpanKind::Server)
            .with_attributes(attributes(method, id, context));
        let span = tracer.build_with_context(span, &below(remote(&context.trace)));
        RequestSpan(Some(Arc::new(Recorded {
            tracer: Arc::clone(tracer),
            method,
            span: Mutex::new(span),
        })))
    }
}

impl RequestSpan {
    fn note(&self, note: impl FnOnce(&Recorded, &mut BoxedSpan)) {
        if let Some(recorded) = &self.0 {
            let mut span = lock(&recorded.span);
            if span.is_recording() {
                note(recorded, &mut span);
            }
        }
    }

    /// What it names is at this path in the catalog.
    pub(crate) fn names(&self, path: &ScriptPath) {
        self.note(|recorded, span| {
            let Some(attribute) = attribute_of_name(recorded.method) else {
                return;
            };
            span.update_name(format!("{} {path}", recorded.method));
            span.set_attribute(KeyValue::new(attribute, path.to_string()));
        });
    }

    /// The tool has failed, which is no error of the request.
    pub(crate) fn has_failed(&self) {
        self.note(|_, span| fail(span, "tool_error"));
    }

    /// It is answered.
    pub(crate) fn answered(&self, result: &MethodResult) {
        self.note(|_, span| {
            // Not the message: that may repeat what was asked for.
            if let Err(error) = result {
                let code = error.code.get().to_string();
                span.set_attribute(KeyValue::new("rpc.response.status_code", code.clone()));
                fail(span, code);
            }
            span.end();
        });
    }

    /// The trace that whatever is done for the request is part of, which came as `trace`.
    pub(crate) fn trace(&self, trace: TraceContext) -> TraceContext {
        match &self.0 {
            Some(recorded) => continued(lock(&recorded.span).span_context(), trace),
            None => trace,
        }
    }

    /// A run of what is at `path`, which may have to wait for its turn.
    pub(crate) fn run(&self, path: &ScriptPath) -> ChildSpan {
        self.child(|| SpanBuilder::from_name(format!("run {path}")))
    }

    /// A request to another server, for the tool or prompt that is called `name` there.
    pub(crate) fn outgoing(&self, method: &str, name: Option<&str>) -> ChildSpan {
        self.child(|| {
            let mut attributes = vec![KeyValue::new("mcp.method.name", method.to_owned())];
            if method == CallToolRequest::NAME {
                attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
            }
            let names = name.zip(attribute_of_name(method));
            let title = match names {
                Some((name, _)) => format!("{method} {name}"),
                None => method.to_owned(),
            };
            attributes.extend(names.map(|(name, key)| KeyValue::new(key, name.to_owned())));
            SpanBuilder::from_name(title)
                .with_kind(SpanKind::Client)
                .with_attributes(attributes)
        })
    }

    fn child(&self, span: impl FnOnce() -> SpanBuilder) -> ChildSpan {
        ChildSpan(self.0.as_ref().map(|recorded| {
            let parent = lock(&recorded.span).span_context().clone();
            recorded
                .tracer
                .build_with_context(span(), &below(Some(parent)))
        }))
    }
}

impl ChildSpan {
    /// The trace that it is part of, which came to it as `trace`.
    pub(crate) fn trace(&self, trace: TraceContext) -> TraceContext {
        match &self.0 {
            Some(span) => continued(span.span_context(), trace),
            None => trace,
        }
    }

    /// The run ended so.
    pub(crate) fn ended(mut self, ended: &Result<Outcome, RunError>) {
        let Some(mut span) = self.0.take() else {
            return;
        };
        match ended {
            Ok(outcome) => {
                let exit = Exit::of(outcome);
                let seconds = |name, time: Duration| KeyValue::new(name, time.as_secs_f64());
                span.set_attributes([
                    KeyValue::new("process.exit.code", i64::from(exit.code)),
                    seconds("mcpd.run.queued_seconds", outcome.timing.queued),
                    seconds("mcpd.run.spawn_seconds", outcome.timing.spawn),
                ]);
                if !outcome.success() {
                    fail(&mut span, exit.name);
                }
            }
            Err(error) => fail(&mut span, error.name()),
        }
        span.end();
    }

    /// The other server has answered, or never will; `error` is the kind of failure if it is one.
    pub(crate) fn answered(mut self, error: Option<&str>) {
        if let Some(mut span) = self.0.take() {
            if let Some(error) = error {
                fail(&mut span, error.to_owned());
            }
            span.end();
        }
    }
}

/// What is known of a request before it is looked at.
fn attributes(method: &'static str, id: &RequestId, context: &Context) -> Vec<KeyValue> {
    let id: String = id.to_string().chars().take(MAX_ID).collect();
    let mut attributes = vec![
        KeyValue::new("mcp.method.name", method),
        KeyValue::new("mcp.protocol.version", context.version.as_str()),
        KeyValue::new("jsonrpc.request.id", id),
    ];
    if method == CallToolRequest::NAME {
        attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
    }
    match context.transport {
        Transport::Channel => {}
        Transport::Stdio => attributes.push(KeyValue::new("network.transport", "pipe")),
        #[cfg(feature = "http")]
        Transport::Http | Transport::HttpSse => {
            attributes.extend([
                KeyValue::new("network.transport", "tcp"),
                KeyValue::new("network.protocol.name", "http"),
            ]);
            let session = context.session.as_ref();
            let id = session.and_then(|session| session.id.clone());
            attributes.extend(id.map(|id| KeyValue::new("mcp.session.id", id)));
        }
    }
    attributes
}

/// What says the name that a request of this method is about.
fn attribute_of_name(method: &str) -> Option<&'static str> {
    match method {
        CallToolRequest::NAME => Some("gen_ai.tool.name"),
        GetPromptRequest::NAME => Some("gen_ai.prompt.name"),
        _ => None,
    }
}

fn fail(span: &mut BoxedSpan, kind: impl Into<StringValue>) {
    span.set_attribute(KeyValue::new("error.type", kind.into()));
    span.set_status(Status::error(""));
}

/// What is to be the parent of a span.
fn below(parent: Option<SpanContext>) -> opentelemetry::Context {
    // Not the current one of the thread: a task has none of its own.
    let root = opentelemetry::Context::new();
    match parent {
        Some(parent) => root.with_remote_span_context(parent),
        None => root,
    }
}

/// The span of a caller. One of zeros is none.
fn remote(trace: &TraceContext) -> Option<SpanContext> {
    let mut parts = trace.parent.as_deref()?.split('-').skip(1);
    let trace_id = TraceId::from_hex(parts.next()?).ok()?;
    let span_id = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    // Those of later versions are not ours to pass on.
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let state = trace.state.as_deref().unwrap_or_default();
    let state = state.parse().unwrap_or_default();
    Some(SpanContext::new(trace_id, span_id, flags, true, state)).filter(SpanContext::is_valid)
}

/// The trace from this span on. Baggage is not ours.
fn continued(span: &SpanContext, trace: TraceContext) -> TraceContext {
    if !span.is_valid() {
        return trace;
    }
    let (trace_id, span_id, flags) = (span.trace_id(), span.span_id(), span.trace_flags());
    let state = span.trace_state().header();
    TraceContext {
        parent: Some(format!("00-{trace_id}-{span_id}-{flags:02x}")),
        state: Some(state).filter(|state| !state.is_empty()),
        baggage: trace.baggage,
    }
}

fn cancel(span: &mut BoxedSpan) {
    if span.is_recording() {
        fail(span, "cancelled");
        span.end();
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        cancel(&mut lock(&self.span));
    }
}

impl Drop for ChildSpan {
    fn drop(&mut self) {
        if let Some(span) = &mut self.0 {
            cancel(span);
        }
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    /// What becomes of a trace on its way through.
    #[track_caller]
    fn check(parent: &str, state: &str, expected: Option<(&str, Option<&str>)>) {
        let given = TraceContext::new(Some(parent), Some(state), Some("a=b"));
        let found = remote(&given).map(|span| continued(&span, given));
        let expected =
            expected.map(|(parent, state)| TraceContext::new(Some(parent), state, Some("a=b")));
        assert_eq!(found, expected, "{parent} {state}");
    }

    #[test]
    fn a_trace_goes_on_as_what_it_is() {
        let parent = |flags| format!("00-{TRACE}-{SPAN}-{flags}");
        for flags in ["00", "01"] {
            let parent = parent(flags);
            check(&parent, "x=1,y=2", Some((&parent, Some("x=1,y=2"))));
        }
        // It is the state that makes no sense, not the trace.
        check(&parent("01"), "nonsense", Some((&parent("01"), None)));
        // Only what this version has a meaning for is passed on.
        let later = format!("01-{TRACE}-{SPAN}-ff");
        check(&later, "x=1", Some((&parent("01"), Some("x=1"))));
    }

    #[test]
    fn what_is_all_zeros_is_no_trace() {
        let (trace, span) = ("0".repeat(32), "0".repeat(16));
        check(&format!("00-{trace}-{SPAN}-01"), "x=1", None);
        check(&format!("00-{TRACE}-{span}-01"), "x=1", None);
    }
}
