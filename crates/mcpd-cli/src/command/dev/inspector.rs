//! MCP Inspector, started as a client that starts `mcpd connect` to this server: the token is in no
//! command line.

use std::env;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use mcpd_exec::{Command, Ending, Executor, Limits};

use super::timeline;
use crate::output;

/// Package of the Inspector on npm.
const PACKAGE: &str = "@modelcontextprotocol/inspector";

/// Time for which the Inspector may run: a working day.
const TIME_LIMIT: Duration = Duration::from_secs(12 * 60 * 60);

/// Runs the Inspector until it ends or the future is dropped, and shows what it prints, among it
/// the address of its page.
pub(super) async fn run(executor: &Executor, url: &str, token_file: Option<&Path>) {
    if let Err(error) = try_run(executor, url, token_file).await {
        timeline::note(&format!("failed to {error:#}"));
    }
}

async fn try_run(executor: &Executor, url: &str, token_file: Option<&Path>) -> anyhow::Result<()> {
    let program = env::current_exe().context("find the program mcpd")?;
    let mut words = vec!["-y".to_owned(), PACKAGE.to_owned()];
    words.extend([program.display().to_string(), "connect".to_owned()]);
    if let Some(file) = token_file {
        words.extend(["--token-file".to_owned(), file.display().to_string()]);
    }
    words.push(url.to_owned());
    let shown = words.iter().map(String::as_str);
    let shown = output::shell_command(["npx"].into_iter().chain(shown));
    timeline::note(&format!("starting {shown}"));
    let mut limits = Limits::default();
    limits.wall = TIME_LIMIT;
    let command = Command::new("npx").args(&words).limits(limits);
    let line = |line: mcpd_exec::Line<'_>| {
        timeline::note(&String::from_utf8_lossy(line.bytes));
    };
    let outcome = executor.run_with(command, line).await;
    match outcome
        .context("start the MCP Inspector with npx, which comes with Node.js")?
        .ending
    {
        Ending::Exited(0) => timeline::note("the MCP Inspector has ended"),
        ending => timeline::note(&format!("the MCP Inspector has ended: {ending:?}")),
    }
    Ok(())
}
