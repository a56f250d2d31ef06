//! Numbers of the last hour, in a ring: a sample each ten seconds.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use mcpd_server::Server;
use mcpd_server::operator::ServerNumbers;
use serde::Serialize;
use tokio::time::sleep;

/// Interval between two samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);
/// Number of samples that are kept: those of an hour.
const MAX_SAMPLES: usize = 360;

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
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    pub(crate) seconds: f64,
    pub(crate) refusals: u64,
    pub(crate) running: usize,
    pub(crate) queued: usize,
    pub(crate) sessions: u64,
    pub(crate) connections: u64,
    pub(crate) memory: u64,
    /// Number of calls of at most so many seconds, by that bound.
    pub(crate) latency: BTreeMap<String, u64>,
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
    let ServerNumbers {
        calls,
        failures,
        seconds,
        calls_by_duration,
        refusals,
        running,
        queued,
        sessions,
        connections,
        memory_bytes,
        ..
    } = server.numbers();
    let latency = calls_by_duration.into_iter();
    let mut latency: BTreeMap<_, _> = latency
        .map(|(bound, count)| (bound.to_string(), count))
        .collect();
    if calls > 0 {
        latency.insert("+Inf".to_owned(), calls);
    }
    Sample {
        time: Timestamp::now().as_millisecond(),
        calls,
        failures,
        seconds,
        refusals,
        running,
        queued,
        sessions,
        connections,
        memory: memory_bytes.unwrap_or(0),
        latency,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
