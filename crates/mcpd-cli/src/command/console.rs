//! `mcpd console`: a new link to the web console of a running server.

use anyhow::Context as _;
use mcpd_config::discovery::Discovery;
use mcpd_config::token;
use mcpd_connect::{Error, console_link};

use crate::args::Console;
use crate::exit_code::ExitCode;
use crate::output;

/// Prints a link that opens the console once.
pub(crate) async fn run(args: &Console) -> anyhow::Result<ExitCode> {
    let (url, token_file) = match &args.url {
        Some(url) => (url.clone(), args.token_file.clone()),
        None => {
            let running = Discovery::read_running()?.context(
                "find the server: none runs on this machine for this user; `mcpd serve --console` starts one",
            )?;
            (running.url, running.token_path)
        }
    };
    let token = match &token_file {
        Some(file) => {
            let missing = || format!("`{}` has no token", file.display());
            Some(token::load(file)?.with_context(missing)?)
        }
        None => None,
    };
    let (error, code) = match console_link(&url, token.as_deref()).await {
        Ok(link) => {
            output::write_text(&link)?;
            if token.is_none() {
                output::note("the server requires no token\n");
            }
            return Ok(ExitCode::Success);
        }
        Err(error @ Error::Unreachable { .. }) => (error, ExitCode::Unreachable),
        Err(error @ Error::Unauthorized(_)) => (error, ExitCode::Unauthorized),
        Err(error) => return Err(error.into()),
    };
    output::error(&format!("failed to {error}"));
    Ok(code)
}
