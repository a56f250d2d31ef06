//! `mcpd token`: the tokens of clients over HTTP.

use std::path::Path;

use anyhow::{Context as _, bail};
use mcpd_server::transport::http::Token;

use crate::args::{TokenAction, TokenCommand};
use crate::config::clients;
use crate::discovery::Discovery;
use crate::exit_code::ExitCode;
use crate::{directories, output, token};

/// Makes a token, or another in place of the one there is.
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
            if let Some(what) = clients::unusable(name) {
                bail!("name a client `{}`: {what}", name.escape_debug());
            }
            let secret = token::random()?;
            let hash = Token::hash(&secret);
            output::note(&format!(
                "The token, which is not shown again, is on standard output. For mcpd.toml:\n\n\
                 [[token]]\nname = {name:?}\nsha256 = \"{hash}\"\n"
            ));
            output::write(format!("{secret}\n").as_bytes())?;
        }
    }
    Ok(ExitCode::Success)
}

fn rotate(file: &Path) -> anyhow::Result<()> {
    token::replace(file)?;
    let file = std::path::absolute(file).context("find the token file")?;
    let server = Discovery::running()?;
    let server = server.filter(|server| server.token_path.as_ref() == Some(&file));
    let told = match &server {
        Some(server) => match reload(server.pid) {
            Ok(()) => format!(
                "the server at {} was told to read it; its log says when it has, and until then the old one is accepted",
                server.url
            ),
            Err(error) => format!(
                "the server at {} has to be restarted to accept it: {error}",
                server.url
            ),
        },
        None => "a running server accepts it after SIGHUP or its next start".to_owned(),
    };
    output::note(&format!(
        "There is a new token in {}: {told}.\n",
        file.display()
    ));
    Ok(())
}

#[cfg(unix)]
fn reload(pid: u32) -> anyhow::Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .context("read its number")?;
    Ok(kill_process(pid, Signal::HUP)?)
}

#[cfg(not(unix))]
fn reload(_: u32) -> anyhow::Result<()> {
    anyhow::bail!("this system has no signal for it")
}
