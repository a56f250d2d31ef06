//! Directories of persistent files: the XDG directories, and their equivalents on other systems.

use std::path::PathBuf;

use anyhow::Context as _;
use etcetera::BaseStrategy as _;

/// Name of the token, as a file and as a credential.
const TOKEN: &str = "agent-token";

/// Directory of state that must not be lost, such as the token: `$XDG_STATE_HOME/mcpd`.
///
/// # Errors
///
/// There is no home directory.
pub fn state() -> anyhow::Result<PathBuf> {
    if let Some(state) = directory_in("XDG_STATE_HOME") {
        return Ok(state.join("mcpd"));
    }
    let base = etcetera::choose_base_strategy().context("find the home directory")?;
    Ok(base
        .state_dir()
        .unwrap_or_else(|| base.data_dir())
        .join("mcpd"))
}

/// Directory of data that scripts may read, unlike the state: `$XDG_DATA_HOME/mcpd`.
///
/// # Errors
///
/// There is no home directory.
pub fn data() -> anyhow::Result<PathBuf> {
    if let Some(data) = directory_in("XDG_DATA_HOME") {
        return Ok(data.join("mcpd"));
    }
    let base = etcetera::choose_base_strategy().context("find the home directory")?;
    Ok(base.data_dir().join("mcpd"))
}

/// Directory in `variable`, independent of a home directory, which systemd services lack.
fn directory_in(variable: &str) -> Option<PathBuf> {
    let directory = std::env::var_os(variable).filter(|_| cfg!(unix))?;
    Some(PathBuf::from(directory)).filter(|directory| directory.is_absolute())
}

/// Path of the token for clients over HTTP: the credential of that name, or
/// the file that mcpd creates.
///
/// # Errors
///
/// There is no home directory.
pub fn token() -> anyhow::Result<PathBuf> {
    match credential(TOKEN) {
        Some(path) => Ok(path),
        None => Ok(state()?.join(TOKEN)),
    }
}

/// Directory of the logins that `mcpd connect` stores.
///
/// # Errors
///
/// There is no home directory.
pub fn logins() -> anyhow::Result<PathBuf> {
    Ok(state()?.join("connect"))
}

/// A secret that systemd passes under this name, if it does: `LoadCredential=` in the unit.
pub fn credential(name: &str) -> Option<PathBuf> {
    let directory = credentials()?;
    let is_name = !name.is_empty() && !name.contains('/') && name != "..";
    Some(directory.join(name)).filter(|path| is_name && path.exists())
}

/// Directory of the secrets that systemd passes, if it passes any.
pub fn credentials() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from)
}

/// Search path of the configuration: the user's directory, then the system's, `/etc/mcpd`.
pub fn configurations() -> impl Iterator<Item = PathBuf> {
    let system = cfg!(unix).then(|| PathBuf::from("/etc/mcpd"));
    own_configuration().into_iter().chain(system)
}

/// Directory of the user's own configuration: `$XDG_CONFIG_HOME/mcpd`.
pub fn own_configuration() -> Option<PathBuf> {
    let at_home = || Some(etcetera::choose_base_strategy().ok()?.config_dir());
    let base = directory_in("XDG_CONFIG_HOME").or_else(at_home)?;
    Some(base.join("mcpd"))
}

/// Path of the database, which is expendable. Without a home directory there is none.
///
/// # Errors
///
/// There is no home directory.
pub fn database() -> anyhow::Result<PathBuf> {
    Ok(state()?.join("mcpd.db"))
}
