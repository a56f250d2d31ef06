//! `mcpd lsp`: the language server for an editor.

use anyhow::Context as _;
use mcpd_check::Selection;
use mcpd_lsp::Ending;
use tokio::task::spawn_blocking;

use crate::args::Lsp;
use crate::exit_code::ExitCode;

/// Serves the editor that started this process until it leaves.
pub(crate) async fn run(args: Lsp) -> anyhow::Result<ExitCode> {
    let selection = Selection::new(&args.select, &args.ignore).context("select the rules")?;
    // The server waits for its pipe, and has a runtime of its own.
    let serve = spawn_blocking(|| mcpd_lsp::serve_stdio(selection));
    let ending = serve.await.context("run the language server")?;
    Ok(match ending.context("serve the editor")? {
        Ending::Clean => ExitCode::Success,
        Ending::Abrupt => ExitCode::Failure,
    })
}
