//! Socket of one client, shared between hyper, which moves its bytes, and the code that must
//! detect a disconnect. Hyper reads no further than the request it answers, so it does not see an
//! end behind more input.
//!
//! A client that has closed its sending side may still read (half-close), or be gone; over TCP
//! both look alike until something is written, which a socket that is closed answers with a
//! reset:
//!
//! ```text
//! Sending ──FIN──► HalfClosed ──comment of an event stream──► still reads: it gets its answer
//!    │                 │                                 └──► reset: Gone
//!    └──reset──► Gone ◄┴── over TCP, if it takes no events; and a stream without end
//! ```

use std::future::pending;
use std::io::{self, IoSlice};
#[cfg(unix)]
use std::net::Ipv4Addr;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::task::AtomicWaker;
use hyper::Version;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, Ready};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use super::auth::Hash;

/// Interval of checks for a disconnect.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// First bytes of a connection that speaks HTTP/2 (RFC 9113 §3.4), and of no HTTP/1 request.
const HTTP2_PREFACE: &[u8] = b"PRI";

/// Client of a connection. All clones share the socket, and are small: each connection has
/// several.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    socket: Arc<SharedSocket>,
    certificate: Option<Arc<Hash>>,
    is_encrypted: bool,
    /// Several requests share the connection, which is over when the client closes its side.
    is_multiplexed: bool,
}

#[derive(Debug)]
struct SharedSocket {
    stream: SocketStream,
    address: IpAddr,
    local_address: Option<IpAddr>,
    /// Number of pending answers during which hyper does not learn of the end of input.
    pending_answers: AtomicUsize,
    /// Waker of the reader that waits behind the hidden end.
    reader: AtomicWaker,
}

/// Guard of an answer that a client may read after it has closed its sending side. Until it is
/// dropped, the end of input is hidden from hyper, which would close the connection.
#[derive(Debug)]
pub(super) struct AnswerGuard(Arc<SharedSocket>);

impl Drop for AnswerGuard {
    fn drop(&mut self) {
        self.0.pending_answers.fetch_sub(1, Ordering::AcqRel);
        self.0.reader.wake();
    }
}

/// Server's side of a connection: determines the hosts and origins that a request on it may name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LocalSide {
    /// Address that the client has connected to; `None` for a socket in the file system.
    pub(super) address: Option<IpAddr>,
    /// TLS ends here.
    pub(super) is_encrypted: bool,
}

#[derive(Debug)]
enum SocketStream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

/// Calls a method on either kind of socket; they have the same methods, but no common trait.
macro_rules! on {
    ($stream:expr, $socket:ident => $call:expr) => {
        match $stream {
            SocketStream::Tcp($socket) => $call,
            #[cfg(unix)]
            SocketStream::Unix($socket) => $call,
        }
    };
}

impl SocketStream {
    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, socket => socket.poll_read_ready(cx))
    }

    fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, socket => socket.poll_write_ready(cx))
    }

    /// Reads the available bytes. A read that does not fill the buffer marks the socket as empty
    /// until the system reports more: that saves a system call per request.
    fn try_read_buf(&self, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
        let mut last = None;
        let read = on!(self, socket => socket.try_io(Interest::READABLE, || {
            let count = socket.try_read_buf(buffer)?;
            if cfg!(windows) || count == 0 || buffer.remaining() == 0 {
                return Ok(count);
            }
            last = Some(count);
            Err(io::ErrorKind::WouldBlock.into())
        }));
        last.map_or(read, Ok)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        on!(self, socket => socket.try_write(bytes))
    }

    fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        on!(self, socket => socket.try_write_vectored(slices))
    }

    async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        on!(self, socket => socket.ready(interest).await)
    }
}

