//! Arguments of `mcpd new`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd new ~/tools/greet
  mcpd new ~/tools/report.py
  mcpd new ~/tools/review --prompt --lang python

The script describes itself in its comments, so that no list has to run it.")]
pub(crate) struct New {
    /// Script to create, such as `tools/greet`; its directories are created too.
    pub(crate) path: PathBuf,
    /// Language [default: that of the extension, otherwise sh]
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) lang: Option<Language>,
    /// Create a prompt instead of a tool.
    #[arg(long, conflicts_with = "resource")]
    pub(crate) prompt: bool,
    /// Create a resource instead of a tool.
    #[arg(long)]
    pub(crate) resource: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// POSIX shell
    Sh,
    /// Bash
    Bash,
    /// Python, without packages
    Python,
    /// Python, with packages that uv installs
    Uv,
    /// JavaScript for Node
    Node,
    /// TypeScript for Node 22.18 and later
    Ts,
    /// Perl
    Perl,
    /// Ruby
    Ruby,
    /// Rust, compiled by rust-script
    RustScript,
    /// BASIC, which mcpd runs itself; tools only
    Basic,
}
