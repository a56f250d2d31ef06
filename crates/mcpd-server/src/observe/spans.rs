//! Spans of OpenTelemetry: one per request, and below it one per run and per request to another
//! server. They contain name, duration and outcome under the conventions for MCP; never arguments
//! or output.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpd_exec::Outcome;
use mcpd_protocol::Method as _;
use mcpd_protocol::jsonrpc::RequestId;
use mcpd_protocol::method::{CallToolRequest, GetPromptRequest};
use mcpd_scriptspec::ScriptPath;
use opentelemetry::global::{self, BoxedSpan, BoxedTracer};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _,
    TraceFlags, TraceId, Tracer as _,
};
use opentelemetry::{InstrumentationScope, KeyValue, StringValue};

use crate::message::reply::MethodResult;
use crate::message::trace::TraceContext;
use crate::message::transport::Transport;
use crate::observe::RequestOrigin;
use crate::observe::ending::Exit;
use crate::observe::ending::RunError;
use crate::support::sync::lock;

/// Maximum length of an id in an attribute, in characters.
const MAX_ID_CHARS: usize = 128;

/// Tracer of a server, if spans are enabled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spans(Option<Arc<BoxedTracer>>);

/// Span of one request. All clones share it; if the last is dropped without an answer, the
/// request was cancelled.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestSpan(Option<Arc<LiveSpan>>);

struct LiveSpan {
    tracer: Arc<BoxedTracer>,
    method: &'static str,
    span: Mutex<BoxedSpan>,
}

/// Span of one run, or of one request to another server. Dropped before its end, it was
/// cancelled.
#[derive(Debug)]
pub(crate) struct ChildSpan(Option<BoxedSpan>);

impl Spans {
    /// Creates spans for the provider that the program has installed globally.
    pub(crate) fn global() -> Self {
        let scope = InstrumentationScope::builder("mcpd").with_version(env!("CARGO_PKG_VERSION"));
        Self(Some(Arc::new(global::tracer_with_scope(scope.build()))))
    }

    /// Starts the span of a request.
    pub(crate) fn start_request(
        &self,
        method: &'static str,
        id: &RequestId,
        origin: RequestOrigin<'_>,
    ) -> RequestSpan {
        let Some(tracer) = &self.0 else {
            return RequestSpan::default();
        };
        let span = SpanBuilder::from_name(method)
            .with_kind(SpanKind::Server)
            .with_attributes(attributes(method, id, origin));
        let span = tracer.build_with_context(span, &with_parent(parse_parent(origin.trace)));
        RequestSpan(Some(Arc::new(LiveSpan {
            tracer: Arc::clone(tracer),
            method,
            span: Mutex::new(span),
        })))
    }
}

impl RequestSpan {
    fn update(&self, update: impl FnOnce(&LiveSpan, &mut BoxedSpan)) {
        if let Some(live) = &self.0 {
            let mut span = lock(&live.span);
            if span.is_recording() {
                update(live, &mut span);
            }
        }
    }

    /// Sets the path of the named item in the catalog.
    pub(crate) fn set_tool(&self, path: &ScriptPath) {
        self.update(|live, span| {
            let Some(attribute) = attribute_of_name(live.method) else {
                return;
            };
            span.update_name(format!("{} {path}", live.method));
            span.set_attribute(KeyValue::new(attribute, path.to_string()));
        });
    }

    /// Marks a failure of the tool, which is not an error of the request.
    pub(crate) fn mark_failed(&self) {
        self.update(|_, span| fail(span, "tool_error"));
    }

    /// Ends the span with this result.
    pub(crate) fn finish(&self, result: &MethodResult) {
        self.update(|_, span| {
            // The message is omitted: it may repeat an argument.
            if let Err(error) = result {
                let code = error.code.get().to_string();
                span.set_attribute(KeyValue::new("rpc.response.status_code", code.clone()));
                fail(span, code);
            }
            span.end();
        });
    }

    /// Returns the trace context for work on the request, which arrived with `trace`.
    pub(crate) fn continue_trace(&self, trace: TraceContext) -> TraceContext {
        match &self.0 {
            Some(live) => continue_from(lock(&live.span).span_context(), trace),
            None => trace,
        }
    }

    /// Starts the span of a run of the script at `path`, which may have to wait in the run queue.
    pub(crate) fn start_run(&self, path: &ScriptPath) -> ChildSpan {
        self.start_child(|| SpanBuilder::from_name(format!("run {path}")))
    }

