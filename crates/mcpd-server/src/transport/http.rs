//! Streamable HTTP transport: many clients on one listener, each message a POST. Owns the
//! listener and the connections; `guard` decides on access, and the modules behind it on the
//! meaning of a message.
//!
//! ```no_run
//! use mcpd_server::transport::http::{self, Auth, Options, Token};
//! use mcpd_server::{Principal, Server};
//!
//! # async fn example(
//! #     told_to_stop: impl Future<Output = ()>,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::builder().scripts("/srv/tools").start()?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:43210").await?;
//! let auth = Auth::tokens([Token::new("a secret", Principal::new("me"))]);
//! let mut served = std::pin::pin!(http::serve(&server, listener, Options::new(auth)));
//! tokio::select! {
//!     served = &mut served => served?,
//!     () = told_to_stop => tokio::join!(served, server.shutdown()).0?,
//! }
//! # Ok(()) }
//! ```

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_io_timeout::TimeoutStream;

use super::DEFAULT_WRITE_TIMEOUT;
use crate::DEFAULT_MAX_MESSAGE;
use crate::message::tool_names::ToolNames;
use crate::server::Server;
use crate::server::error::Error;

mod activity;
mod auth;
mod background;
mod body_reader;
mod connection_peak;
pub mod console;
mod cors;
mod event_log;
mod events;
mod events_endpoint;
mod guard;
mod headers;
mod listener;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "oauth")]
mod oauth;
#[cfg(not(feature = "oauth"))]
#[path = "http/no_oauth.rs"]
mod oauth;
mod ongoing;
mod peer;
mod pieces;
mod post;
mod reply;
mod resumption;
mod router;
mod sessions;
mod shared_sessions;
mod sse;
#[cfg(feature = "tls")]
mod tls;
mod write_timeout;

use activity::Activity;
pub use auth::{Auth, Certificate, Token};
pub use background::Background;
use connection_peak::ConnectionPeak;
use console::Console;
use listener::Accepted;
pub use listener::Listener;
#[cfg(feature = "metrics")]
pub use metrics::serve_metrics;
#[cfg(feature = "oauth")]
pub use oauth::{Issuer, OAuth, OAuthError, Scope, TokenExchange};
use peer::Peer;
use reply::WithoutEnd;
use router::Router;
#[cfg(feature = "tls")]
pub use tls::{ClientCertificates, Tls, TlsIdentity};
use write_timeout::{GuardedBody, StreamExecutor};

/// Default maximum number of open connections.
pub const DEFAULT_MAX_CONNECTIONS: usize = 16 * 1024;
/// Default maximum number of sessions.
const DEFAULT_MAX_SESSIONS: usize = 16 * 1024;
/// Default size of the events that each session keeps for clients that reconnect, in bytes.
pub const DEFAULT_RESUME_BUFFER: usize = 1024 * 1024;
/// Time for a new connection to send its first request.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle timeout: time for which a connection without an open request is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of the HTTP/2 keep-alive pings on a quiet connection.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// Maximum number of open requests on an HTTP/2 connection.
const MAX_STREAMS: u32 = 256;
/// Time for which connections may continue when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);
/// Delay after a failed accept, for instance without a free descriptor.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// HTTP/1 and HTTP/2, detected by the first bytes; shared, as connections would have a copy each.
static PROTOCOLS: LazyLock<Builder<StreamExecutor>> = LazyLock::new(build_protocols);

/// HTTP/1 alone, if that is known beforehand: such a connection takes less memory.
static HTTP1: LazyLock<Builder<StreamExecutor>> = LazyLock::new(|| build_protocols().http1_only());

