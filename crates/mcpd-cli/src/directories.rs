//! Where mcpd keeps what outlives it: the XDG directories, and what stands for them elsewhere.

use std::path::PathBuf;

use etcetera::BaseStrategy as _;

/// What may be deleted at any time: descriptions of scripts. `$XDG_CACHE_HOME/mcpd`. Without a home
/// directory nothing is remembered.
pub(crate) fn cache() -> Option<PathBuf> {
    etcetera::choose_base_strategy()
        .ok()
        .map(|base| base.cache_dir().join("mcpd"))
}
