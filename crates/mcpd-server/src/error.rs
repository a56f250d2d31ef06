//! Why the server could not do its job. For the operator; a client never sees one of these.

use std::io;
use std::path::PathBuf;

/// What kept the server from starting or serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A root is missing, no directory or not readable.
    #[error("read the root directory `{}`", root.display())]
    #[non_exhaustive]
    Root {
        /// As it was given.
        root: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A tool of the program can't be served.
    #[error("serve the tool `{name}`: {reason}")]
    #[non_exhaustive]
    Tool {
        /// Its name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A resource of the program can't be served.
    #[error("serve the resource `{uri}`: {reason}")]
    #[non_exhaustive]
    Resource {
        /// Where it was to be.
        uri: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The executor's threads could not be started.
    #[error("start the executor")]
    Executor(#[source] io::Error),
    /// The system has no randomness to make a key from.
    #[error("make a key: {0}")]
    Randomness(String),
    /// What a server would show of itself over TLS makes no sense.
    #[cfg(feature = "tls")]
    #[error("use the certificate: {0}")]
    Tls(String),
    /// Reading from or writing to a client failed for good.
    #[error("serve")]
    Transport(#[source] io::Error),
}

/// An error with all that it comes of, for a log.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}
