//! Arguments of `mcpd adopt`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd adopt jq                          draft a description of jq from its help
  mcpd adopt 'git log' --write ~/tools   make git log a tool of ~/tools
  mcpd adopt Makefile --write ~/tools    make each target a tool of ~/tools
  mcpd adopt jq --from jq.1.gz           read the manual page instead

The draft is for review: annotations stay unknown, and nothing reads it before it is in place.")]
pub(crate) struct Adopt {
    /// Program, program with words of a sub-command, script, file with tasks, or directory
    #[arg(required = true, value_name = "PROGRAM")]
    pub(crate) programs: Vec<String>,
    /// Draft the sub-commands too.
    #[arg(
        long,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "tools"
    )]
    pub(crate) subcommands: Option<Subcommands>,
    /// Read the help, manual page or completions (fish, bash, Fig) in FILE, `-` for stdin, and do
    /// not run the program.
    #[arg(long, value_name = "FILE", conflicts_with = "subcommands")]
    pub(crate) from: Option<PathBuf>,
    /// Write the sidecar beside a script, or into DIR beside a small script that runs the program
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "")]
    pub(crate) write: Option<String>,
    /// Print the definition of the tool as JSON.
    #[arg(long, conflicts_with = "write")]
    pub(crate) json: bool,
}

/// Form of sub-commands in drafts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subcommands {
    /// A tool for each, with its own options
    Tools,
    /// One tool with a choice, for sub-commands without options of their own
    Choice,
}
