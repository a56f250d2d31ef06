//! Stand-in for clusters in builds without them: `[cluster]` is refused.

use std::convert::Infallible;
use std::future::pending;
use std::path::PathBuf;

use mcpd_server::source::{Publisher, Source};
use mcpd_server::{Server, ServerBuilder};
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

/// Front of a cluster, of which there is none.
#[derive(Debug, Clone, Default)]
pub struct FrontNode(());

impl FrontNode {
    /// Refuses a configured cluster.
    ///
    /// # Errors
    ///
    /// The file has a cluster.
    pub(crate) fn join(
        server: ServerBuilder,
        file: &File,
        _: &Serve,
    ) -> anyhow::Result<(ServerBuilder, Self)> {
        check(file).map(|()| (server, Self::default()))
    }

    /// Refuses a configured cluster.
    ///
    /// # Errors
    ///
    /// The file has a cluster.
    pub(crate) fn reload(&self, file: &File, _: &Serve) -> anyhow::Result<Option<Absent>> {
        check(file).map(|()| None)
    }

    /// Waits forever, as there is no other front.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn share_events(&self, _: &Server) -> Infallible {
        pending().await
    }

    /// Does nothing, as there is nothing to leave.
    pub fn begin_departure(&self) {}

    /// Does nothing, as there is nothing to leave.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn departed(&self) {}
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
pub(crate) fn check(file: &File) -> anyhow::Result<()> {
    match file.tables.cluster.url.first() {
        Some(url) => Err(file.error(
            url.span(),
            "`url`: this mcpd was built without the feature `cluster`",
        )),
        None => Ok(()),
    }
}

/// File of a key, which no build without clusters creates.
pub(crate) fn own_key_file(_: &Serve) -> Option<PathBuf> {
    None
}

/// Files with the credentials of this node, which confined scripts cannot read.
pub(crate) fn secret_files(_: &File) -> Vec<PathBuf> {
    Vec::new()
}
