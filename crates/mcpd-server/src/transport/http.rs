//! Streamable HTTP: many clients on one listener, each message a POST. Owns the listener and the
//! connections; who may come in is decided in `guard`, what a message means behind it.
//!
//! ```no_run
//! use mcpd_server::transport::http::{self, Auth, Options, Token};
//! use mcpd_server::{Principal, Server};
//!
//! # async fn example(told_to_stop: impl Future<Output = ()>) -> Result<(), Box<dyn std::error::Error>> {
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
use crate::catalog::ToolNames;
use crate::{DEFAULT_MAX_MESSAGE, Error, Server};

mod activity;
mod auth;
mod background;
mod cors;
mod event_log;
mod event_stream;
mod events;
mod guard;
mod headers;
mod intake;
mod listener;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "oauth")]
mod oauth;
#[cfg(not(feature = "oauth"))]
#[path = "http/no_oauth.rs"]
mod oauth;
mod peer;
mod pieces;
mod post;
mod reply;
mod resumption;
mod router;
mod sessions;
mod sse;
mod streams;
mod tide;
#[cfg(feature = "tls")]
mod tls;

use activity::Activity;
pub use auth::{Auth, Certificate, Token};
pub use background::Background;
#[cfg(fuzzing)]
pub(crate) use headers::{check as check_headers, check_version};
use listener::Accepted;
pub use listener::Listener;
#[cfg(feature = "metrics")]
pub use metrics::serve_metrics;
#[cfg(feature = "oauth")]
pub use oauth::{Issuer, OAuth, OAuthError, Scope};
use peer::Peer;
use reply::WithoutEnd;
use router::Router;
use streams::{Answering, Carrier};
use tide::Tide;
#[cfg(feature = "tls")]
pub use tls::{ClientCertificates, Identity, Tls};

/// How many connections may be open at once without another wish.
pub const DEFAULT_MAX_CONNECTIONS: usize = 16 * 1024;
/// Bytes of events that each session keeps for clients that come back, by default.
pub const DEFAULT_RESUME_BUFFER: usize = 1024 * 1024;
/// How long a new connection may take to show its first request.
const FIRST: Duration = Duration::from_secs(10);
/// How long a connection is kept on which no request is open.
const IDLE: Duration = Duration::from_secs(30);
/// How often a quiet HTTP/2 connection shows that it is alive.
const PING: Duration = Duration::from_secs(15);
/// How many requests an HTTP/2 connection may have open at once.
const MAX_STREAMS: u32 = 256;
/// How long connections may go on when the server stops.
const DRAIN: Duration = Duration::from_secs(3);
/// How long to wait when the system has no descriptor for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// HTTP/1 and HTTP/2, whichever a client begins with: one for all, as connections would have a copy each.
static PROTOCOLS: LazyLock<Builder<Carrier>> = LazyLock::new(protocols);

/// HTTP/1 alone, where that is known before: a connection takes less memory then.
static HTTP1: LazyLock<Builder<Carrier>> = LazyLock::new(|| protocols().http1_only());

/// How clients are served over HTTP.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// What a client must show.
    pub auth: Auth,
    /// Names this server may be reached under, besides the loopback names and the address it listens on. None.
    pub allowed_hosts: Vec<String>,
    /// Web origins that may call, such as `https://app.example.com`, besides the server's own. None.
    pub allowed_origins: Vec<String>,
    /// How lists spell the names of tools: by default portable names on `/mcp`, paths on `/rpc` and
    /// `/api/mcp`.
    pub names: Option<ToolNames>,
    /// Whether revision 2024-11-05 is served on its own paths, `/sse` and `/messages`. False.
    pub http_sse: bool,
    /// Whether clients are also served the metrics, at `/metrics`. False.
    #[cfg(feature = "metrics")]
    pub metrics: bool,
    /// The largest request body that is read, in bytes. 16 MiB.
    pub max_message: usize,
    /// How many connections may be open at once; further ones wait in the system's queue. Each takes a descriptor, and
    /// where there is none left, nothing else can be opened either. 16384.
    pub max_connections: usize,
    /// Bytes of events that each session keeps, so that a client whose connection broke can resume a stream by
    /// `Last-Event-ID`; 0 for none, and streams without ids. 1 MiB.
    pub resume_buffer: usize,
    /// How long a client may leave what is written to it unread before its connection is closed. 60 s.
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
            #[cfg(feature = "metrics")]
            metrics: false,
            max_message: DEFAULT_MAX_MESSAGE,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            resume_buffer: DEFAULT_RESUME_BUFFER,
            write_timeout: DEFAULT_WRITE_TIMEOUT,
        }
    }
}