impl Peer {
    /// Creates the peer of a client at `address`.
    pub(super) fn tcp(stream: TcpStream, address: SocketAddr) -> Self {
        // Without this, small answers wait for the other side's delayed acknowledgements.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, %address, "failed to set TCP_NODELAY");
        }
        // A server that listens on all addresses learns the used one only from the connection.
        let local_address = stream
            .local_addr()
            .ok()
            .map(|local| local.ip().to_canonical());
        Self::new(SocketStream::Tcp(stream), address.ip(), local_address)
    }

    /// Creates the peer of a client on a socket in the file system, and so on this machine.
    #[cfg(unix)]
    pub(super) fn unix(stream: UnixStream) -> Self {
        Self::new(SocketStream::Unix(stream), Ipv4Addr::LOCALHOST.into(), None)
    }

    fn new(stream: SocketStream, address: IpAddr, local_address: Option<IpAddr>) -> Self {
        let socket = SharedSocket {
            stream,
            address,
            local_address,
            pending_answers: AtomicUsize::new(0),
            reader: AtomicWaker::new(),
        };
        Self {
            socket: Arc::new(socket),
            certificate: None,
            is_encrypted: false,
            is_multiplexed: false,
        }
    }

    /// Sets the HTTP version of a request on the connection.
    pub(super) fn with_version(mut self, version: Version) -> Self {
        self.is_multiplexed = version == Version::HTTP_2;
        self
    }

    /// Keeps the connection open for an answer, even if the client sends no more. `None` where
    /// several requests share the connection.
    pub(super) fn await_answer(&self) -> Option<AnswerGuard> {
        if self.is_multiplexed {
            return None;
        }
        self.socket.pending_answers.fetch_add(1, Ordering::AcqRel);
        Some(AnswerGuard(Arc::clone(&self.socket)))
    }

    /// Marks the connection as encrypted, with the hash of the client certificate, if one was
    /// presented.
    #[cfg(feature = "tls")]
    pub(super) fn with_tls(mut self, certificate: Option<Hash>) -> Self {
        self.certificate = certificate.map(Arc::new);
        self.is_encrypted = true;
        self
    }

    /// Server's side of the connection.
    pub(super) fn local_side(&self) -> LocalSide {
        LocalSide {
            address: self.socket.local_address,
            is_encrypted: self.is_encrypted,
        }
    }

    /// Address of the client.
    pub(super) fn address(&self) -> IpAddr {
        self.socket.address
    }

    /// Hash of the verified client certificate.
    pub(super) fn certificate(&self) -> Option<&Hash> {
        self.certificate.as_deref()
    }

    /// Waits for the first bytes, and returns whether they certainly belong to an HTTP/1 request.
    ///
    /// The bytes are only peeked at: read and prepended to the stream they would form a separate
    /// piece, for which hyper doubles its buffer.
    pub(super) async fn speaks_http1(&self) -> bool {
        let mut first = [0; HTTP2_PREFACE.len()];
        let found = match &self.socket.stream {
            SocketStream::Tcp(socket) => socket.peek(&mut first).await,
            #[cfg(unix)]
            SocketStream::Unix(_) => Ok(0),
        };
        found.is_ok_and(|count| !HTTP2_PREFACE.starts_with(&first[..count]))
    }

    /// Waits until the client is gone, even if it has sent bytes before that are still unread. A
    /// client that `takes_events` receives a comment when it has closed its sending side, and
    /// answers with a reset if it is gone.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub(super) async fn wait_until_gone(&self, takes_events: bool) {
        let tells_half_close = match &self.socket.stream {
            SocketStream::Tcp(_) => takes_events,
            #[cfg(unix)]
            SocketStream::Unix(_) => true,
        };
        let may_be_half_closed = tells_half_close && !self.is_multiplexed;
        self.wait_for(|ready| {
            ready.is_write_closed()
                || ready.is_error()
                || ready.is_read_closed() && !may_be_half_closed
        })
        .await;
    }

    /// Waits until the client has closed its sending side, and may still read; for ever where
    /// several requests share the connection.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub(super) async fn wait_until_half_closed(&self) {
        if self.is_multiplexed {
            return pending().await;
        }
        self.wait_for(Ready::is_read_closed).await;
    }

    async fn wait_for(&self, is_so: impl Fn(Ready) -> bool) {
        let every = Interest::READABLE | Interest::WRITABLE | Interest::ERROR;
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            // The readiness is polled: unread bytes would end an ordinary wait at once, again and
            // again.
            let ready = self.socket.stream.ready(every).now_or_never();
            if ready.is_some_and(|ready| ready.map_or(true, &is_so)) {
                return;
            }
        }
    }

    /// Returns whether the end of input must be hidden, and registers the reader to be woken
    /// afterwards.
    fn hides_end(&self, cx: &Context<'_>) -> bool {
        self.socket.reader.register(cx.waker());
        self.socket.pending_answers.load(Ordering::Acquire) > 0
    }

    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&SocketStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.stream.poll_write_ready(cx))?;
            match write(&self.socket.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

impl AsyncRead for Peer {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.stream.poll_read_ready(cx))?;
            match self.socket.stream.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(0) if self.hides_end(cx) => return Poll::Pending,
                read => return Poll::Ready(read.map(drop)),
            }
        }
    }
}

impl AsyncWrite for Peer {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Does nothing: hyper drops the socket after this, which closes it.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn first_bytes_are_peeked_at_only() {
        for (first, is_http1) in [
            ("GET /", true),
            ("POST", true),
            ("PUT", true),
            ("PR", false),
            ("PRI * HTTP/2.0", false),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut client = TcpStream::connect(listener.local_addr().unwrap())
                .await
                .unwrap();
            let (stream, address) = listener.accept().await.unwrap();
            let mut peer = Peer::tcp(stream, address);
            client.write_all(first.as_bytes()).await.unwrap();
            assert_eq!(peer.speaks_http1().await, is_http1, "{first}");
            client.shutdown().await.unwrap();
            let mut read = String::new();
            peer.read_to_string(&mut read).await.unwrap();
            assert_eq!(read, first);
        }
    }
}
