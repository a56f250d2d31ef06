//! Arguments of `mcpd adopt`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd adopt jq                          draft a description of jq from its help
  mcpd adopt 'git log' --write ~/tools   make git log a tool of ~/tools
  mcpd adopt Makefile --write ~/tools    make each target a tool of ~/tools
  man jq | mcpd adopt jq --from -        read the manual page instead

The draft is for review: annotations stay unknown, and nothing reads it before it is in place.")]
pub(crate) struct Adopt {
    /// Program, program with words of a sub-command, script, file with tasks, or directory
    #[arg(required = true, value_name = "PROGRAM")]
    pub(crate) programs: Vec<String>,
    /// Draft a tool for each sub-command.
    #[arg(long)]
    pub(crate) subcommands: bool,
    /// Read the help, manual page or fish completions in FILE, `-` for stdin, and run nothing.
    #[arg(long, value_name = "FILE", conflicts_with = "subcommands")]
    pub(crate) from: Option<PathBuf>,
    /// Write the sidecar beside a script, or into DIR beside a small script that runs the program
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "")]
    pub(crate) write: Option<String>,
    /// Print the definition of the tool as JSON.
    #[arg(long, conflicts_with = "write")]
    pub(crate) json: bool,
}
