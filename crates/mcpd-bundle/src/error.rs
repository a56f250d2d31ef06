//! Reasons why there is no bundle, as fragments that fit behind "failed to".

use std::io;
use std::path::PathBuf;

use crate::Platform;

/// Reason why a bundle can't be made, read or started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// A file can't be read or written.
    #[error("{verb} `{}`", path.display())]
    File {
        /// Attempt, such as `read`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        reason: io::Error,
    },
    /// A link leaves the directory.
    #[error("pack `{}`: it is a link to `{}`, outside of the directory; replace it by a copy, or leave it out with `.mcpdignore`", path.display(), target.display())]
    LinkOut {
        /// The link.
        path: PathBuf,
        /// Its target.
        target: PathBuf,
    },
    /// An entry is no file.
    #[error("pack `{}`: {reason}", path.display())]
    Kind {
        /// The entry.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// Two programs are for one platform.
    #[error("pack `{}` and `{}`: both are for {platform}, and a bundle can't tell processors apart; make one bundle for each", first.display(), second.display())]
    SamePlatform {
        /// Platform of both.
        platform: Platform,
        /// One program.
        first: PathBuf,
        /// The other program.
        second: PathBuf,
    },
    /// A path that is unsafe or not portable.
    #[error("use the path `{path}` in a bundle: {reason}")]
    Path {
        /// The path.
        path: String,
        /// The fault.
        reason: &'static str,
    },
    /// The content is larger than any bundle should be.
    #[error("handle the bundle: it has {what}")]
    TooLarge {
        /// The bound that is exceeded.
        what: String,
    },
    /// The archive is damaged, or none.
    #[error("handle the archive")]
    Archive(#[source] io::Error),
    /// The manifest can't be read.
    #[error("read `manifest.json`")]
    Manifest(#[source] serde_json::Error),
    /// A setting that is required has no value.
    #[error("start the bundle: the setting `{key}` is required")]
    MissingSetting {
        /// Key of the setting.
        key: String,
    },
    /// A value does not fit the registry.
    #[error("write `server.json`: {reason}")]
    Registry {
        /// The fault, and what to do.
        reason: String,
    },
}

impl BundleError {
    /// Makes an error about a file.
    pub(crate) fn of_file(
        verb: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |reason| Self::File { verb, path, reason }
    }
}
