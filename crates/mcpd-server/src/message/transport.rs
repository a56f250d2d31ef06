//! Kinds of transports.

use mcpd_protocol::jsonrpc::ErrorObject;

/// Transport that carries the messages of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// Channel of the embedding program, for clients of its own.
    Channel,
    /// Channel of the embedding program, for its own requests.
    Local,
    Stdio,
    /// Run of a script for another server.
    Front,
    #[cfg(feature = "http")]
    Http,
    /// Two paths of revision 2024-11-05.
    #[cfg(feature = "http")]
    HttpSse,
}

impl Transport {
    /// Name of the transport in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Channel | Self::Local => "channel",
            Self::Stdio => "stdio",
            Self::Front => "cluster",
            #[cfg(feature = "http")]
            Self::Http | Self::HttpSse => "http",
        }
    }

    /// Returns whether the directory of this process is that of its client.
    pub(crate) fn shares_directory(self) -> bool {
        matches!(self, Self::Local | Self::Stdio)
    }

    /// Checks that the transport carries requests of the stateless wire. HTTP+SSE is of
    /// 2024-11-05: it would not compare the headers that requests of 2026-07-28 have over HTTP.
    ///
    /// # Errors
    ///
    /// `-32600`, naming the path to post to instead.
    pub(crate) fn check_stateless(self) -> Result<(), ErrorObject> {
        match self {
            Self::Channel | Self::Local | Self::Stdio | Self::Front => Ok(()),
            #[cfg(feature = "http")]
            Self::Http => Ok(()),
            #[cfg(feature = "http")]
            Self::HttpSse => Err(ErrorObject::invalid_request(
                "this path does not serve revisions since 2026-07-28; post to /mcp",
            )),
        }
    }
}
