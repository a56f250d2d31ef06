//! Metrics of the last hour, in a ring: a sample of a few numbers each ten seconds.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use mcpd_server::Server;
use serde::Serialize;
use tokio::time::sleep;

/// Interval between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);
/// Number of samples that are kept: those of an hour.
const MAX_SAMPLES: usize = 360;
/// Histogram of requests.
const REQUESTS: &str = "mcp_server_operation_duration_seconds";

/// Ring of samples.
#[derive(Debug, Default)]
pub(crate) struct History {
    samples: Mutex<VecDeque<Sample>>,
}

/// Numbers at one time. Counters count from the start of the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Sample {
    /// Milliseconds since 1970.
    pub(crate) time: i64,
    pub(crate) calls: f64,
    pub(crate) failures: f64,
    pub(crate) seconds: f64,
    pub(crate) refusals: f64,
    pub(crate) running: f64,
    pub(crate) queued: f64,
    pub(crate) sessions: f64,
    pub(crate) connections: f64,
    pub(crate) memory: f64,
    /// Number of calls of at most so many seconds, by that bound.
    pub(crate) latency: BTreeMap<String, f64>,
}

impl History {
    /// Takes samples of a server, for ever.
    pub(crate) async fn follow(&self, server: &Server) -> Infallible {
        loop {
            self.add(sample(server));
            sleep(SAMPLE_INTERVAL).await;
        }
    }

    fn add(&self, sample: Sample) {
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == MAX_SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Returns the samples, the oldest first.
    pub(crate) fn samples(&self) -> Vec<Sample> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        samples.iter().cloned().collect()
    }
}

/// Takes a sample of a server now.
pub(crate) fn sample(server: &Server) -> Sample {
    let mut sample = parse(&server.metrics_text());
    sample.time = Timestamp::now().as_millisecond();
    sample
}

/// Reads the numbers from the text format of Prometheus.
fn parse(text: &str) -> Sample {
    let mut sample = Sample::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((series, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let Ok(value) = value.parse::<f64>() else {
            continue;
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        match name {
            "mcpd_runs_in_flight" => sample.running = value,
            "mcpd_runs_queued" => sample.queued = value,
            "mcpd_sessions" => sample.sessions = value,
            "mcpd_connections" => sample.connections = value,
            "mcpd_refusals_total" => sample.refusals += value,
            "process_resident_memory_bytes" => sample.memory = value,
            _ => add_request(&mut sample, name, labels, value),
        }
    }
    sample
}

fn add_request(sample: &mut Sample, name: &str, labels: &str, value: f64) {
    let Some(part) = name.strip_prefix(REQUESTS) else {
        return;
    };
    if label(labels, "mcp_method_name") != Some("tools/call") {
        return;
    }
    match part {
        "_count" => {
            sample.calls += value;
            if label(labels, "error_type").is_some_and(|kind| !kind.is_empty()) {
                sample.failures += value;
            }
        }
        "_sum" => sample.seconds += value,
        "_bucket" => {
            if let Some(bound) = label(labels, "le") {
                *sample.latency.entry(bound.to_owned()).or_default() += value;
            }
        }
        _ => {}
    }
}

/// Returns the value of a label. Values of interest have no quotes in them.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let mut found = labels.match_indices(name).filter_map(|(at, _)| {
        let is_start = at == 0 || labels[..at].ends_with(',');
        let value = labels[at + name.len()..].strip_prefix("=\"")?;
        is_start.then(|| value.split('"').next()).flatten()
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP mcpd_runs_in_flight Running processes.
mcpd_runs_in_flight 3
mcpd_runs_queued 2
mcpd_refusals_total{reason=\"busy\"} 4
mcpd_refusals_total{reason=\"token\"} 1
mcp_server_operation_duration_seconds_bucket{error_type=\"\",gen_ai_tool_name=\"a\",mcp_method_name=\"tools/call\",le=\"0.1\"} 5
mcp_server_operation_duration_seconds_bucket{error_type=\"x\",gen_ai_tool_name=\"a\",mcp_method_name=\"tools/call\",le=\"0.1\"} 1
mcp_server_operation_duration_seconds_count{error_type=\"\",gen_ai_tool_name=\"a\",mcp_method_name=\"tools/call\"} 7
mcp_server_operation_duration_seconds_count{error_type=\"tool_error\",gen_ai_tool_name=\"a\",mcp_method_name=\"tools/call\"} 2
mcp_server_operation_duration_seconds_sum{error_type=\"\",gen_ai_tool_name=\"a\",mcp_method_name=\"tools/call\"} 1.5
mcp_server_operation_duration_seconds_count{error_type=\"\",mcp_method_name=\"tools/list\"} 70
";

    #[test]
    fn sample_sums_the_series_of_calls() {
        let sample = parse(TEXT);
        assert_eq!((sample.running, sample.queued), (3.0, 2.0));
        assert_eq!((sample.calls, sample.failures), (9.0, 2.0));
        assert_eq!((sample.seconds, sample.refusals), (1.5, 5.0));
        assert_eq!(sample.latency["0.1"], 6.0);
    }

    #[test]
    fn ring_keeps_an_hour() {
        let history = History::default();
        for time in 0..2 * MAX_SAMPLES as i64 {
            history.add(Sample {
                time,
                ..Sample::default()
            });
        }
        let samples = history.samples();
        assert_eq!(samples.len(), MAX_SAMPLES);
        assert_eq!(samples[0].time, MAX_SAMPLES as i64);
    }
}
