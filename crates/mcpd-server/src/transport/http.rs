//! Streamable HTTP: many clients on one listener, each message a POST. Owns the listener and the
//! connections; who may come in is decided in `guard`, what a message means behind it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;

use super::DEFAULT_WRITE_TIMEOUT;
use crate::catalog::ToolNames;
use crate::{DEFAULT_MAX_MESSAGE, Error, Server};

mod auth;
mod cors;
mod event_stream;
mod events;
mod guard;
mod headers;
mod peer;
mod post;
mod reply;
mod router;
mod sessions;
mod sse;

pub use auth::{Auth, Token};
#[cfg(fuzzing)]
pub(crate) use headers::{check as check_headers, check_version};
use peer::Peer;
use router::Router;

/// Connections open at once; further ones wait in the system's queue.
const MAX_CONNECTIONS: usize = 16 * 1024;
/// How long a new connection may take to show which HTTP it speaks.
const PREFACE: Duration = Duration::from_secs(10);
/// How HTTP/2 begins. Any other beginning is HTTP/1.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long to wait for the rest of a beginning that could be either.
const PREFACE_PAUSE: Duration = Duration::from_millis(20);
/// How long a request's headers may take, and how long an idle connection is kept.
const HEADERS: Duration = Duration::from_secs(30);
/// How long connections may go on when the server stops.
const DRAIN: Duration = Duration::from_secs(3);
/// How long to wait when the system has no descriptor for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How clients are served over HTTP.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// What a client must show.
    pub auth: Auth,
    /// Names this server may be reached under, besides the loopback names and the address it listens on.
    pub allowed_hosts: Vec<String>,
    /// Web origins that may call, besides the server's own.
    pub allowed_origins: Vec<String>,
    /// How lists spell the names of tools: by default portable names on `/mcp`, paths on `/rpc` and
    /// `/api/mcp`.
    pub names: Option<ToolNames>,
    /// Whether revision 2024-11-05 is served on its own paths, `/sse` and `/messages`.
    pub http_sse: bool,
    /// The largest request body that is read, in bytes.
    pub max_message: usize,
    /// How long a client may leave what is written to it unread before its connection is closed.
    pub write_timeout: Duration,
}

impl Options {
    /// Loopback names only, nothing from the web, and this to be shown.
    #[must_use]
    pub fn new(auth: Auth) -> Self {
        Self {
            auth,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            names: None,
            http_sse: false,
            max_message: DEFAULT_MAX_MESSAGE,
            write_timeout: DEFAULT_WRITE_TIMEOUT,
        }
    }
}

/// Serves clients until the server stops; then open requests get a few seconds to end.
///
/// # Errors
///
/// When the listener fails for good.
///
/// # Cancel safety
///
/// Dropping the future closes the listener and every connection.
pub async fn serve(server: &Server, listener: TcpListener, options: Options) -> Result<(), Error> {
    let local = listener.local_addr().map_err(Error::Transport)?;
    let router = Arc::new(Router::new(server.clone(), &options, local));
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let accepted = tokio::select! {
            () = server.stopping().cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = async { (place.await, listener.accept().await) } => accepted,
        };
        match accepted {
            (place, Ok((stream, address))) => {
                let connection =
                    connection(stream, address, Arc::clone(&router), graceful.watcher());
                connections.spawn(async move {
                    let _place = place;
                    connection.await;
                });
            }
            (_, Err(error)) => {
                // Out of descriptors, or a client that has already left: neither is a reason to end.
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("connections that did not end in time are closed");
    }
    Ok(())
}

/// One client's connection, from its first byte to its end.
async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    router: Arc<Router>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    // Without this, small answers wait for the other side's delayed acknowledgements.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, %address, "failed to set TCP_NODELAY");
    }
    let Ok(Ok(())) = tokio::time::timeout(PREFACE, preface(&stream)).await else {
        return;
    };
    let peer = Peer::new(stream, address.ip());
    let mut stream = TimeoutStream::new(peer.clone());
    stream.set_write_timeout(Some(router.write_timeout));
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (router, peer) = (Arc::clone(&router), peer.clone());
        async move { Ok::<_, Infallible>(router.route(request, &peer).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(256)
        .keep_alive_interval(HEADERS);
    let connection = builder.serve_connection(TokioIo::new(Box::pin(stream)), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(error, %address, "a connection ended early");
    }
}

/// Waits until it is clear which HTTP the client speaks: from there on hyper's own deadlines hold.
async fn preface(stream: &TcpStream) -> std::io::Result<()> {
    let mut seen = [0; HTTP2.len()];
    loop {
        match stream.peek(&mut seen).await? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read if read < HTTP2.len() && HTTP2.starts_with(&seen[..read]) => {
                // What has been seen stays there, so there is no event to wait for.
                tokio::time::sleep(PREFACE_PAUSE).await;
            }
            _ => return Ok(()),
        }
    }
}
