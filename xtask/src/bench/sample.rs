//! Samples of a round, and their spread over several rounds.

use std::fmt;
use std::time::{Duration, Instant};

use crate::latency::Latency;
use crate::process;

/// Clocks of a round.
#[derive(Debug)]
pub(crate) struct Meter {
    begun: Instant,
    processes: Vec<u32>,
    cpu: Duration,
    children: Duration,
}

/// Measurements of a round.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) latency: Latency,
    took: Duration,
    /// Processor time of the server, without that of its children.
    cpu: Duration,
    /// Processor time of its children that have ended.
    children: Duration,
}

impl Meter {
    /// Starts the clocks, including those of the processes of the server.
    ///
    /// # Errors
    ///
    /// Fails if one has ended.
    pub(crate) fn start(processes: Vec<u32>) -> anyhow::Result<Self> {
        Ok(Self {
            cpu: sum(&processes, process::cpu)?,
            children: sum(&processes, process::cpu_of_children)?,
            processes,
            begun: Instant::now(),
        })
    }

    /// Stops the clocks.
    ///
    /// # Errors
    ///
    /// Fails if a process has ended.
    pub(crate) fn stop(self, latency: Latency) -> anyhow::Result<Sample> {
        let took = self.begun.elapsed();
        let cpu = sum(&self.processes, process::cpu)?;
        let children = sum(&self.processes, process::cpu_of_children)?;
        Ok(Sample {
            latency,
            took,
            cpu: cpu.saturating_sub(self.cpu),
            children: children.saturating_sub(self.children),
        })
    }
}

/// Returns the sum of a time over processes.
fn sum(
    processes: &[u32],
    time: impl Fn(u32) -> anyhow::Result<Duration>,
) -> anyhow::Result<Duration> {
    processes.iter().map(|process| time(*process)).sum()
}

impl Sample {
    /// Returns the answers per second.
    pub(crate) fn rate(&self) -> f64 {
        self.latency.count() as f64 / self.took.as_secs_f64()
    }

    /// Returns the processor time of the server per answer, in µs.
    pub(crate) fn cpu(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.latency.count() as f64
    }

    /// Returns the processor time of the server and its scripts per answer, in µs.
    pub(crate) fn cpu_with_scripts(&self) -> f64 {
        self.cpu() + self.children.as_secs_f64() * 1e6 / self.latency.count() as f64
    }

    /// Returns the time within which this share of the answers came, in µs.
    pub(crate) fn within(&self, share: f64) -> f64 {
        self.latency.quantile(share).as_secs_f64() * 1e6
    }
}

/// Spread of one figure over several rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    low: f64,
    high: f64,
}

impl Spread {
    /// Computes the spread of at least one figure.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let middle = figures.len() / 2;
        let median = if figures.len() % 2 == 1 {
            figures[middle]
        } else {
            f64::midpoint(figures[middle - 1], figures[middle])
        };
        Self {
            median,
            low: figures[0],
            high: figures[figures.len() - 1],
        }
    }

    /// Computes the spread of a figure over all rounds.
    pub(crate) fn over(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> Self {
        Self::of(samples.iter().map(figure))
    }

    /// Computes the spread of a ratio: the figure of one subject divided by that of another,
    /// within each round.
    pub(crate) fn ratio(
        these: &[Sample],
        those: &[Sample],
        figure: impl Fn(&Sample) -> f64,
    ) -> Self {
        let pairs = these.iter().zip(those);
        Self::of(pairs.map(|(this, that)| figure(this) / figure(that)))
    }
}

/// Writes the median, and the range in brackets.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, low, high] = [self.median, self.low, self.high].map(number);
        write!(f, "{median} ({low}–{high})")
    }
}

/// Formats a number with its significant digits.
pub(crate) fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0..10.0 => 2,
        10.0..100.0 => 1,
        _ => 0,
    };
    let mut text = format!("{value:.digits$}");
    let whole = text.find('.').unwrap_or(text.len());
    for place in (1..whole).rev().filter(|place| (whole - place) % 3 == 0) {
        text.insert(place, ' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_median_and_the_range() {
        assert_eq!(Spread::of([3.0, 1.0, 200.0]).to_string(), "3.00 (1.00–200)");
        assert_eq!(Spread::of([1.0, 20.0]).to_string(), "10.5 (1.00–20.0)");
    }

    #[test]
    fn numbers_have_the_digits_that_mean_something() {
        assert_eq!(
            [0.987, 12.34, 999.4, 1234567.8].map(number),
            ["0.99", "12.3", "999", "1 234 568"]
        );
    }
}
