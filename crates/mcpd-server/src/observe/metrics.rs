//! Metrics for Prometheus: names and labels follow OpenTelemetry's conventions for MCP. Label
//! values come from bounded sets; no text of a caller becomes one.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use mcpd_exec::Outcome;
use mcpd_protocol::Method as _;
use mcpd_protocol::jsonrpc::ErrorCode;
use mcpd_protocol::method::CallToolRequest;
use prometheus::core::Collector;
use prometheus::proto::LabelPair;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
    TextEncoder,
};

use crate::limits::admission::Rejection;
use crate::message::reply::{MethodResult, OTHER_METHOD};
use crate::observe::approval::ApprovalStep;
use crate::observe::ending::Exit;
use crate::observe::ending::RunError;
use crate::observe::operator::ServerNumbers;
use crate::support::sync::lock;

mod process;

/// Bounds of the histograms. "[ 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300 ]"
/// -- OpenTelemetry, MCP metrics. The first bound is added for requests that start no process.
const DURATION_BOUNDS: [f64; 15] = [
    0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// Maximum number of tools and prompts with separate labels, including deleted ones.
const MAX_LABELS: usize = 4096;
/// State of the server at the time of a scrape.
pub(crate) struct Readings {
    /// Running processes.
    pub(crate) running: usize,
    /// Runs that wait in the queue.
    pub(crate) queued: usize,
    /// Served tools.
    pub(crate) tools: usize,
    /// Scripts with faults.
    pub(crate) faulty: usize,
    /// Calls that the audit log has missed so far.
    pub(crate) lost_records: u64,
}

/// Metrics of one server.
pub(crate) struct Metrics {
    registry: Registry,
    operations: HistogramVec,
    sessions: IntGauge,
    session_durations: Histogram,
    connections: IntGauge,
    outcomes: IntCounterVec,
    refusals: IntCounterVec,
    approvals: IntCounterVec,
    names: Mutex<BTreeSet<Arc<str>>>,
    scraped: Scraped,
}

/// Metrics that are read at the time of a scrape.
struct Scraped {
    runs: IntGauge,
    queued: IntGauge,
    tools: IntGauge,
    faulty: IntGauge,
    audit_failures: IntCounter,
    /// Number of failures already counted.
    known_failures: AtomicU64,
}

/// Timer of one request. All clones share it; if the last is dropped without an answer, the
/// request was cancelled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operation(Option<Arc<Timed>>);

struct Timed {
    metrics: Arc<Metrics>,
    method: &'static str,
    began: Instant,
    name: OnceLock<Arc<str>>,
    has_failed: AtomicBool,
    is_over: AtomicBool,
}

/// Counter of one run, from its turn to its end; dropped earlier, it counts as cancelled.
#[derive(Debug)]
pub(crate) struct RunCounter(Option<IntCounterVec>);

/// Gauge guard: counts something as open until it is dropped, and may time it.
#[cfg(feature = "http")]
#[derive(Debug)]
pub(crate) struct OpenGuard {
    open: IntGauge,
    since: Option<(Instant, Histogram)>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let registry = Registry::new();
        let metrics = Self {
            operations: histograms(
                "mcp_server_operation_duration_seconds",
                "Duration of requests, from arrival to response.",
                &[
                    "mcp_method_name",
                    "gen_ai_tool_name",
                    "gen_ai_prompt_name",
                    "error_type",
                ],
            ),
            session_durations: histograms(
                "mcp_server_session_duration_seconds",
                "Duration of HTTP sessions.",
                &[],
            )
            .with_label_values::<&str>(&[]),
            sessions: gauge("mcpd_sessions", "Open HTTP sessions."),
            connections: gauge("mcpd_connections", "Open HTTP connections."),
            outcomes: counters(
                "mcpd_run_outcomes_total",
                "Finished runs of scripts and commands, by ending.",
                "ending",
            ),
            refusals: counters(
                "mcpd_refusals_total",
                "Requests and calls refused before any work, by reason.",
                "reason",
            ),
            approvals: counters(
                "mcpd_approvals_total",
                "Calls that need the approval of a person, by its step.",
                "step",
            ),
            names: Mutex::default(),
            scraped: Scraped {
                runs: gauge("mcpd_runs_in_flight", "Running processes."),
                queued: gauge("mcpd_runs_queued", "Runs waiting in the queue."),
                tools: gauge("mcpd_catalog_tools", "Served tools."),
                faulty: gauge("mcpd_catalog_faulty_scripts", "Scripts with faults."),
                audit_failures: IntCounter::new(
                    "mcpd_audit_failures_total",
                    "Calls missing in the audit log because they could not be recorded.",
                )
                .expect(VALID_METRICS),
                known_failures: AtomicU64::new(0),
            },
            registry,
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let version = Opts::new("mcpd_build_info", "Version of mcpd.")
            .const_label("version", env!("CARGO_PKG_VERSION"));
        let build = IntGauge::with_opts(version).expect(VALID_METRICS);
        build.set(1);
        for reason in [
            Rejection::Rate,
            Rejection::Busy,
            #[cfg(feature = "http")]
            Rejection::Source,
            #[cfg(feature = "http")]
            Rejection::Token,
        ] {
            self.refusals.with_label_values(&[reason.label()]);
        }
        for step in ApprovalStep::ALL {
            self.approvals.with_label_values(&[step.name()]);
        }
        let scraped = &self.scraped;
        let collectors: [Box<dyn Collector>; 13] = [
            Box::new(self.operations.clone()),
            Box::new(self.sessions.clone()),
            Box::new(self.session_durations.clone()),
            Box::new(self.connections.clone()),
            Box::new(self.outcomes.clone()),
            Box::new(self.refusals.clone()),
            Box::new(self.approvals.clone()),
            Box::new(scraped.runs.clone()),
            Box::new(scraped.queued.clone()),
            Box::new(scraped.tools.clone()),
            Box::new(scraped.faulty.clone()),
            Box::new(scraped.audit_failures.clone()),
            Box::new(build),
        ];
        for collector in collectors {
            self.registry.register(collector).expect(VALID_METRICS);
        }
    }

    /// Starts the timer of a request.
    pub(crate) fn start_operation(self: &Arc<Self>, method: &'static str) -> Operation {
        Operation(Some(Arc::new(Timed {
            metrics: Arc::clone(self),
            method,
            began: Instant::now(),
            name: OnceLock::new(),
            has_failed: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        })))
    }

    /// Returns the label of the tool or prompt at `path`.
    fn label_for(&self, path: &str) -> Arc<str> {
        let mut names = lock(&self.names);
        if let Some(name) = names.get(path) {
            return Arc::clone(name);
        }
        if names.len() >= MAX_LABELS {
            return OTHER_METHOD.into();
        }
        let name: Arc<str> = path.into();
        names.insert(Arc::clone(&name));
        name
    }

    /// Counts a refusal.
    pub(crate) fn count_refusal(&self, reason: Rejection) {
        self.refusals.with_label_values(&[reason.label()]).inc();
    }

    /// Counts a step of an approval.
    pub(crate) fn count_approval(&self, step: ApprovalStep) {
        self.approvals.with_label_values(&[step.name()]).inc();
    }

    /// Starts the counter of a run.
    pub(crate) fn start_run(&self) -> RunCounter {
        RunCounter(Some(self.outcomes.clone()))
    }

    /// Counts an open connection.
    #[cfg(feature = "http")]
    pub(crate) fn open_connection(&self) -> OpenGuard {
        OpenGuard::new(&self.connections, None)
    }

    /// Counts an open session.
    #[cfg(feature = "http")]
    pub(crate) fn open_session(&self) -> OpenGuard {
        OpenGuard::new(&self.sessions, Some(self.session_durations.clone()))
    }

    /// Reads the numbers that the metrics have.
    pub(crate) fn numbers(&self) -> ServerNumbers {
        let mut numbers = ServerNumbers {
            sessions: count(&self.sessions),
            connections: count(&self.connections),
            memory_bytes: process::resident_memory(),
            ..ServerNumbers::default()
        };
        let refusals = self.refusals.collect();
        for counter in refusals.iter().flat_map(|family| family.get_metric()) {
            let count = counter.get_counter().get_value() as u64;
            let reason = counter.get_label().iter().map(LabelPair::value).collect();
            numbers.refusals += count;
            numbers.refusals_by_reason.push((reason, count));
        }
        for family in self.operations.collect() {
            for series in family.get_metric() {
                add_calls(&mut numbers, series.get_label(), series.get_histogram());
            }
        }
        numbers
    }

    /// Formats all metrics in the text format of Prometheus.
    pub(crate) fn text(&self, readings: &Readings) -> String {
        self.scraped.update(readings);
        let mut families = self.registry.gather();
        families.extend(process::families());
        TextEncoder::new()
            .encode_to_string(&families)
            .unwrap_or_else(|error| {
                tracing::error!(%error, "failed to write the metrics");
                String::new()
            })
    }
}

/// Adds the calls of one tool with one ending.
fn add_calls(
    numbers: &mut ServerNumbers,
    labels: &[LabelPair],
    calls: &prometheus::proto::Histogram,
) {
    let label = |name| labels.iter().find(|label| label.name() == name);
    if label("mcp_method_name").is_none_or(|label| label.value() != CallToolRequest::NAME) {
        return;
    }
    let count = calls.get_sample_count();
    numbers.calls += count;
    if label("error_type").is_some_and(|label| !label.value().is_empty()) {
        numbers.failures += count;
    }
    numbers.seconds += calls.get_sample_sum();
    for (place, bucket) in calls.get_bucket().iter().enumerate() {
        let (bound, count) = (bucket.upper_bound(), bucket.cumulative_count());
        match numbers.calls_by_duration.get_mut(place) {
            Some((_, sum)) => *sum += count,
            None => numbers.calls_by_duration.push((bound, count)),
        }
    }
}

/// Value of a gauge that counts.
fn count(gauge: &IntGauge) -> u64 {
    u64::try_from(gauge.get()).unwrap_or(0)
}

/// Invariant of the constructors above, which every test exercises.
const VALID_METRICS: &str = "the names are valid, and each is there once";

impl Scraped {
    fn update(&self, readings: &Readings) {
        self.runs.set(integer(readings.running));
        self.queued.set(integer(readings.queued));
        self.tools.set(integer(readings.tools));
        self.faulty.set(integer(readings.faulty));
        self.count_lost(readings.lost_records);
    }

    /// Counts failures up to the total `lost`. Scrapes may run at the same time; each failure is
    /// counted once.
    fn count_lost(&self, lost: u64) {
        let known = self.known_failures.fetch_max(lost, Relaxed);
        self.audit_failures.inc_by(lost.saturating_sub(known));
    }
}

impl Rejection {
    fn label(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Busy => "busy",
            #[cfg(feature = "http")]
            Self::Source => "source",
            #[cfg(feature = "http")]
            Self::Token => "token",
        }
    }
}

