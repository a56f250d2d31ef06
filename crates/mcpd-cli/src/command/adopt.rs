//! `mcpd adopt`: drafts of sidecars for programs that know nothing of mcpd.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use mcpd_author::adopt::{self, Adoption};

use crate::args::{Adopt, Subcommands};
use crate::exit_code::ExitCode;
use crate::output;

/// Drafts the sidecars, and prints or writes them.
pub(crate) async fn run(args: &Adopt) -> anyhow::Result<ExitCode> {
    let remark = |text: &str| output::note(&format!("{text}\n"));
    let mut adoption = Adoption::new(mcpd_config::executor(None, None)?, &remark);
    let subcommands = match args.subcommands {
        None => adopt::Subcommands::LeftOut,
        Some(Subcommands::Tools) => adopt::Subcommands::Tools,
        Some(Subcommands::Choice) => adopt::Subcommands::Choice,
    };
    for program in &args.programs {
        match &args.from {
            Some(from) if adopt::is_program(program) => {
                adoption.adopt_from(program, from, read(from)?).await?;
            }
            _ => adoption.adopt(program, subcommands).await?,
        }
    }
    if adoption.drafts().is_empty() {
        bail!("adopt anything: no option, argument or task was found");
    }
    for draft in adoption.drafts() {
        let written = match args.write.as_deref() {
            None if args.json => {
                output::write_json(&draft.definition()?)?;
                continue;
            }
            None => {
                output::write_text(&draft.text())?;
                continue;
            }
            Some("") => draft.write_beside()?,
            Some(directory) => draft.write_into(Path::new(directory))?,
        };
        output::write_text(&format!("created {}\n", written.display()))?;
    }
    Ok(ExitCode::Success)
}

/// Reads a text about a program, from a file or from stdin.
fn read(from: &Path) -> anyhow::Result<Vec<u8>> {
    if from == Path::new("-") {
        let mut text = Vec::new();
        let read = io::stdin().read_to_end(&mut text);
        read.context("read stdin")?;
        return Ok(text);
    }
    fs::read(from).with_context(|| format!("read `{}`", from.display()))
}
