//! How long things take.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

/// Many durations, each within a thousandth.
#[derive(Debug, Clone)]
pub(crate) struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        Self(Histogram::new(3).expect("three digits are possible"))
    }
}

impl Latency {
    pub(crate) fn record(&mut self, took: Duration) {
        self.0
            .saturating_record(took.as_micros().try_into().unwrap_or(u64::MAX));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.0 += &other.0;
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The duration that this share of them does not exceed.
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