impl Operation {
    /// Sets the path of the named item in the catalog.
    pub(crate) fn set_tool(&self, path: &str) {
        if let Some(timed) = &self.0 {
            timed.name.get_or_init(|| timed.metrics.label_for(path));
        }
    }

    /// Marks a failure of the tool, which is not an error of the request.
    pub(crate) fn mark_failed(&self) {
        if let Some(timed) = &self.0 {
            timed.has_failed.store(true, Relaxed);
        }
    }

    /// Stops the timer with this result.
    pub(crate) fn finish(&self, result: &MethodResult) {
        if let Some(timed) = &self.0 {
            match result {
                Ok(_) if timed.has_failed.load(Relaxed) => timed.finish_with("tool_error"),
                Ok(_) => timed.finish_with(""),
                Err(error) => timed.finish_with(error_type(error.code)),
            }
        }
    }
}

impl Timed {
    fn finish_with(&self, error: &str) {
        if self.is_over.swap(true, Relaxed) {
            return;
        }
        let name = self.name.get().map_or("", |name| name);
        let (tool, prompt) = match self.method {
            "tools/call" => (name, ""),
            "prompts/get" => ("", name),
            _ => ("", ""),
        };
        let seconds = self.began.elapsed().as_secs_f64();
        tracing::debug!(
            name,
            error = (!error.is_empty()).then_some(error),
            seconds,
            "{}",
            self.method
        );
        self.metrics
            .operations
            .with_label_values(&[self.method, tool, prompt, error])
            .observe(seconds);
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        self.finish_with("cancelled");
    }
}