/// Serves clients until the server stops; then open requests get three seconds to end.
///
/// # Errors
///
/// When the listener fails for good.
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

/// Serves what `router` serves until the server stops.
async fn accept(mut listener: Listener, router: Router) -> Result<(), Error> {
    let router = Arc::new(router);
    let places = Arc::new(Semaphore::new(router.max_connections));
    let mut connections = tokio::task::JoinSet::new();
    let mut tide = Tide::default();
    let mut is_failing = false;
    loop {
        let place = Arc::clone(&places).acquire_owned();
        let accepted = tokio::select! {
            () = router.server.stopping().cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {
                if tide.is_out(connections.len()) {
                    drop(tokio::task::spawn_blocking(mcpd_exec::release_memory));
                }
                continue;
            }
            accepted = async { (place.await, listener.accept().await) } => accepted,
        };
        match accepted {
            (place, Ok(accepted)) => {
                is_failing = false;
                let router = Arc::clone(&router);
                let open = router.server.metrics().connection();
                connections.spawn(async move {
                    let (_place, _open) = (place, open);
                    connection(accepted, router).await;
                });
            }
            (_, Err(error)) => {
                // Out of descriptors, or a client that has already left: neither is a reason to end.
                if is_failing {
                    tracing::debug!(%error, "failed again to accept a connection");
                } else {
                    tracing::warn!(%error, "failed to accept a connection");
                }
                is_failing = true;
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::warn!("connections that did not end in time are closed");
    }
    Ok(())
}

/// One client's connection, from its first byte to its end.
async fn connection(client: Accepted, router: Arc<Router>) {
    let begin = Instant::now();
    let activity = Activity::new(begin, FIRST);
    let peer = client.peer;
    let mut stream = TimeoutStream::new(peer.clone());
    stream.set_write_timeout(Some(router.write_timeout));
    let stream = Box::pin(stream);
    #[cfg(feature = "tls")]
    if let Some(tls) = client.tls {
        // The room that encryption takes is not kept for connections without.
        return Box::pin(encrypted(&tls, stream, begin, peer, router, activity)).await;
    }
    let protocols = tokio::select! {
        is_http1 = peer.speaks_http1() => if is_http1 { &HTTP1 } else { &PROTOCOLS },
        () = activity.ceased() => return,
        () = router.server.stopping().cancelled() => return,
    };
    requests(stream, protocols, peer, router, activity).await;
}

/// The requests that come on `stream` once both sides agree on how it is encrypted.
#[cfg(feature = "tls")]
async fn encrypted(
    tls: &Tls,
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    begin: Instant,
    peer: Peer,
    router: Arc<Router>,
    activity: Activity,
) {
    let address = peer.address();
    match tokio::time::timeout_at(begin + FIRST, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let peer = peer.encrypted(tls::certificate(&stream));
            requests(stream, &PROTOCOLS, peer, router, activity).await;
        }
        Ok(Err(error)) => tracing::debug!(%error, %address, "failed to agree on TLS"),
        Err(_) => tracing::debug!(%address, "did not agree on TLS in time"),
    }
}

/// The requests that come on `stream`, until the client has no more, makes none for too long, or the server stops.
async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
    protocols: &Builder<Carrier>,
    peer: Peer,
    router: Arc<Router>,
    activity: Activity,
) {
    let address = peer.address();
    // One of its own, as looking at one that is shared by all connections would have them wait for each other.
    let stopping = router.server.stopping().child_token();
    let seen = activity.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let peer = peer.clone().speaking(request.version());
        let (router, open) = (Arc::clone(&router), seen.begin(IDLE));
        // Before anything else: the end may have come with the request.
        let awaited = peer.await_answer();
        // Room for it on its own is there as long as the request only, and not as long as the connection.
        Box::pin(async move {
            let response = router.route(request, &peer).await;
            let is_endless = response.extensions().get::<WithoutEnd>().is_some();
            let awaited = awaited.filter(|_| !is_endless);
            let take = |body| Answering::new(body, open, awaited, router.write_timeout);
            Ok::<_, Infallible>(response.map(take))
        })
    });
    let mut connection = pin!(protocols.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = async { tokio::select! { () = activity.ceased() => {}, () = stopping.cancelled() => {} } } => {
            // What is open goes on, and a client of HTTP/2 hears that it has to connect anew for more.
            connection.as_mut().graceful_shutdown();
            activity.limit(DRAIN);
            tokio::select! {
                ended = connection => ended,
                () = activity.ceased() => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error, %address, "a connection ended early");
    }
}

fn protocols() -> Builder<Carrier> {
    let mut builder = Builder::new(Carrier);
    // How long a request may take to come, the activity of the connection says for both.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(PING);
    builder
}
