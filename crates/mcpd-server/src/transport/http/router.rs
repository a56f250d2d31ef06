//! Which path and verb leads where. The guard stands before all of them.

use std::net::SocketAddr;

use hyper::body::Incoming;
use hyper::header::ORIGIN;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;

use super::Options;
use super::cors;
use super::guard::Guard;
use super::reply::{self, Body};
use super::sessions::Sessions;
use super::sse::{self, Streams};
use crate::Server;
use crate::catalog::ToolNames;

/// Everything the requests of one listener share.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) server: Server,
    pub(super) sessions: Sessions,
    pub(super) max_message: usize,
    /// The paths of 2024-11-05, if they are served.
    streams: Option<Streams>,
    guard: Guard,
    names: Option<ToolNames>,
}

impl Router {
    pub(super) fn new(server: Server, options: &Options, local: SocketAddr) -> Self {
        Self {
            server,
            sessions: Sessions::default(),
            max_message: options.max_message,
            streams: options.http_sse.then(Streams::default),
            guard: Guard::new(options, local.ip()),
            names: options.names,
        }
    }

    pub(super) async fn route(&self, request: Request<Incoming>) -> Response<Body> {
        if let Err(refusal) = self.guard.check_source(&request) {
            return reply::refused(refusal);
        }
        let origin = request.headers().get(ORIGIN).cloned();
        let mut response = match cors::preflight(&request) {
            Some(response) => response,
            None => self.admitted(request).await,
        };
        if let Some(origin) = origin {
            cors::allow(&mut response, origin);
        }
        response
    }

    async fn admitted(&self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() == "/health" {
            return self.health(request.method());
        }
        if let Err(refusal) = self.guard.check_token(request.headers()) {
            return reply::refused(refusal);
        }
        match request.uri().path() {
            "/mcp" => self.endpoint(request, ToolNames::Portable).await,
            // The names these two list are promised to their users as paths.
            "/rpc" | "/api/mcp" => self.endpoint(request, ToolNames::Path).await,
            path => match &self.streams {
                Some(streams) if path == sse::STREAM => self.open_stream(streams, request.method()),
                Some(streams) if path == sse::MESSAGES => {
                    streams.post(request, self.max_message).await
                }
                _ => reply::text(StatusCode::NOT_FOUND, "the MCP endpoint is /mcp"),
            },
        }
    }

    async fn endpoint(&self, request: Request<Incoming>, names: ToolNames) -> Response<Body> {
        let names = self.names.unwrap_or(names);
        match *request.method() {
            Method::POST => self.post(request, names).await,
            Method::GET => self.stream(request.headers()),
            Method::DELETE => self.end_session(request.headers()),
            _ => reply::not_allowed("POST, GET, DELETE"),
        }
    }

    fn open_stream(&self, streams: &Streams, method: &Method) -> Response<Body> {
        if *method != Method::GET {
            return reply::not_allowed("GET");
        }
        streams.open(&self.server, self.names.unwrap_or(ToolNames::Portable))
    }

    /// Alive, and how many scripts are not as they should be. No names: this answer is for everybody.
    fn health(&self, method: &Method) -> Response<Body> {
        if *method != Method::GET {
            return reply::not_allowed("GET");
        }
        let catalog = self.server.catalog();
        let faulty = catalog
            .scan()
            .scripts
            .iter()
            .filter(|script| script.spec.is_none())
            .count();
        let body = json!({"status": "ok", "tools": catalog.tools().len(), "faulty": faulty});
        reply::json(StatusCode::OK, body.to_string())
    }
}
