//! What can be measured.

use clap::ValueEnum;

use super::findings::Findings;
use super::lab::Lab;

mod catalog;
mod greet;
mod growth;
mod list;
mod memory;
mod native;
mod output;
mod rates;
mod start;

/// One kind of measurement, which fills the tables of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// Scripts called, beside their bare start.
    Greet,
    /// Three tools listed.
    List,
    /// A thousand tools listed.
    Catalog,
    /// A tool that is a function, alone and while scripts run.
    Native,
    /// From the start of a server to its first answers.
    Start,
    /// Memory: idle, busy, and with many connections.
    Memory,
    /// A script that prints 100 MB.
    Output,
    /// The cost of a call with ever more tools, and with ever longer arguments.
    Growth,
}

impl Suite {
    /// Measures it.
    ///
    /// # Errors
    ///
    /// When mcpd can't be started, or gives a wrong answer or none.
    pub(crate) async fn run(self, lab: &Lab) -> anyhow::Result<Findings> {
        match self {
            Self::Greet => greet::run(lab).await,
            Self::List => list::run(lab).await,
            Self::Catalog => catalog::run(lab).await,
            Self::Native => native::run(lab).await,
            Self::Start => start::run(lab).await,
            Self::Memory => memory::run(lab).await,
            Self::Output => output::run(lab).await,
            Self::Growth => growth::run(lab).await,
        }
    }
}