impl fmt::Debug for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timed")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl RunCounter {
    /// Counts the ending of the run.
    pub(crate) fn finish(mut self, ended: &Result<Outcome, RunError>) {
        let ending = match ended {
            Ok(outcome) => Exit::of(outcome).name,
            Err(_) => "not-started",
        };
        self.count(ending);
    }

    fn count(&mut self, ending: &str) {
        if let Some(outcomes) = self.0.take() {
            outcomes.with_label_values(&[ending]).inc();
        }
    }
}

impl Drop for RunCounter {
    fn drop(&mut self) {
        self.count("cancelled");
    }
}

#[cfg(feature = "http")]
impl OpenGuard {
    fn new(open: &IntGauge, durations: Option<Histogram>) -> Self {
        open.inc();
        Self {
            open: open.clone(),
            since: durations.map(|durations| (Instant::now(), durations)),
        }
    }
}

#[cfg(feature = "http")]
impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.open.dec();
        if let Some((since, durations)) = &self.since {
            durations.observe(since.elapsed().as_secs_f64());
        }
    }
}

/// Returns the label for an error code, "as string" -- OpenTelemetry, MCP. A script may choose
/// any code.
fn error_type(code: ErrorCode) -> &'static str {
    match code.get() {
        -32700 => "-32700",
        -32603 => "-32603",
        -32602 => "-32602",
        -32601 => "-32601",
        -32600 => "-32600",
        -32022 => "-32022",
        -32021 => "-32021",
        -32020 => "-32020",
        -32002 => "-32002",
        _ => OTHER_METHOD,
    }
}

