//! Reload of the configuration of a running server.

use std::path::PathBuf;

use mcpd_server::transport::http::Auth;
use mcpd_server::{Server, Settings};

use super::cluster::FrontNode;
use super::{
    audit, authentication, http_secret_files, limits, limits_with_archive, oauth, only_locked,
    reloadable_settings,
};
use crate::file::File;
use crate::listening::ListenPlace;
use crate::options::{Serve, Serving};

/// Configuration that a reload can change while `mcpd serve` runs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Changes {
    /// Settings of the server.
    pub settings: Settings,
    /// Credentials of clients.
    pub auth: Auth,
    /// File and options of the audit log.
    pub audit: Option<(PathBuf, mcpd_server::audit::Options)>,
}

/// Start parameters that a reload does not change.
#[derive(Debug, Clone, Copy)]
pub struct Started<'a> {
    args: &'a Serve,
    places: &'a [ListenPlace],
    front: &'a FrontNode,
}

impl<'a> Started<'a> {
    /// Start with these options, at these addresses, as this front of a cluster.
    #[must_use]
    pub fn new(args: &'a Serve, places: &'a [ListenPlace], front: &'a FrontNode) -> Self {
        Self {
            args,
            places,
            front,
        }
    }
}

/// Reads what a reload changes in a running server. `serve` has the settings of the start, combined
/// with `file` as it is now. Programs that print secrets run with the executor of the server.
///
/// # Errors
///
/// A faulty value, with its place.
pub async fn read_changes(
    file: &File,
    mut serve: Serve,
    started: Started<'_>,
    server: &Server,
) -> anyhow::Result<Changes> {
    // Authentication keeps the mode of the start: the exposure of the
    // addresses was checked for it.
    serve.no_auth = started.args.no_auth;
    serve.no_agent_token = started.args.no_agent_token;
    serve.token_file.clone_from(&started.args.token_file);
    let auth = authentication(file, &serve)?.0;
    oauth::check_resource(file, started.places)?;
    let audit = audit::target(file)?;
    let limits = limits_with_archive(limits(&serve.serving.limits));
    // Files in use stay hidden, even if the new configuration does not name them.
    let mut hidden = http_secret_files(file, started.args);
    if let Some(log) = server.audit()
        && audit.as_ref().is_none_or(|(path, _)| *path != log.file())
    {
        hidden.extend(mcpd_server::audit::files(&log.file(), log.options().keep));
    }
    let Serving {
        confinement,
        enabling,
        scanning,
        roots,
        ..
    } = &serve.serving;
    let executor = server.executor();
    let settings =
        reloadable_settings(file, confinement, enabling, limits, hidden, executor).await?;
    let settings = match started.front.reload(file, &serve)? {
        Some(cluster) => settings.source(cluster),
        None => settings,
    };
    Ok(Changes {
        settings: only_locked(settings, file, scanning, roots.all())?,
        auth,
        audit,
    })
}
