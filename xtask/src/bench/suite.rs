//! Measurements to choose from.

use clap::ValueEnum;

use super::findings::Findings;
use super::lab::Lab;

mod catalog;
mod cluster;
mod greet;
mod growth;
mod list;
mod memory;
mod native;
mod output;
mod rates;
mod stages;
mod start;
mod warm;

/// One kind of measurement, which fills the tables of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Script calls, beside the bare start of the scripts.
    Greet,
    /// Work of a script call by thread, beside the floor.
    Stages,
    /// Script calls in Python with a warm and a cold start.
    Warm,
    /// Lists of three tools.
    List,
    /// Lists of a thousand tools.
    Catalog,
    /// Calls of a built-in tool, alone and while scripts run.
    Native,
    /// Time from the start of a server to its first answers.
    Start,
    /// Memory: idle, busy, and with many connections.
    Memory,
    /// Output of 100 MB from a script.
    Output,
    /// Cost of a call with an increasing number of tools, and with increasing arguments.
    Growth,
    /// Script calls through a front and a worker of a cluster, beside those of one server.
    Cluster,
}

impl Suite {
    /// Runs the measurement.
    ///
    /// # Errors
    ///
    /// Fails if mcpd can't be started, or gives a wrong answer or none.
    pub(crate) async fn run(self, lab: &Lab) -> anyhow::Result<Findings> {
        match self {
            Self::Greet => greet::run(lab).await,
            Self::Stages => stages::run(lab).await,
            Self::Warm => warm::run(lab).await,
            Self::List => list::run(lab).await,
            Self::Catalog => catalog::run(lab).await,
            Self::Native => native::run(lab).await,
            Self::Start => start::run(lab).await,
            Self::Memory => memory::run(lab).await,
            Self::Output => output::run(lab).await,
            Self::Growth => growth::run(lab).await,
            Self::Cluster => cluster::run(lab).await,
        }
    }
}