    /// Starts the span of a request to another server, for the tool or prompt called `name`
    /// there.
    pub(crate) fn start_outgoing(&self, method: &str, name: Option<&str>) -> ChildSpan {
        self.start_child(|| {
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

    fn start_child(&self, span: impl FnOnce() -> SpanBuilder) -> ChildSpan {
        ChildSpan(self.0.as_ref().map(|live| {
            let parent = lock(&live.span).span_context().clone();
            live.tracer
                .build_with_context(span(), &with_parent(Some(parent)))
        }))
    }
}

impl ChildSpan {
    /// Returns the trace context for work below this span, given the context `trace` of its
    /// parent.
    pub(crate) fn continue_trace(&self, trace: TraceContext) -> TraceContext {
        match &self.0 {
            Some(span) => continue_from(span.span_context(), trace),
            None => trace,
        }
    }

    /// Ends the span of a run.
    pub(crate) fn finish_run(mut self, ended: &Result<Outcome, RunError>) {
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

    /// Ends the span of a request to another server; `error` is the kind of a failure.
    pub(crate) fn finish_request(mut self, error: Option<&str>) {
        if let Some(mut span) = self.0.take() {
            if let Some(error) = error {
                fail(&mut span, error.to_owned());
            }
            span.end();
        }
    }
}

/// Attributes known before the parameters of a request are read.
fn attributes(method: &'static str, id: &RequestId, origin: RequestOrigin<'_>) -> Vec<KeyValue> {
    let id: String = id.to_string().chars().take(MAX_ID_CHARS).collect();
    let mut attributes = vec![
        KeyValue::new("mcp.method.name", method),
        KeyValue::new("mcp.protocol.version", origin.version.as_str()),
        KeyValue::new("jsonrpc.request.id", id),
    ];
    if method == CallToolRequest::NAME {
        attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
    }
    match origin.transport {
        Transport::Channel | Transport::Local | Transport::Front => {}
        Transport::Stdio => attributes.push(KeyValue::new("network.transport", "pipe")),
        #[cfg(feature = "http")]
        Transport::Http | Transport::HttpSse => {
            attributes.extend([
                KeyValue::new("network.transport", "tcp"),
                KeyValue::new("network.protocol.name", "http"),
            ]);
            let id = origin.session_id.map(str::to_owned);
            attributes.extend(id.map(|id| KeyValue::new("mcp.session.id", id)));
        }
    }
    attributes
}

/// Returns the attribute for the name in requests of this method.
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

/// Returns a context with this parent.
fn with_parent(parent: Option<SpanContext>) -> opentelemetry::Context {
    // The current context of the thread is not used: it belongs to another task.
    let root = opentelemetry::Context::new();
    match parent {
        Some(parent) => root.with_remote_span_context(parent),
        None => root,
    }
}

/// Parses the span of a caller; an all-zero id is none.
fn parse_parent(trace: &TraceContext) -> Option<SpanContext> {
    let mut parts = trace.parent.as_deref()?.split('-').skip(1);
    let trace_id = TraceId::from_hex(parts.next()?).ok()?;
    let span_id = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    // Flags of later versions are not passed on.
    let flags = TraceFlags::new(flags) & TraceFlags::SAMPLED;
    let state = trace.state.as_deref().unwrap_or_default();
    let state = state.parse().unwrap_or_default();
    Some(SpanContext::new(trace_id, span_id, flags, true, state)).filter(SpanContext::is_valid)
}

/// Returns the trace context that continues from this span. The baggage stays as it is.
fn continue_from(span: &SpanContext, trace: TraceContext) -> TraceContext {
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

impl Drop for LiveSpan {
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

impl fmt::Debug for LiveSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveSpan")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    /// Checks a trace context on its way through the server.
    #[track_caller]
    fn check(parent: &str, state: &str, expected: Option<(&str, Option<&str>)>) {
        let given = TraceContext::new(Some(parent), Some(state), Some("a=b"));
        let found = parse_parent(&given).map(|span| continue_from(&span, given));
        let expected =
            expected.map(|(parent, state)| TraceContext::new(Some(parent), state, Some("a=b")));
        assert_eq!(found, expected, "{parent} {state}");
    }

    #[test]
    fn trace_context_continues_unchanged() {
        let parent = |flags| format!("00-{TRACE}-{SPAN}-{flags}");
        for flags in ["00", "01"] {
            let parent = parent(flags);
            check(&parent, "x=1,y=2", Some((&parent, Some("x=1,y=2"))));
        }
        // The state is malformed, the trace is not.
        check(&parent("01"), "nonsense", Some((&parent("01"), None)));
        // Only flags known to this version are passed on.
        let later = format!("01-{TRACE}-{SPAN}-ff");
        check(&later, "x=1", Some((&parent("01"), Some("x=1"))));
    }

    #[test]
    fn all_zero_trace_is_ignored() {
        let (trace, span) = ("0".repeat(32), "0".repeat(16));
        check(&format!("00-{trace}-{SPAN}-01"), "x=1", None);
        check(&format!("00-{TRACE}-{span}-01"), "x=1", None);
    }
}
