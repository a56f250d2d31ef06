//! Hot reload of the configuration of `mcpd serve`: all of it or, if
//! anything in it is wrong, none.
//!
//! ```text
//! SIGHUP ──► find and read ──► check everything ──► policy, clients, log filter, audit log
//!                 │ error           │ error              └──► changed keys that need a restart
//!                 └─────────────────┴──► log it, and keep the previous configuration
//! ```
//!
//! A failed step changes nothing; the steps behind the last error branch cannot fail.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;

use anyhow::Context as _;
use mcpd_config::{Effective, File, Started};
use mcpd_server::Server;
use mcpd_server::transport::http::Auth;
use mcpd_service::manager::{self, ServiceState};
use mcpd_service::signals::Reload;
use serde_json::Value;

use crate::args::CommandLine;
use crate::command;
use crate::logging::Filter;

/// Start parameters, and the parts besides the server that a reload can change.
#[derive(Debug)]
pub(crate) struct Reloading<'a> {
    pub(crate) line: &'a CommandLine,
    pub(crate) file: &'a File,
    pub(crate) filter: &'a Filter,
}

impl Reloading<'_> {
    /// Reloads the configuration whenever a signal requests it, and shows what is in force then.
    pub(crate) async fn follow(
        &self,
        mut reload: Reload,
        server: &Server,
        auth: &Auth,
        started: Started<'_>,
        show: impl Fn(&[Effective]),
    ) -> Infallible {
        let mut path = self.file.path().map(Path::to_owned);
        loop {
            reload.wait().await;
            manager::report_state(ServiceState::Reloading).await;
            match self.reload(path.as_deref(), server, auth, started).await {
                Ok((file, in_force)) => {
                    show(&in_force);
                    path = file.path().map(Path::to_owned);
                    tracing::info!("configuration reloaded");
                }
                Err(error) => {
                    tracing::error!(
                        "configuration not reloaded, still using the previous one: failed to {error:#}"
                    );
                }
            }
            manager::report_state(ServiceState::Ready).await;
        }
    }

    /// Reads the configuration in place of the file at `before`, applies it, and returns the file
    /// in use and the configuration in force. All fallible steps come first.
    async fn reload(
        &self,
        before: Option<&Path>,
        server: &Server,
        auth: &Auth,
        started: Started<'_>,
    ) -> anyhow::Result<(File, Vec<Effective>)> {
        let mut file = File::find_again(self.line.search(), before)?;
        if self.line.serves_roots_of_file() {
            command::report(file.open_sources(true).await?);
        }
        let args = self.line.combine(&file)?;
        let serve = args.serve().context("read the options of `serve`")?;
        let changes = mcpd_config::read_changes(&file, serve.clone(), started, server).await?;
        let filter = self.filter.read(&args.logging)?;
        let before = self.line.effective(self.file)?;
        let after = self.line.effective(&file)?;
        let is_audited = server.audit().is_some();
        let fixed = restart_keys(&before, &after, is_audited);
        let in_force = in_force(before, after, is_audited);
        server
            .reload(changes.settings)
            .context("apply the configuration")?;
        auth.replace(&changes.auth);
        server.notify_access_changed();
        self.filter.set(filter);
        if let (Some(audit), Some((path, options))) = (server.audit(), changes.audit) {
            audit.continue_in(path, options);
        }
        mcpd_config::warn_of_unmatched(&file, &serve.serving.selecting, &server.catalog());
        if !fixed.is_empty() {
            let keys = fixed.join("`, `");
            tracing::warn!("changed settings need a restart of mcpd to take effect: `{keys}`");
        }
        Ok((file, in_force))
    }
}

/// Returns whether a key needs a restart to change, with an audit log or without.
fn is_fixed(entry: &Effective, is_audited: bool) -> bool {
    !entry.is_reloadable || !is_audited && entry.key.starts_with("audit.")
}

/// Configuration in force after a reload: that of the start where a change needs a restart.
fn in_force(before: Vec<Effective>, after: Vec<Effective>, is_audited: bool) -> Vec<Effective> {
    let fixed = before
        .into_iter()
        .filter(|entry| is_fixed(entry, is_audited));
    let changed = after
        .into_iter()
        .filter(|entry| !is_fixed(entry, is_audited));
    fixed.chain(changed).collect()
}

/// Changed keys that need a restart, with an audit log or without.
fn restart_keys(before: &[Effective], after: &[Effective], is_audited: bool) -> Vec<String> {
    let values = |effective: &[Effective]| -> BTreeMap<String, Value> {
        let fixed = effective.iter().filter(|entry| is_fixed(entry, is_audited));
        fixed
            .map(|entry| (entry.key.clone(), entry.value.clone()))
            .collect()
    };
    let (before, after) = (values(before), values(after));
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let changed = keys.into_iter();
    let changed = changed.filter(|key| before.get(*key) != after.get(*key));
    changed.cloned().collect()
}
