//! Errors of a node.

use std::path::PathBuf;

/// Failure of a node, as a fragment that fits after "failed to".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address of a server is not usable.
    #[error("connect to the cluster: `{url}` is not the address of a NATS server: {reason}")]
    #[non_exhaustive]
    Address {
        /// The address.
        url: String,
        /// The reason.
        reason: String,
    },
    /// A file with credentials can't be used.
    #[error("read the credentials in `{}`", path.display())]
    #[non_exhaustive]
    Credentials {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// No server can be reached, or it refuses this node.
    #[error("connect to the cluster: {0}")]
    Connect(String),
    /// The connection is closed for good.
    #[error("stay in the cluster: the connection is closed")]
    Closed,
    /// A node did not answer.
    #[error("ask the node `{0}`: it does not answer")]
    Silent(String),
    /// A key is not the public key of a user.
    #[error(
        "use the key `{0}`: expected the public NKey of a user, which is U and 55 letters and digits"
    )]
    Key(String),
}
