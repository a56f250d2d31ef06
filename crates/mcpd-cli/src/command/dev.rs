//! `mcpd dev`: serves over HTTP, and shows its author what happens: changes of tools and their
//! faults, calls, lines and results. A saved script is called again as it was called last.
//!
//! ```text
//! requests ──► RequestEvent ──► Timeline ──► stderr
//! catalog  ──► changes, faults ────┘  │ last call
//! files    ──► saved ──► call again ◄─┘
//! keys     ──► r, i, q
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcpd_config::listening::Address;
use mcpd_protocol::method::{CallToolRequest, CallToolResult, LoggingLevel};
use mcpd_server::{Catalog, Principal, Server, ServerBuilder};
use tokio::time::sleep;

use self::keys::Key;
use self::timeline::{LastCall, Timeline};
use crate::client;

mod changes;
mod inspector;
mod keys;
mod timeline;

/// Interval between two looks at the catalog and at the files of the last call.
const POLL_INTERVAL: Duration = Duration::from_millis(150);

/// Session of an author: what was shown, and what can be called again.
#[derive(Debug, Default)]
pub(crate) struct Session {
    timeline: Arc<Timeline>,
}

impl Session {
    /// Shows all requests of the server.
    pub(crate) fn observe(&self, server: ServerBuilder) -> ServerBuilder {
        let timeline = Arc::clone(&self.timeline);
        server.observe_requests(move |number, event| timeline.add(number, &event))
    }

    /// Follows changes and keys until the author ends the session.
    pub(crate) async fn follow(
        &self,
        server: &Server,
        address: &Address,
        token_file: Option<&Path>,
    ) {
        server.catalog_ready().await;
        let url = address.url();
        tokio::select! {
            never = self.follow_changes(server) => match never {},
            () = self.obey_keys(server, &url, token_file) => {}
        }
    }

    async fn follow_changes(&self, server: &Server) -> Infallible {
        let mut shown = server.catalog();
        changes::show_faults(None, &shown);
        let mut files = SavedFiles::default();
        files.find_changed(&shown);
        loop {
            sleep(POLL_INTERVAL).await;
            let catalog = server.catalog();
            if !Arc::ptr_eq(&shown, &catalog) {
                changes::show(&shown, &catalog);
                changes::show_faults(Some(&shown), &catalog);
                shown = catalog;
            }
            let changed = files.find_changed(&shown);
            if let Some(call) = self.timeline.last_call()
                && changed.contains(&call.tool)
            {
                call_again(server, call).await;
            }
        }
    }

    async fn obey_keys(&self, server: &Server, url: &str, token_file: Option<&Path>) {
        let mut keys = keys::read();
        let mut inspector = pin!(None);
        loop {
            let key = tokio::select! {
                key = keys.recv() => key,
                () = if_any(inspector.as_mut()) => {
                    inspector.set(None);
                    continue;
                }
            };
            match key {
                Some(Key::Again) => match self.timeline.last_call() {
                    Some(call) => call_again(server, call).await,
                    None => timeline::note("there was no call yet"),
                },
                Some(Key::Inspector) => {
                    inspector.set(Some(inspector::run(server.executor(), url, token_file)));
                }
                Some(Key::End) => return,
                // Standard input has ended, or is no terminal.
                None => pending().await,
            }
        }
    }
}

/// Waits for a future that may be there; without one, waits forever.
async fn if_any<F: Future<Output = ()>>(future: Pin<&mut Option<F>>) {
    match future.as_pin_mut() {
        Some(future) => future.await,
        None => pending().await,
    }
}

/// Makes a call again; its events are shown as those of any other.
async fn call_again(server: &Server, call: LastCall) {
    let mut params = call.params;
    params.meta = Some(client::envelope(LoggingLevel::Debug));
    let request = client::request::<CallToolRequest, CallToolResult>;
    if let Err(error) = request(server, Principal::local(), &params, |_| {}).await {
        timeline::note(&format!("failed to {error:#}"));
    }
}

/// Files of all scripts, as they were when they were last looked at. All are known before a call,
/// so that one saved right after it is noticed.
#[derive(Debug, Default)]
struct SavedFiles(BTreeMap<PathBuf, FileVersion>);

/// Size and time of the last change of a file.
type FileVersion = (u64, Option<SystemTime>);

impl SavedFiles {
    /// Looks at all files, and returns the paths of the tools whose files have changed. A file
    /// that is absent is just being replaced, and counts as it was.
    fn find_changed(&mut self, catalog: &Catalog) -> BTreeSet<String> {
        let mut changed = BTreeSet::new();
        for script in &catalog.scan().scripts {
            for file in BTreeSet::from([&script.file, &script.described_in]) {
                let Ok(now) = file.metadata() else {
                    continue;
                };
                let now = (now.len(), now.modified().ok());
                let before = self.0.insert(file.clone(), now);
                if before.is_some_and(|before| before != now) {
                    changed.insert(script.path.to_string());
                }
            }
        }
        changed
    }
}
