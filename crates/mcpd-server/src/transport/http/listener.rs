//! Where clients come in: sockets of the network and of the file system, one or several.

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

/// How long a connection is quiet before the system finds out whether the other side is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long the other side may leave everything unacknowledged before the system gives it up.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Sockets on which the same is served.
///
/// A socket of the file system is for programs on this machine that may open it; a Host of `localhost` is allowed there.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<Socket>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        if let Err(error) = watch(&listener) {
            tracing::debug!(%error, "clients that vanish are noticed late");
        }
        Self {
            sockets: vec![Socket::Tcp(listener)],
        }
    }
}

#[cfg(unix)]
impl From<UnixListener> for Listener {
    fn from(listener: UnixListener) -> Self {
        Self {
            sockets: vec![Socket::Unix(listener)],
        }
    }
}

impl Listener {
    /// The sockets of both.
    #[must_use]
    pub fn and(mut self, other: impl Into<Self>) -> Self {
        self.sockets.append(&mut other.into().sockets);
        self
    }

    /// The addresses of those sockets that have one in the network.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().filter_map(|socket| match socket {
            Socket::Tcp(listener) => listener.local_addr().ok(),
            #[cfg(unix)]
            Socket::Unix(_) => None,
        })
    }

    /// Waits for the next client.
    ///
    /// # Cancel safety
    ///
    /// No client is lost.
    pub(super) async fn accept(&mut self) -> io::Result<Peer> {
        // So that a busy socket doesn't keep the others waiting.
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

/// Has the system notice when the other side of a connection is gone without a word. What is accepted inherits this.
fn watch(listener: &TcpListener) -> io::Result<()> {
    let socket = SockRef::from(listener);
    let keep_alive = TcpKeepalive::new()
        .with_time(KEEP_ALIVE)
        .with_interval(KEEP_ALIVE / 3);
    socket.set_tcp_keepalive(&keep_alive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_is_accepted_is_watched() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        watch(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        let _client = tokio::net::TcpStream::connect(address).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let socket = SockRef::from(&accepted);
        assert!(socket.keepalive().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEP_ALIVE);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(UNACKNOWLEDGED));
    }
}
