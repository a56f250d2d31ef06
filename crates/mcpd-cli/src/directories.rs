//! Where mcpd keeps what outlives it: the XDG directories, and what stands for them elsewhere.

use std::path::PathBuf;

use anyhow::Context as _;
use etcetera::BaseStrategy as _;

/// The name of the token, as a file and as a credential.
const TOKEN: &str = "agent-token";

/// What must not be lost: the token. `$XDG_STATE_HOME/mcpd`.
pub(crate) fn state() -> anyhow::Result<PathBuf> {
    if let Some(state) = named_by("XDG_STATE_HOME") {
        return Ok(state.join("mcpd"));
    }
    let base = etcetera::choose_base_strategy().context("find the home directory")?;
    Ok(base
        .state_dir()
        .unwrap_or_else(|| base.data_dir())
        .join("mcpd"))
}

/// What `variable` says, whether or not there is a home directory, which services of systemd have none of.
fn named_by(variable: &str) -> Option<PathBuf> {
    let directory = std::env::var_os(variable).filter(|_| cfg!(unix))?;
    Some(PathBuf::from(directory)).filter(|directory| directory.is_absolute())
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

/// Where a configuration may be: what the user has set, and then what holds for the system, `/etc/mcpd`.
pub(crate) fn configurations() -> impl Iterator<Item = PathBuf> {
    let system = cfg!(unix).then(|| PathBuf::from("/etc/mcpd"));
    own_configuration().into_iter().chain(system)
}

/// Where the user's own configuration may be: `$XDG_CONFIG_HOME/mcpd`.
pub(crate) fn own_configuration() -> Option<PathBuf> {
    let at_home = || Some(etcetera::choose_base_strategy().ok()?.config_dir());
    let base = named_by("XDG_CONFIG_HOME").or_else(at_home)?;
    Some(base.join("mcpd"))
}

/// What can be done without: the database. Without a home directory nothing is remembered.
pub(crate) fn database() -> anyhow::Result<PathBuf> {
    Ok(state()?.join("mcpd.db"))
}
