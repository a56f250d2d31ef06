//! `mcpd completions` and `mcpd man`: what shells and `man` know of mcpd.

use std::fs;

use anyhow::{Context as _, bail};
use clap_complete::env::Shells;
use clap_complete_nushell::Nushell;

use crate::args::{self, CompletionShell, Completions, Man};
use crate::exit_code::ExitCode;
use crate::output;

/// Addition to the script for Bash, which splits words at `=` and `:`.
const JOINED_WORDS: &str = include_str!("completions/words.bash");

/// Prints the script that makes a shell complete command lines of mcpd.
pub(crate) fn run(args: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    let name = match args.shell {
        CompletionShell::Bash => "bash",
        CompletionShell::Zsh => "zsh",
        CompletionShell::Fish => "fish",
        CompletionShell::PowerShell => "powershell",
        CompletionShell::Elvish => "elvish",
        CompletionShell::Nushell => {
            let mut definition = args::definition();
            clap_complete::generate(Nushell, &mut definition, "mcpd", &mut script);
            output::write(&script)?;
            return Ok(ExitCode::Success);
        }
    };
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(name) else {
        bail!("complete for `{name}`: the shell is unknown");
    };
    shell
        .write_registration(args::COMPLETE, "mcpd", "mcpd", "mcpd", &mut script)
        .context("write the script")?;
    if name == "bash" {
        script.extend_from_slice(JOINED_WORDS.as_bytes());
    }
    output::write(&script)?;
    Ok(ExitCode::Success)
}

/// Writes the manual pages of mcpd and of each command.
pub(crate) fn write_pages(args: &Man) -> anyhow::Result<ExitCode> {
    let directory = &args.directory;
    let written = fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(args::definition(), directory));
    written.with_context(|| format!("write to `{}`", directory.display()))?;
    Ok(ExitCode::Success)
}
