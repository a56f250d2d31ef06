//! Benchmark of mcpd beside its peers: in turn, in one run, every answer checked.

use std::time::Duration;
use std::{env, fs};

use anyhow::Context as _;
use clap::{Args, ValueEnum as _};

use crate::report::line;
use findings::Findings;
use lab::Lab;
use suite::Suite;

mod bare;
mod cluster;
mod diagram;
mod docs;
pub(crate) mod findings;
pub(crate) mod lab;
mod lineup;
pub(crate) mod pipes;
pub(crate) mod plot;
mod sample;
mod subject;
mod suite;

/// Options of the benchmark.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Number of rounds.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Load time of one server in a round, in seconds.
    #[arg(long, default_value_t = 0.7)]
    seconds: f64,
    /// Measure only this; may be given more than once.
    #[arg(long, value_enum)]
    only: Vec<Suite>,
    /// Run one short round with fewer tools and connections. It is a smoke test and measures
    /// nothing.
    #[arg(long, conflicts_with = "write")]
    quick: bool,
    /// Build with another profile; `bench` builds faster, for tuning, and is not what is shipped.
    #[arg(long, default_value = "dist", conflicts_with = "write")]
    profile: String,
    /// Write the results into docs/performance.md and docs/performance.svg.
    #[arg(long)]
    write: bool,
}

impl Options {
    /// Returns the number of rounds.
    fn rounds(&self) -> usize {
        if self.quick { 1 } else { self.rounds.max(1) }
    }

    /// Returns the load time of one server in a round.
    fn time(&self) -> Duration {
        Duration::from_secs_f64(if self.quick { 0.2 } else { self.seconds })
    }

    /// Returns this number of tools or connections, or fewer in a quick run.
    fn number(&self, number: usize) -> usize {
        if self.quick { number.isqrt() } else { number }
    }
}

/// Warns about a crowded temporary directory: the servers' homes contain hidden files, so confined
/// scripts need a rule for each file beside them.
fn note_neighbours() -> anyhow::Result<()> {
    const MANY: usize = 50;
    let place = env::temp_dir();
    let neighbours = fs::read_dir(&place)
        .with_context(|| format!("read `{}`", place.display()))?
        .count();
    if neighbours > MANY {
        line(format_args!(
            "*** {neighbours} FILES IN {} MAKE CONFINED SCRIPTS SLOWER; name an empty directory in TMPDIR",
            place.display()
        ));
    }
    Ok(())
}

/// Runs the benchmark. Returns whether it was complete and every bar was met.
///
/// # Errors
///
/// Fails if a program can't be built, or the results can't be written.
pub(crate) async fn run(options: Options) -> anyhow::Result<bool> {
    let lab = Lab::new(options)?;
    let options = &lab.options;
    note_neighbours()?;
    let mut findings = Findings::default();
    let mut is_complete = true;
    for suite in Suite::value_variants() {
        if options.only.is_empty() || options.only.contains(suite) {
            match suite.run(&lab).await {
                Ok(found) => {
                    found.print();
                    findings.append(found);
                }
                Err(error) => {
                    line(format_args!("*** {suite:?} CAN'T BE MEASURED: {error:#}"));
                    is_complete = false;
                }
            }
        }
    }
    let bars = findings.bars();
    line(format_args!("bars\n\n{bars}"));
    if options.write {
        // A run of some suites does not cover all bars.
        if options.only.is_empty() && is_complete {
            findings.table("bars", bars);
            findings.table("machine", docs::machine(options)?);
        }
        docs::write(&findings)?;
    }
    Ok(is_complete && findings.are_met())
}
