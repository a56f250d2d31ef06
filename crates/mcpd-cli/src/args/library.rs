//! Arguments of `mcpd lib`.

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  mcpd lib python > ~/tools/mcpd.py
  mcpd lib javascript > ~/tools/mcpd.mjs
  mcpd lib sh > ~/tools/mcpd.sh

The file belongs beside the scripts that use it. It is not executable, and so no tool.")]
pub(crate) struct Library {
    pub(crate) language: LibraryLanguage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LibraryLanguage {
    Sh,
    Python,
    #[value(name = "javascript", alias = "js", alias = "node")]
    JavaScript,
}
