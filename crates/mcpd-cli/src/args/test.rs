//! Arguments of `mcpd test`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use mcpd_config::{Combine, Layers};

use super::{Confinement, RunLimits};

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd test ~/tools
  mcpd test ~/tools/greet --filter empty
  mcpd test ~/tools --accept
  mcpd test ~/tools --generate 200
  mcpd test ~/tools --github --junit report.xml

The cases of the script NAME are in the file NAME.test.toml beside it;
`mcpd call --record` writes them. The exit code is 1 if a case fails.")]
pub(crate) struct Test {
    /// Directories with scripts, or single scripts.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Run only cases with this text in `TOOL CASE`, by the path of the tool, prompt or resource.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Write the results of failed cases, and of cases that expect nothing, into their files as
    /// the expected ones.
    #[arg(long)]
    pub(crate) accept: bool,
    /// Also call each tool, prompt and resource this many times with generated boundary and
    /// hostile arguments.
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    pub(crate) generate: usize,
    /// Seed of the generated arguments.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 0,
        requires = "generate"
    )]
    pub(crate) seed: u64,
    /// Number of scripts that are tested at once [default: number of processors]
    #[arg(long, value_name = "COUNT")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Also print annotations for GitHub workflows.
    #[arg(long, conflicts_with = "json")]
    pub(crate) github: bool,
    /// Also write the report as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: RunLimits,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

impl Combine for Test {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.limits.combine(layers);
        self.confinement.combine(layers);
    }
}
