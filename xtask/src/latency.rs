//! Latency histograms.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Cap of a recorded duration in µs: a day.
const MAX_MICROSECONDS: u64 = 86_400_000_000;

/// Histogram of durations, each within a thousandth.
#[derive(Debug, Clone)]
pub(crate) struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        Self(Histogram::new(3).expect("three digits are possible"))
    }
}

impl Latency {
    pub(crate) fn record(&mut self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(MAX_MICROSECONDS);
        // `record` grows the histogram as needed, which `saturating_record` does not.
        self.0
            .record(took.min(MAX_MICROSECONDS))
            .expect("there is room for the longest");
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0 += &other.0;
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the duration that this share of them does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(share))
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, worst] = [0.5, 0.99, 1.0].map(|share| self.quantile(share));
        write!(
            f,
            "{} calls: median {half:.1?}, 99 % {most:.1?}, longest {worst:.1?}",
            self.count()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_within_a_thousandth() {
        let mut latency = Latency::default();
        for milliseconds in 1..=100 {
            latency.record(Duration::from_millis(milliseconds));
        }
        for (share, expected) in [(0.5, 0.05), (0.99, 0.099), (1.0, 0.1)] {
            let quantile = latency.quantile(share).as_secs_f64();
            assert!(
                (quantile / expected - 1.0).abs() < 0.001,
                "{share}: {quantile}"
            );
        }
        latency.record(Duration::MAX);
        assert!(latency.quantile(1.0) > Duration::from_secs(86_300));
    }
}
