//! MCP Inspector, started as a client that starts `mcpd connect` to this server: the token is in no
//! command line.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use mcpd_exec::{Command, Ending, Executor, Limits};

use super::Display;
use crate::shell::quoted;

/// Package of the Inspector on npm.
const PACKAGE: &str = "@modelcontextprotocol/inspector";

/// Time for which the Inspector may run: a working day.
const TIME_LIMIT: Duration = Duration::from_secs(12 * 60 * 60);

/// Start of the Inspector, which is a client of a server over HTTP.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inspector {
    /// Program with the command `connect`.
    program: PathBuf,
    url: String,
    token_file: Option<PathBuf>,
}

impl Inspector {
    /// Inspector of the server at `url`, which `program` connects by its command `connect`, with
    /// the token in a file.
    #[must_use]
    pub fn new(
        program: impl Into<PathBuf>,
        url: impl Into<String>,
        token_file: Option<PathBuf>,
    ) -> Self {
        Self {
            program: program.into(),
            url: url.into(),
            token_file,
        }
    }

    /// Runs the Inspector until it ends or the future is dropped, and shows what it prints, among
    /// it the address of its page.
    pub(super) async fn run(&self, executor: &Executor, display: &Display) {
        if let Err(error) = self.try_run(executor, display).await {
            display.note(&format!("failed to {error:#}"));
        }
    }

    async fn try_run(&self, executor: &Executor, display: &Display) -> anyhow::Result<()> {
        let mut words = vec!["-y".to_owned(), PACKAGE.to_owned()];
        words.extend([self.program.display().to_string(), "connect".to_owned()]);
        if let Some(file) = &self.token_file {
            words.extend(["--token-file".to_owned(), file.display().to_string()]);
        }
        words.push(self.url.clone());
        let shown = words.iter().map(String::as_str);
        let shown = quoted(["npx"].into_iter().chain(shown));
        display.note(&format!("starting {shown}"));
        let mut limits = Limits::default();
        limits.wall = TIME_LIMIT;
        let command = Command::new("npx").args(&words).limits(limits);
        let line = |line: mcpd_exec::Line<'_>| {
            display.note(&String::from_utf8_lossy(line.bytes));
        };
        let outcome = executor.run_with(command, line).await;
        match outcome
            .context("start the MCP Inspector with npx, which comes with Node.js")?
            .ending
        {
            Ending::Exited(0) => display.note("the MCP Inspector has ended"),
            ending => display.note(&format!("the MCP Inspector has ended: {ending:?}")),
        }
        Ok(())
    }
}
