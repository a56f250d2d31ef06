//! Arguments of `mcpd completions` and `mcpd man`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(Debug, Clone, ClapArgs)]
#[command(after_help = "\
Examples:
  source <(mcpd completions bash)                                 # in ~/.bashrc
  source <(mcpd completions zsh)                                  # in ~/.zshrc
  mcpd completions fish | source                                  # in config.fish
  mcpd completions powershell | Out-String | Invoke-Expression    # in $PROFILE
  mcpd completions nushell | save -f mcpd.nu; use mcpd.nu *

The shells ask mcpd for the names of tools and arguments; Nushell knows commands and flags only.")]
pub(crate) struct Completions {
    pub(crate) shell: CompletionShell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionShell {
    Bash,
    Zsh,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Elvish,
    Nushell,
}

#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Man {
    /// Directory to write to, created if missing.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
