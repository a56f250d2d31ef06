//! What the flags, the variables and the defaults come to. A flag goes before a variable, a variable
//! before the default.

use std::path::PathBuf;

use anyhow::Context as _;
use mcpd_exec::{Config, Executor};
use mcpd_server::{Server, ServerBuilder};

use crate::args::{Scanning, Serving};
use crate::directories;

/// A server for commands that ask it something and end.
pub(crate) fn asked<'a>(
    roots: impl IntoIterator<Item = &'a PathBuf>,
    scanning: &Scanning,
) -> ServerBuilder {
    with_roots(roots, scanning).watch(false)
}

/// A server for clients.
pub(crate) fn serving(options: &Serving) -> anyhow::Result<ServerBuilder> {
    let mut config = Config::default();
    config.concurrency = options.concurrency.unwrap_or(config.concurrency);
    let executor = Executor::new(config).context("start the executor")?;
    Ok(with_roots(options.roots.all(), &options.scanning)
        .watch(!options.no_watch)
        .executor(executor))
}

fn with_roots<'a>(
    roots: impl IntoIterator<Item = &'a PathBuf>,
    scanning: &Scanning,
) -> ServerBuilder {
    let server = roots
        .into_iter()
        .fold(Server::builder(), ServerBuilder::scripts);
    match directories::cache() {
        Some(directory) if !scanning.no_cache => server.cache_directory(directory),
        _ => server,
    }
}
