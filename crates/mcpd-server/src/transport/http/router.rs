//! Router: maps paths and methods to handlers, behind the guard.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, EXPECT, HeaderValue, ORIGIN, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Version};
use serde_json::json;

use super::Options;
use super::auth::Credentials;
use super::body_reader::BodyReader;
use super::console::Console;
use super::guard::{self, Guard, GuardRefusal};
use super::listener::Listener;
#[cfg(feature = "metrics")]
use super::metrics;
use super::peer::Peer;
use super::reply::{self, RefusedResponse, ResponseBody};
use super::sessions::Sessions;
use super::sse::{self, Streams};
use super::{console, cors, events_endpoint};
use crate::client::outbox::Outbox;
use crate::limits::admission::Rejection;
use crate::message::tool_names::ToolNames;
use crate::observe::audit::Audit;
use crate::policy::principal::Principal;
use crate::server::Server;

/// Time for which a client waits for permission to send its body (`Expect: 100-continue`), at
/// least.
const EXPECT_WAIT: Duration = Duration::from_millis(500);

/// Prefix of the endpoints of selections.
const SELECTION_PREFIX: &str = "/mcp/";

/// Sender of a request, and its connection.
#[derive(Debug)]
pub(super) struct Client<'a> {
    pub(super) principal: Principal,
    pub(super) peer: &'a Peer,
}

/// State shared by all requests of one listener.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) server: Server,
    pub(super) sessions: Sessions,
    pub(super) body_reader: BodyReader,
    pub(super) max_connections: usize,
    pub(super) write_timeout: Duration,
    /// Outbox for requests whose senders want no notifications.
    pub(super) nowhere: Outbox,
    /// Paths of 2024-11-05, if they are served.
    streams: Option<Streams>,
    pub(super) guard: Guard,
    console: Option<Console>,
    names: Option<ToolNames>,
    #[cfg(feature = "metrics")]
    metrics: bool,
    #[cfg(feature = "metrics")]
    only_metrics: bool,
}

impl Router {
    pub(super) fn new(server: Server, options: &Options, listener: &Listener) -> Self {
        let local: Vec<_> = listener.addresses().collect();
        let metrics = Arc::clone(&server.engine().observers.metrics);
        Self {
            body_reader: BodyReader::new(options.max_message, metrics),
            server,
            sessions: Sessions::new(options),
            max_connections: options.max_connections,
            write_timeout: options.write_timeout,
            nowhere: Outbox::nowhere(),
            streams: options.http_sse.then(Streams::default),
            guard: Guard::new(options, &local, listener.url()),
            console: options.console.clone(),
            names: options.names,
            #[cfg(feature = "metrics")]
            metrics: options.metrics,
            #[cfg(feature = "metrics")]
            only_metrics: false,
        }
    }

    /// Restricts the router to the metrics.
    #[cfg(feature = "metrics")]
    pub(super) fn only_metrics(self) -> Self {
        Self {
            only_metrics: true,
            ..self
        }
    }

    pub(super) async fn route(
        &self,
        request: Request<Incoming>,
        peer: &Peer,
    ) -> Response<ResponseBody> {
        let begun = Instant::now();
        let (parts, mut body) = request.into_parts();
        let sent = body.size_hint().exact();
        let response = self.answer(&parts, &mut body, peer).await;
        // A client that waits for permission does not send a refused body, unless the answer
        // takes too long.
        let is_asking = parts.headers.contains_key(EXPECT)
            && sent.is_some()
            && sent == body.size_hint().exact()
            && begun.elapsed() < EXPECT_WAIT;
        if !is_asking {
            discard_rest(body).await;
        }
        match (&parts.method, parts.version) {
            (&Method::HEAD, Version::HTTP_2) => reply::without_body(response),
            // Over HTTP/1 hyper omits the body.
            _ => response,
        }
    }

