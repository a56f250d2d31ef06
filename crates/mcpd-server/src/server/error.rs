//! Errors that keep the server from working. The operator reads them; a client never does.

use std::io;
use std::path::PathBuf;

/// Failure to start or to serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A root is missing, is not a directory or is not readable.
    #[error("read the root directory `{}`", root.display())]
    #[non_exhaustive]
    Root {
        /// Path of the root, as configured.
        root: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A tool of the program cannot be served.
    #[error("serve the tool `{name}`: {reason}")]
    #[non_exhaustive]
    Tool {
        /// Name of the tool.
        name: String,
        /// Reason, as a clause.
        reason: String,
    },
    /// A resource of the program cannot be served.
    #[error("serve the resource `{uri}`: {reason}")]
    #[non_exhaustive]
    Resource {
        /// URI of the resource.
        uri: String,
        /// Reason, as a clause.
        reason: String,
    },
    /// The threads of the executor could not be started.
    #[error("start the executor")]
    Executor(#[source] io::Error),
    /// The system provides no randomness for a key.
    #[error("create a key: {0}")]
    Randomness(String),
    /// The server's certificate or key for TLS is unusable.
    #[cfg(feature = "tls")]
    #[error("use the certificate: {0}")]
    Tls(String),
    /// Reading from or writing to a client failed permanently.
    #[error("serve")]
    Transport(#[source] io::Error),
}