fn integer(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn histograms(name: &str, help: &str, labels: &[&str]) -> HistogramVec {
    let options = HistogramOpts::new(name, help).buckets(DURATION_BOUNDS.to_vec());
    HistogramVec::new(options, labels).expect(VALID_METRICS)
}

fn counters(name: &str, help: &str, label: &str) -> IntCounterVec {
    IntCounterVec::new(Opts::new(name, help), &[label]).expect(VALID_METRICS)
}

fn gauge(name: &str, help: &str) -> IntGauge {
    IntGauge::new(name, help).expect(VALID_METRICS)
}

#[cfg(test)]
mod tests {
    use mcpd_protocol::jsonrpc::ErrorObject;

    use super::*;

    #[track_caller]
    fn check(metrics: &Metrics, labels: [&str; 4], count: u64) {
        let series = metrics.operations.with_label_values(&labels);
        assert_eq!(series.get_sample_count(), count, "{labels:?}");
    }

    #[test]
    fn request_is_counted_once_by_its_ending() {
        let metrics = Arc::new(Metrics::new());
        let call = |method| {
            let operation = metrics.start_operation(method);
            operation.set_tool("math/add");
            operation
        };
        let failed = |code| Err(ErrorObject::new(ErrorCode::new(code), "it failed"));
        call("tools/call").finish(&Ok("{}".into()));
        let operation = call("tools/call");
        operation.mark_failed();
        operation.finish(&Ok("{}".into()));
        operation.finish(&failed(-32603));
        call("tools/call").finish(&failed(-32602));
        call("tools/call").finish(&failed(12345));
        drop(call("tools/call"));
        call("prompts/get").finish(&Ok("{}".into()));
        call("resources/read").finish(&Ok("{}".into()));
        call(OTHER_METHOD).finish(&failed(-32601));
        for error in ["", "tool_error", "-32602", "_OTHER", "cancelled"] {
            check(&metrics, ["tools/call", "math/add", "", error], 1);
        }
        check(&metrics, ["prompts/get", "", "math/add", ""], 1);
        check(&metrics, ["resources/read", "", "", ""], 1);
        check(&metrics, ["_OTHER", "", "", "-32601"], 1);
    }

    #[test]
    fn failures_are_counted_once_by_several_scrapes() {
        let metrics = Metrics::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..=10_000).for_each(|lost| metrics.scraped.count_lost(lost)));
            }
        });
        assert_eq!(metrics.scraped.audit_failures.get(), 10_000);
    }

    #[test]
    fn labels_are_bounded() {
        let metrics = Metrics::new();
        for name in 0..MAX_LABELS {
            assert_eq!(*metrics.label_for(&name.to_string()), *name.to_string());
        }
        assert_eq!(&*metrics.label_for("another"), OTHER_METHOD);
        assert_eq!(&*metrics.label_for("0"), "0");
    }
}