/// Options for serving clients over HTTP.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Credentials that clients need.
    pub auth: Auth,
    /// Names of this server besides the loopback names and the listening address. None.
    pub allowed_hosts: Vec<String>,
    /// Web origins that may call, such as `https://app.example.com`, besides the server's own.
    /// None.
    pub allowed_origins: Vec<String>,
    /// Spelling of tool names in lists: by default portable names on `/mcp`, paths on `/rpc` and
    /// `/api/mcp`.
    pub names: Option<ToolNames>,
    /// Serve revision 2024-11-05 on its own paths, `/sse` and `/messages`. False.
    pub http_sse: bool,
    /// Console for browsers, at `/console`. None.
    pub console: Option<Console>,
    /// Serve the metrics to clients, at `/metrics`. False.
    #[cfg(feature = "metrics")]
    pub metrics: bool,
    /// Maximum size of a request body, in bytes. 16 MiB.
    pub max_message: usize,
    /// Maximum number of open connections; further ones wait in the system's queue. Each takes a
    /// descriptor, and where none is left, nothing else can be opened either. 16384.
    pub max_connections: usize,
    /// Maximum number of sessions of older revisions; then the longest unused gives way. 16384.
    pub max_sessions: usize,
    /// Size of the events that each session keeps, in bytes, so that a client whose connection
    /// broke can resume a stream by `Last-Event-ID`; with 0, streams have no ids. All sessions
    /// together keep 1024 times as much. 1 MiB.
    pub resume_buffer: usize,
    /// Name of this server among those that share the [`state_secret`] and their events. The ids of
    /// sessions begin with it, so that a balancer can route by that, and each of these servers can
    /// continue with a session of another. None.
    ///
    /// [`state_secret`]: crate::ServerBuilder::state_secret
    pub session_prefix: Option<String>,
    /// Time for which a client may leave written data unread before its connection is closed. 60
    /// s.
    pub write_timeout: Duration,
}

impl Options {
    /// Creates options with this authentication, loopback names only and no web origins.
    #[must_use]
    pub fn new(auth: Auth) -> Self {
        Self {
            auth,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            names: None,
            http_sse: false,
            console: None,
            #[cfg(feature = "metrics")]
            metrics: false,
            max_message: DEFAULT_MAX_MESSAGE,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            max_sessions: DEFAULT_MAX_SESSIONS,
            resume_buffer: DEFAULT_RESUME_BUFFER,
            session_prefix: None,
            write_timeout: DEFAULT_WRITE_TIMEOUT,
        }
    }
}

/// Serves clients until the server stops; then open requests get three seconds to end.
///
/// # Errors
///
/// The listener fails permanently.
///
/// # Cancel safety
///
/// Dropping the future closes the listener and every connection.
pub async fn serve(
    server: &Server,
    listener: impl Into<Listener>,
    options: Options,
) -> Result<(), Error> {
    let listener = listener.into();
    let router = Router::new(server.clone(), &options, &listener);
    accept(listener, router).await
}

