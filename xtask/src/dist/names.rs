//! Names under which mcpd is packaged: `packaging/names.toml`, the one place of them.

use anyhow::Context as _;
use serde::Deserialize;

/// The file.
#[derive(Debug, Deserialize)]
pub(crate) struct Names {
    pub(crate) repository: String,
    pub(crate) debian: Debian,
    pub(crate) python: Python,
    pub(crate) npm: Npm,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Debian {
    pub(crate) package: String,
    pub(crate) maintainer: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Python {
    pub(crate) distribution: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Npm {
    pub(crate) package: String,
    /// Scope of the packages with binaries, with its `@`.
    pub(crate) scope: String,
}

impl Names {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Fails if it can't be read, or a name is missing.
    pub(crate) fn read() -> anyhow::Result<Self> {
        const FILE: &str = "packaging/names.toml";
        toml::from_str(&super::read(FILE)?).with_context(|| format!("`{FILE}` is faulty"))
    }
}
