//! Listening sockets of TCP and of the file system, one or several.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;

use super::peer::Peer;
#[cfg(feature = "tls")]
use super::tls::Tls;

/// Time without traffic after which the system probes the other side (TCP keep-alive).
const KEEP_ALIVE_TIME: Duration = Duration::from_secs(15);
/// Time after which the system drops a connection whose data is not acknowledged.
#[cfg(target_os = "linux")]
const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Listening sockets of one service.
///
/// A socket in the file system is for programs on this machine that may open it; a Host of
/// `localhost` is allowed there.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<Socket>,
}

#[derive(Debug)]
struct Socket {
    kind: ListeningSocket,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

#[derive(Debug)]
enum ListeningSocket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

/// Client that has connected.
#[derive(Debug)]
pub(super) struct Accepted {
    pub(super) peer: Peer,
    /// TLS configuration for the handshake.
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Tls>,
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        if let Err(error) = enable_keep_alive(&listener) {
            tracing::debug!(%error, "failed to enable keepalive; vanished clients will be noticed late");
        }
        ListeningSocket::Tcp(listener).into()
    }
}

#[cfg(unix)]
impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        ListeningSocket::Unix(listener).into()
    }
}

impl From<ListeningSocket> for Listener {
    fn from(kind: ListeningSocket) -> Self {
        let socket = Socket {
            kind,
            #[cfg(feature = "tls")]
            tls: None,
        };
        Self {
            sockets: vec![socket],
        }
    }
}

impl Listener {
    /// Combines the sockets of both.
    #[must_use]
    pub fn and(mut self, other: impl Into<Self>) -> Self {
        self.sockets.append(&mut other.into().sockets);
        self
    }

    /// Requires TLS on all sockets.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_tls(mut self, tls: &Tls) -> Self {
        for socket in &mut self.sockets {
            socket.tls = Some(tls.clone());
        }
        self
    }

    /// Addresses of the TCP sockets.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().filter_map(|socket| match &socket.kind {
            ListeningSocket::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            ListeningSocket::Unix(_) => None,
        })
    }

    /// URL of the endpoint without proxies: at the first of the addresses.
    pub(super) fn url(&self) -> String {
        let address = self.addresses().next();
        let host = address.map_or_else(|| "localhost".to_owned(), |address| address.to_string());
        #[cfg(feature = "tls")]
        if self.sockets.iter().any(|socket| socket.tls.is_some()) {
            return format!("https://{host}/mcp");
        }
        format!("http://{host}/mcp")
    }

    /// Waits for the next client.
    ///
    /// # Cancel safety
    ///
    /// No client is lost.
    pub(super) async fn accept(&mut self) -> io::Result<Accepted> {
        // Rotation gives the sockets turns, so that a busy one does not starve the others.
        let next = self.sockets.len().min(1);
        self.sockets.rotate_left(next);
        poll_fn(|cx| {
            let mut accepted = self.sockets.iter().map(|socket| socket.poll_accept(cx));
            accepted.find(Poll::is_ready).unwrap_or(Poll::Pending)
        })
        .await
    }
}

impl Socket {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Accepted>> {
        self.kind.poll_accept(cx).map_ok(|peer| Accepted {
            peer,
            #[cfg(feature = "tls")]
            tls: self.tls.clone(),
        })
    }
}

impl ListeningSocket {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Peer>> {
        match self {
            Self::Tcp(listener) => listener
                .poll_accept(cx)
                .map_ok(|(stream, address)| Peer::tcp(stream, address)),
            #[cfg(unix)]
            Self::Unix(listener) => listener
                .poll_accept(cx)
                .map_ok(|(stream, _)| Peer::unix(stream)),
        }
    }
}

/// Enables TCP keep-alive, so that the system notices a client that vanished. Accepted sockets
/// inherit it.
fn enable_keep_alive(listener: &TcpListener) -> io::Result<()> {
    let socket = SockRef::from(listener);
    let keep_alive = TcpKeepalive::new()
        .with_time(KEEP_ALIVE_TIME)
        .with_interval(KEEP_ALIVE_TIME / 3);
    socket.set_tcp_keepalive(&keep_alive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(ACKNOWLEDGEMENT_TIMEOUT))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn accepted_sockets_have_keep_alive() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        enable_keep_alive(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        let _client = tokio::net::TcpStream::connect(address).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let socket = SockRef::from(&accepted);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEP_ALIVE_TIME);
        assert_eq!(
            socket.tcp_user_timeout().unwrap(),
            Some(ACKNOWLEDGEMENT_TIMEOUT)
        );
    }
}
