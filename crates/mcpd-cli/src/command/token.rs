//! `mcpd token`: tokens of clients over HTTP.

use std::path::{self, Path};

use anyhow::{Context as _, bail};
use mcpd_config::{directories, token};
use mcpd_server::transport::http::Token;

use crate::args::{TokenAction, TokenCommand};
use crate::exit_code::ExitCode;
use crate::output;

/// Creates a token, or replaces the existing one.
pub(crate) fn run(args: &TokenCommand) -> anyhow::Result<ExitCode> {
    match &args.action {
        TokenAction::Rotate { token_file, .. } => {
            let file = match token_file {
                Some(file) => file.clone(),
                None => directories::token()?,
            };
            rotate(&file)?;
        }
        TokenAction::New { name } => {
            if let Some(what) = mcpd_config::name_fault(name) {
                bail!("name a client `{}`: {what}", name.escape_debug());
            }
            let secret = token::random()?;
            let hash = Token::hash(&secret);
            output::note(&format!(
                "The token is on standard output and will not be shown again. Add this to mcpd.toml:\n\n[[token]]\nname = {name:?}\nsha256 = \"{hash}\"\n"
            ));
            output::write(format!("{secret}\n").as_bytes())?;
        }
    }
    Ok(ExitCode::Success)
}

fn rotate(file: &Path) -> anyhow::Result<()> {
    token::replace(file)?;
    let file = path::absolute(file).context("find the token file")?;
    output::note(&format!(
        "New token written to {}. A server that uses this file accepts it within two seconds and no longer accepts the old one.\n",
        file.display()
    ));
    Ok(())
}
