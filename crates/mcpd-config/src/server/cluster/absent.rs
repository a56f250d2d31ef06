//! Stand-in for clusters in builds without them: `[cluster]` is refused.

use std::convert::Infallible;
use std::future::pending;
use std::path::PathBuf;

use mcpd_server::Server;
use mcpd_server::source::{Publisher, Source};
use tokio::sync::watch;

use crate::file::File;
use crate::options::Serve;

/// Source that no build without clusters has.
#[derive(Debug)]
pub(crate) enum Absent {}

impl std::fmt::Display for Absent {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {}
    }
}

impl Source for Absent {
    async fn run(self, _: Publisher) {
        match self {}
    }
}

/// Options of a front, of which there are none.
pub(crate) fn options(_: &Serve) {}

/// Beginning of the ids of sessions, of which there is none.
///
/// # Errors
///
/// None; with clusters there are some.
#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands in for a function that fails"
)]
pub(crate) fn session_prefix(_: &File, _: &Serve) -> anyhow::Result<Option<String>> {
    Ok(None)
}

/// Waits forever, as there is no other front.
///
/// # Cancel safety
///
/// May be dropped at any time.
pub async fn share_events(_: &Serve, _: &File, _: &Server) -> Infallible {
    pending().await
}

/// Waits for `stop`, as no server is a worker.
///
/// # Errors
///
/// None; with clusters there are some.
///
/// # Cancel safety
///
/// May be dropped at any time.
pub async fn work(
    _: &Serve,
    _: &File,
    _: &Server,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    // A sender that is gone stops it as well.
    stop.wait_for(|is_stopped| *is_stopped).await.ok();
    Ok(())
}

/// Refuses a configured cluster.
///
/// # Errors
///
/// The file has a cluster.
pub(crate) fn front(file: &File, (): ()) -> anyhow::Result<Option<Absent>> {
    check(file).map(|()| None)
}

/// Refuses a configured cluster.
///
/// # Errors
///
/// The file has a cluster.
pub(crate) fn check(file: &File) -> anyhow::Result<()> {
    match file.tables.cluster.url.first() {
        Some(url) => Err(file.error(
            url.span(),
            "`url`: this mcpd was built without the feature `cluster`",
        )),
        None => Ok(()),
    }
}

/// Files with the credentials of this node, which confined scripts cannot read.
pub(crate) fn secret_files(_: &File) -> Vec<PathBuf> {
    Vec::new()
}
