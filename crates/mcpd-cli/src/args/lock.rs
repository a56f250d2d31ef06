//! Arguments of `mcpd lock` and `mcpd approve`.

use clap::Args as ClapArgs;
use mcpd_config::options::{Locking, RootFlags};
use mcpd_config::{Combine, Layers};

use super::{Confinement, Roots};

#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "\
Examples:
  mcpd lock ~/tools                        note all that is there as approved
  mcpd lock ~/tools --except 'data/**'     but for files that tools write
  mcpd serve ~/tools --locked              serve only that
  mcpd approve --root-directory ~/tools    show what changed since, and approve it

The lock file is mcpd.lock beside mcpd.toml, or without that in the first DIR, unless --lock-file
names another place. What is noted already is never changed; `mcpd approve` does that.",
    mut_arg("locked", |locked| locked.hide(true))
)]
pub(crate) struct Lock {
    #[command(flatten)]
    pub(crate) roots: Roots,
    /// Files below DIR that may change, as a pattern of .gitignore; noted in the lock file.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) except: Vec<String>,
    #[command(flatten)]
    pub(crate) locking: Locking,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

impl Combine for Lock {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.roots.combine(layers);
        self.locking.combine(layers);
        self.confinement.combine(layers);
    }
}

#[derive(Debug, Clone, ClapArgs)]
#[command(
    after_help = "\
Examples:
  mcpd approve                 show what differs from mcpd.lock, and ask
  mcpd approve math/add        approve one tool, and the other files of its directory
  mcpd approve --check         only say whether something differs; for CI
  mcpd approve --yes           approve everything, shown or not

A script that only its --help describes is run with --help, in the sandbox of probes.
A running server uses the lock file after a reload (SIGHUP).",
    mut_arg("locked", |locked| locked.hide(true))
)]
pub(crate) struct Approve {
    /// Tools, prompts and resources to approve, by their paths [default: all]
    #[arg(value_name = "TOOL")]
    pub(crate) tools: Vec<String>,
    #[command(flatten)]
    pub(crate) roots: RootFlags,
    /// Approve nothing; the exit code is 1 if something differs.
    #[arg(long, conflicts_with_all = ["yes", "except"])]
    pub(crate) check: bool,
    /// Approve without a question.
    #[arg(long)]
    pub(crate) yes: bool,
    /// Files below DIR that may change, as a pattern of .gitignore; noted in the lock file.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) except: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) locking: Locking,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

impl Combine for Approve {
    fn combine(&mut self, layers: &mut Layers<'_>) {
        self.roots.combine(layers);
        self.locking.combine(layers);
        self.confinement.combine(layers);
    }
}
