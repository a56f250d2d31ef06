//! Where mcpd keeps what outlives it: the XDG directories, and what stands for them elsewhere.

use std::path::PathBuf;

use anyhow::Context as _;
use etcetera::BaseStrategy as _;

/// The name of the token, as a file and as a credential.
const TOKEN: &str = "agent-token";

/// What must not be lost: the token. `$XDG_STATE_HOME/mcpd`.
pub(crate) fn state() -> anyhow::Result<PathBuf> {
    let base = etcetera::choose_base_strategy().context("find the home directory")?;
    Ok(base
        .state_dir()
        .unwrap_or_else(|| base.data_dir())
        .join("mcpd"))
}

/// The token for clients over HTTP: the credential of that name, or the one that mcpd makes.
pub(crate) fn token() -> anyhow::Result<PathBuf> {
    match credential(TOKEN) {
        Some(path) => Ok(path),
        None => Ok(state()?.join(TOKEN)),
    }
}

/// A secret that systemd has handed over under this name, if it has: `LoadCredential=` in the unit.
pub(crate) fn credential(name: &str) -> Option<PathBuf> {
    let directory = credentials()?;
    let is_name = !name.is_empty() && !name.contains('/') && name != "..";
    Some(directory.join(name)).filter(|path| is_name && path.exists())
}

/// Where the secrets are that systemd has handed over, if it has any.
pub(crate) fn credentials() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from)
}

/// Where a configuration may be: what the user has set, `$XDG_CONFIG_HOME/mcpd`, and then what holds for the system,
/// `/etc/mcpd`.
pub(crate) fn configurations() -> impl Iterator<Item = PathBuf> {
    let own = etcetera::choose_base_strategy().ok();
    let own = own.map(|base| base.config_dir().join("mcpd"));
    own.into_iter()
        .chain(cfg!(unix).then(|| PathBuf::from("/etc/mcpd")))
}

/// What can be done without: the database. Without a home directory nothing is remembered.
pub(crate) fn database() -> anyhow::Result<PathBuf> {
    Ok(state()?.join("mcpd.db"))
}
