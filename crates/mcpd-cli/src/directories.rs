//! Where mcpd keeps what outlives it: the XDG directories, and what stands for them elsewhere.

use std::path::PathBuf;

use anyhow::Context as _;
use etcetera::BaseStrategy as _;

/// What must not be lost: the token. `$XDG_STATE_HOME/mcpd`.
pub(crate) fn state() -> anyhow::Result<PathBuf> {
    let base = etcetera::choose_base_strategy().context("find the home directory")?;
    Ok(base
        .state_dir()
        .unwrap_or_else(|| base.data_dir())
        .join("mcpd"))
}

/// The token that mcpd makes for clients over HTTP.
pub(crate) fn token() -> anyhow::Result<PathBuf> {
    Ok(state()?.join("agent-token"))
}

/// What the user has set: the configuration. `$XDG_CONFIG_HOME/mcpd`.
pub(crate) fn config() -> Option<PathBuf> {
    etcetera::choose_base_strategy()
        .ok()
        .map(|base| base.config_dir().join("mcpd"))
}

/// What can be done without: the database. Without a home directory nothing is remembered.
pub(crate) fn database() -> anyhow::Result<PathBuf> {
    Ok(state()?.join("mcpd.db"))
}