/// Accepts connections until the server stops, then drains them.
async fn accept(mut listener: Listener, router: Router) -> Result<(), Error> {
    let router = Arc::new(router);
    let mut session_events = router.server.engine().subscribers.session_inlet.events();
    let places = Arc::new(Semaphore::new(router.max_connections));
    let mut connections = tokio::task::JoinSet::new();
    let mut peak = ConnectionPeak::default();
    let mut is_failing = false;
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let accepted = tokio::select! {
            () = router.server.engine().stopping.cancelled() => break,
            Some(event) = session_events.next() => {
                router.receive_session_event(event);
                continue;
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {
                if peak.record_close(connections.len()) {
                    drop(tokio::task::spawn_blocking(mcpd_exec::memory::release));
                }
                continue;
            }
            accepted = async { (place.await, listener.accept().await) } => accepted,
        };
        match accepted {
            (place, Ok(accepted)) => {
                is_failing = false;
                let router = Arc::clone(&router);
                let open = router.server.engine().observers.metrics.open_connection();
                connections.spawn(async move {
                    let (_place, _open) = (place, open);
                    serve_connection(accepted, router).await;
                });
            }
            (_, Err(error)) => {
                // The process may be out of descriptors, or the client may have left already:
                // neither is a reason to end.
                if is_failing {
                    tracing::debug!(%error, "failed to accept a connection again");
                } else {
                    tracing::warn!(%error, "failed to accept a connection");
                }
                is_failing = true;
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN_TIMEOUT, drained).await.is_err() {
        tracing::warn!("connections still open at the shutdown deadline were closed");
    }
    Ok(())
}

/// Serves one connection, from its first byte to its end.
async fn serve_connection(client: Accepted, router: Arc<Router>) {
    let begin = Instant::now();
    let activity = Activity::new(begin, FIRST_REQUEST_TIMEOUT);
    let peer = client.peer;
    let mut stream = TimeoutStream::new(peer.clone());
    stream.set_write_timeout(Some(router.write_timeout));
    let stream = Box::pin(stream);
    #[cfg(feature = "tls")]
    if let Some(tls) = client.tls {
        // The future is boxed, so that connections without TLS do not take up its memory.
        return Box::pin(serve_encrypted(&tls, stream, begin, peer, router, activity)).await;
    }
    let protocols = tokio::select! {
        is_http1 = peer.speaks_http1() => if is_http1 { &HTTP1 } else { &PROTOCOLS },
        () = activity.wait_until_idle() => return,
        () = router.server.engine().stopping.cancelled() => return,
    };
    serve_requests(stream, protocols, peer, router, activity).await;
}

/// Serves the requests on `stream` after a TLS handshake.
#[cfg(feature = "tls")]
async fn serve_encrypted(
    tls: &Tls,
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    begin: Instant,
    peer: Peer,
    router: Arc<Router>,
    activity: Activity,
) {
    let address = peer.address();
    match tokio::time::timeout_at(begin + FIRST_REQUEST_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let peer = peer.with_tls(tls::certificate(&stream));
            serve_requests(stream, &PROTOCOLS, peer, router, activity).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, %address, "TLS handshake failed"),
        Err(_) => tracing::debug!(%address, "TLS handshake timed out"),
    }
}

/// Serves the requests on `stream`, until the client closes it, the idle timeout expires or the
/// server stops.
async fn serve_requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    protocols: &Builder<StreamExecutor>,
    peer: Peer,
    router: Arc<Router>,
    activity: Activity,
) {
    let address = peer.address();
    // A token per connection: polling one that all connections share would make them contend for
    // its lock.
    let stopping = router.server.engine().stopping.child_token();
    let seen = activity.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let peer = peer.clone().with_version(request.version());
        let (router, open) = (Arc::clone(&router), seen.begin(IDLE_TIMEOUT));
        // The watch starts first: the client's end of stream may have come with the request.
        let answer_guard = peer.await_answer();
        // A boxed future lives as long as the request, and not as long as the connection.
        Box::pin(async move {
            let response = router.route(request, &peer).await;
            let is_endless = response.extensions().get::<WithoutEnd>().is_some();
            let answer_guard = answer_guard.filter(|_| !is_endless);
            let take = |body| GuardedBody::new(body, open, answer_guard, router.write_timeout);
            Ok::<_, Infallible>(response.map(take))
        })
    });
    let mut connection = pin!(protocols.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = async { tokio::select! { () = activity.wait_until_idle() => {}, () = stopping.cancelled() => {} } } => {
            // Open requests continue, and an HTTP/2 client learns that it has to reconnect for
            // more.
            connection.as_mut().graceful_shutdown();
            activity.limit(DRAIN_TIMEOUT);
            tokio::select! {
                ended = connection => ended,
                () = activity.wait_until_idle() => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, %address, "connection ended early");
    }
}

fn build_protocols() -> Builder<StreamExecutor> {
    let mut builder = Builder::new(StreamExecutor);
    // The idle timeout of the connection covers slow headers as well.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(PING_INTERVAL);
    builder
}
