//! mcpd measured beside its peers: in turn, in one run, every answer checked.

use std::time::Duration;
use std::{env, fs};

use anyhow::Context as _;
use clap::{Args, ValueEnum as _};

use crate::report::line;
use findings::Findings;
use lab::Lab;
use suite::Suite;

mod bare;
mod docs;
mod findings;
mod lab;
mod lineup;
mod pipes;
mod plot;
mod sample;
mod subject;
mod suite;

/// How it is measured.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// How often everything is measured.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// How long one server is loaded in a round.
    #[arg(long, default_value_t = 0.7)]
    seconds: f64,
    /// Measure only this; may be given more than once.
    #[arg(long, value_enum)]
    only: Vec<Suite>,
    /// One short round with fewer tools and connections. It shows that all works, and measures nothing.
    #[arg(long, conflicts_with = "write")]
    quick: bool,
    /// Build with another profile; `bench` builds faster, for tuning, and is not what is shipped.
    #[arg(long, default_value = "release", conflicts_with = "write")]
    profile: String,
    /// Write what was measured into docs/performance.md and docs/performance.svg.
    #[arg(long)]
    write: bool,
}

impl Options {
    /// How often everything is measured.
    fn rounds(&self) -> usize {
        if self.quick { 1 } else { self.rounds.max(1) }
    }

    /// How long one server is loaded in a round.
    fn time(&self) -> Duration {
        Duration::from_secs_f64(if self.quick { 0.2 } else { self.seconds })
    }

    /// So many tools or connections, or fewer.
    fn number(&self, number: usize) -> usize {
        if self.quick { number.isqrt() } else { number }
    }
}

/// Says so if much lies beside the homes of the servers: as something in them is hidden, confined scripts take a rule for
/// each file there.
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

/// Measures. Gives whether all could be measured and every bar was met.
///
/// # Errors
///
/// When something can't be built, or what was measured can't be written.
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
        // Bars of some suites are not all bars.
        if options.only.is_empty() && is_complete {
            findings.table("bars", bars);
            findings.table("machine", docs::machine(options)?);
        }
        docs::write(&findings)?;
    }
    Ok(is_complete && findings.are_met())
}
