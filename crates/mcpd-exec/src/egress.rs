//! Network by destination: a proxy that connects a run to the destinations of its sandbox and to
//! nothing else. It speaks HTTP (CONNECT, and plain requests for `http` addresses) and SOCKS5 on
//! one socket that only the run can reach or knows the password of.
//!
//! ```text
//! accept ──handshake──► target ──listed?──► resolve ──address permitted?──► connect ──► tunnel
//!                          └───────────────── refused, with the reason ◄───────┘
//! ```
//!
//! A name that is not listed is not resolved, as a query alone would carry data out. The address
//! that was checked is the one that is connected to, so a second answer of the resolver (DNS
//! rebinding) changes nothing.

mod address;
mod destination;
mod http;
mod proxy;
mod socks;
mod target;
mod tunnel;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use destination::intersect;
pub use destination::{Destination, InvalidDestination};
pub(crate) use proxy::{Gate, Password, Proxy};

/// Attempt of a run to connect, reported when it is over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection {
    /// Host and port as the run has named them. The run chooses this text.
    pub destination: String,
    /// Address that was connected to.
    pub address: Option<SocketAddr>,
    /// Decision about it.
    pub verdict: Verdict,
    /// Bytes from the run to the destination.
    pub sent: u64,
    /// Bytes from the destination to the run.
    pub received: u64,
    /// Time from the request to the end.
    pub duration: Duration,
}

/// Decision about an attempt to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It was connected.
    Allowed,
    /// No destination of the sandbox names it.
    NotListed,
    /// It is listed, and every address of its name is of this machine, of a private network, or
    /// otherwise not public, without being listed itself.
    PrivateAddress,
    /// Its name has no address.
    Unresolved,
    /// It is allowed, and does not answer.
    Unreachable,
    /// The run has made too many connections.
    TooMany,
    /// The request made no sense to the proxy.
    Malformed,
}

impl Verdict {
    /// Name for logs, in lower case with hyphens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::NotListed => "not-listed",
            Self::PrivateAddress => "private-address",
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::TooMany => "too-many",
            Self::Malformed => "malformed",
        }
    }

    /// Returns whether the sandbox has refused the connection, as opposed to the network.
    pub fn is_refusal(self) -> bool {
        !matches!(self, Self::Allowed | Self::Unresolved | Self::Unreachable)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Receiver of the connections of a run, on a thread of the runtime: it must not block.
#[derive(Clone)]
pub(crate) struct ConnectionObserver(pub(crate) Arc<dyn Fn(Connection) + Send + Sync>);

impl fmt::Debug for ConnectionObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionObserver")
    }
}