    async fn answer(
        &self,
        parts: &Parts,
        body: &mut Incoming,
        peer: &Peer,
    ) -> Response<ResponseBody> {
        if let Err(refusal) = self.guard.check_source(parts, peer.local_side()) {
            return self.refuse(Rejection::Source, refusal, peer);
        }
        let origin = parts.headers.get(ORIGIN).cloned();
        let is_in_chunks = parts.headers.contains_key(TRANSFER_ENCODING);
        let mut response = match cors::preflight(parts) {
            Some(response) => response,
            None => self.answer_admitted(parts, body, peer).await,
        };
        if let Some(origin) = origin {
            cors::allow(&mut response, origin);
        }
        // "the server MUST close the connection after responding to such a request", meaning one
        // with a Content-Length as well, which can no longer be seen here -- RFC 9112, 6.1
        if is_in_chunks {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }

    async fn answer_admitted(
        &self,
        parts: &Parts,
        body: &mut Incoming,
        peer: &Peer,
    ) -> Response<ResponseBody> {
        let path = without_last_slash(parts.uri.path());
        match path {
            #[cfg(feature = "metrics")]
            path if self.only_metrics => {
                return match path {
                    metrics::PATH => metrics::answer(&self.server, &parts.method),
                    _ => reply::text(StatusCode::NOT_FOUND, "the metrics are at /metrics"),
                };
            }
            "/health" => return self.health(&parts.method),
            "/ready" => return self.ready(&parts.method),
            path if path.starts_with("/.well-known/") => {
                return self.metadata(&parts.method, path);
            }
            path if console::is_below(path)
                && let Some(console) = &self.console =>
            {
                return match console.asset(parts, path) {
                    Some(response) => response,
                    None => self.console(console, parts, body, path, peer).await,
                };
            }
            _ => {}
        }
        let client = match self.identify(parts, peer).await {
            Ok(client) => client,
            Err(response) => return *response,
        };
        match path {
            "/mcp" => {
                self.endpoint(parts, body, ToolNames::Portable, &client)
                    .await
            }
            path if path.len() > SELECTION_PREFIX.len() && path.starts_with(SELECTION_PREFIX) => {
                self.selection_endpoint(parts, body, &path[SELECTION_PREFIX.len()..], client)
                    .await
            }
            // Both list tools by path for compatibility with their clients.
            "/rpc" | "/api/mcp" => self.endpoint(parts, body, ToolNames::Path, &client).await,
            #[cfg(feature = "metrics")]
            metrics::PATH if self.metrics => metrics::answer(&self.server, &parts.method),
            path if path.starts_with(events_endpoint::PREFIX) => {
                self.call_with_events(parts, body, &client).await
            }
            path => match &self.streams {
                Some(streams) if path == sse::STREAM_PATH => {
                    self.open_stream(streams, &parts.method, client.principal)
                }
                Some(streams) if path == sse::MESSAGES_PATH => {
                    let principal = &client.principal;
                    streams
                        .post(parts, body, &self.server, principal, &self.body_reader)
                        .await
                }
                _ => reply::text(StatusCode::NOT_FOUND, "the MCP endpoint is /mcp"),
            },
        }
    }

    /// Identifies the sender of a request.
    ///
    /// # Errors
    ///
    /// The refusal of a sender without valid credentials.
    pub(super) async fn identify<'a>(
        &self,
        parts: &Parts,
        peer: &'a Peer,
    ) -> Result<Client<'a>, RefusedResponse> {
        let credentials = guard::credentials(&parts.headers, peer.certificate());
        let session = match (credentials, &self.console) {
            (Credentials::Token(_), _) | (_, None) => None,
            (_, Some(console)) => console.token_of(parts),
        };
        let credentials = session.as_ref().map_or(credentials, Credentials::Session);
        match self.guard.identify(credentials, peer.address()).await {
            Ok(principal) => Ok(Client { principal, peer }),
            Err(refusal) => Err(Box::new(self.refuse(Rejection::Token, refusal, peer))),
        }
    }

    /// Responds with a refusal. Clients without credentials can cause any number of these, so
    /// they are logged at debug level only.
    fn refuse(
        &self,
        what: Rejection,
        refusal: GuardRefusal,
        peer: &Peer,
    ) -> Response<ResponseBody> {
        self.server.engine().observers.metrics.count_refusal(what);
        tracing::debug!(address = %peer.address(), "request refused: {}", refusal.reason);
        reply::guard_refusal(refusal)
    }

    /// Serves the selection called `name` as [`endpoint`](Self::endpoint) serves everything.
    async fn selection_endpoint(
        &self,
        parts: &Parts,
        body: &mut Incoming,
        name: &str,
        client: Client<'_>,
    ) -> Response<ResponseBody> {
        let selections = self.server.engine().selections.load_full();
        let Some(principal) = selections.narrow_by_name(name, &client.principal) else {
            let reason = "there is no such profile; the endpoint with all tools is /mcp";
            return reply::text(StatusCode::NOT_FOUND, reason);
        };
        let client = Client {
            principal,
            ..client
        };
        self.endpoint(parts, body, ToolNames::Portable, &client)
            .await
    }

    async fn endpoint(
        &self,
        parts: &Parts,
        body: &mut Incoming,
        names: ToolNames,
        client: &Client<'_>,
    ) -> Response<ResponseBody> {
        let names = self.names.unwrap_or(names);
        match parts.method {
            Method::POST => self.post(parts, body, names, client).await,
            Method::GET => self.open_listening(&parts.headers, &client.principal),
            Method::DELETE => self.end_session(&parts.headers, &client.principal),
            _ => reply::not_allowed("POST, GET, DELETE"),
        }
    }

    fn open_stream(
        &self,
        streams: &Streams,
        method: &Method,
        principal: Principal,
    ) -> Response<ResponseBody> {
        if *method != Method::GET {
            return reply::not_allowed("GET");
        }
        let names = self.names.unwrap_or(ToolNames::Portable);
        streams.open(&self.server, names, principal)
    }

    /// Responds with the OAuth metadata. Without any, a 404 keeps the client from looking
    /// further.
    fn metadata(&self, method: &Method, path: &str) -> Response<ResponseBody> {
        match self.guard.metadata(path) {
            Some(_) if !reply::is_read(method) => reply::not_allowed(reply::READ_METHODS),
            Some(metadata) => reply::json(StatusCode::OK, metadata.to_string()),
            None => reply::text(StatusCode::NOT_FOUND, "unknown kind"),
        }
    }

    /// Readiness probe: the catalog is complete, calls can be recorded, and the server is not
    /// stopping.
    fn ready(&self, method: &Method) -> Response<ResponseBody> {
        if !reply::is_read(method) {
            return reply::not_allowed(reply::READ_METHODS);
        }
        let obstacle = if self.server.engine().stopping.is_cancelled() {
            "the server is shutting down"
        } else if !self.server.live_catalog().is_scanned() {
            "the scripts are being read"
        } else if self.server.audit().is_some_and(Audit::is_refusing) {
            "calls cannot be recorded in the audit log"
        } else {
            return reply::text(StatusCode::OK, "ready");
        };
        reply::text(StatusCode::SERVICE_UNAVAILABLE, obstacle)
    }

    /// Health probe: the server is alive, with the numbers of faults. It contains no names, as it
    /// needs no credentials.
    fn health(&self, method: &Method) -> Response<ResponseBody> {
        if !reply::is_read(method) {
            return reply::not_allowed(reply::READ_METHODS);
        }
        if !self.server.live_catalog().is_scanned() {
            let body = json!({"status": "starting"});
            return reply::json(StatusCode::OK, body.to_string());
        }
        let catalog = self.server.catalog();
        let sources = catalog.offers().iter();
        let mut body = json!({
            "status": "ok",
            "tools": catalog.tools().len(),
            "prompts": catalog.prompts().len(),
            "resources": catalog.resources().len(),
            "faulty": catalog.scan().faulty().count(),
            "unusable": catalog.scan().unusable.len(),
            "conflicts": catalog.conflicts().len(),
            "sources": catalog.offers().len(),
            "faultySources": sources.filter(|source| source.is_faulty()).count(),
        });
        if let Some(audit) = self.server.audit() {
            body["audit"] = json!({"failing": audit.is_failing(), "lost": audit.lost_records()});
        }
        reply::json(StatusCode::OK, body.to_string())
    }
}

/// Strips a trailing slash, which clients and proxies add to configured addresses.
pub(super) fn without_last_slash(path: &str) -> &str {
    path.strip_suffix('/').unwrap_or(path)
}

/// Reads the rest of a request that is answered already. An answer before the end of its request
/// resets the connection, or its HTTP/2 stream, and most clients read no answer before they have
/// sent everything.
async fn discard_rest(body: Incoming) {
    const MAX_DISCARDED_BYTES: usize = 64 * 1024 * 1024;
    const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);
    if !body.is_end_stream() {
        let mut rest = Limited::new(body, MAX_DISCARDED_BYTES);
        // The response stays the same, so the result is ignored.
        let discarded = async { while let Some(Ok(_)) = rest.frame().await {} };
        tokio::time::timeout(DISCARD_TIMEOUT, discarded).await.ok();
    }
}
