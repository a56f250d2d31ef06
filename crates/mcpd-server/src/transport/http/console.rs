//! Seat of a web console beside the endpoint: sign-in, sessions and the headers of its pages. The
//! pages themselves and their data come from a [`Site`] of the program.
//!
//! ```text
//! /console            page     ┐ no credentials: they hold no data
//! /console/FILE       asset    ┘
//! POST /console/session        one-time code, or a bearer token ──► cookie and page key
//! DELETE /console/session      ends the session
//! POST /console/code           bearer token ──► one-time code
//! /console/api/PATH   data     ┐ cookie and page key, or a bearer token; POST changes something
//! /mcp                calls    ┘
//! ```
//!
//! A cookie alone opens nothing: browsers send it to every port of a host, and other programs on
//! this machine may listen there. Each request of the page also repeats its key in a header, which
//! no other origin can read or send.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName,
    HeaderValue, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use self::sessions::{Opened, Sessions};
use super::auth::{Auth, Hash};
use super::guard;
use super::peer::Peer;
use super::reply::{self, ResponseBody};
use super::router::{Client, Router};
use crate::policy::principal::Principal;
use crate::server::Server;

mod sessions;

/// Path of the page.
const PATH: &str = "/console";
/// Prefix of the assets, and of everything else.
const PREFIX: &str = "/console/";
/// Path below the prefix at which sessions begin and end.
const SESSION: &str = "session";
/// Path below the prefix at which the holder of a token gets a one-time code.
const CODE: &str = "code";
/// Prefix of the data below [`PREFIX`].
const API: &str = "api/";
/// Header with the key of the page.
const KEY_HEADER: HeaderName = HeaderName::from_static("mcpd-console");
/// Header in which a browser says where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Beginning of the names of cookies; the port of the server follows.
const COOKIE_PREFIX: &str = "mcpd_console_";

/// Only files of the console itself: no inline code, nothing from elsewhere.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

/// Policy of a frame for code of others, which is of no origin. What MCP Apps prescribe for an app
/// that declares no domain, without the files of this server.
const FRAME_POLICY: HeaderValue = HeaderValue::from_static(
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; media-src data: blob:; font-src data:; connect-src 'none'; frame-src 'none'; object-src 'none'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
);
/// Header that keeps a browser from asking for the names of hosts in links.
const DNS_PREFETCH: HeaderName = HeaderName::from_static("x-dns-prefetch-control");

/// Pages of a console, and the data that they show.
pub trait Site: fmt::Debug + Send + Sync + 'static {
    /// Returns the asset at a path below `/console/`; the page itself has the empty path. It is
    /// served without credentials, so it must not have data of the server.
    fn asset(&self, path: &str) -> Option<SiteAsset>;

    /// Answers a request for data.
    fn answer<'a>(&'a self, request: SiteRequest<'a>) -> SiteAnswerFuture<'a>;
}

/// Future of the answer to a request for data.
pub type SiteAnswerFuture<'a> = Pin<Box<dyn Future<Output = SiteAnswer> + Send + 'a>>;

/// File of a site.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "a file has a type and a content")]
pub struct SiteAsset {
    /// Content type, such as `text/css; charset=utf-8`.
    pub content_type: &'static str,
    /// Content.
    pub content: &'static [u8],
    /// Kind of page.
    pub kind: AssetKind,
}

/// Kind of a file of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the policy of each is here")]
pub enum AssetKind {
    /// Part of the console.
    Console,
    /// Frame for code of others: it is of no origin, and reaches nothing but the page around it.
    Frame,
}

/// Request of a signed-in caller for data.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SiteRequest<'a> {
    /// The server.
    pub server: &'a Server,
    /// The caller.
    pub caller: &'a Principal,
    /// Path below `/console/api/`.
    pub path: &'a str,
    /// Query, still encoded.
    pub query: &'a str,
    /// Tells whether the request asks for a change, and not for data.
    pub is_change: bool,
    /// Credentials of all callers.
    pub auth: &'a Auth,
}

/// Answer to a request for data.
#[derive(Debug, Clone)]
#[expect(
    clippy::exhaustive_structs,
    reason = "an answer has a status and a value"
)]
pub struct SiteAnswer {
    /// HTTP status, such as 200.
    pub status: u16,
    /// Body.
    pub body: Value,
}

/// Console of a server: a site, and the sessions of its readers. All clones share it.
#[derive(Debug, Clone)]
pub struct Console {
    inner: Arc<SharedConsole>,
}

#[derive(Debug)]
struct SharedConsole {
    site: Box<dyn Site>,
    sessions: Sessions,
}

/// Body of a request for a session.
#[derive(Debug, Deserialize)]
struct SignIn {
    code: Option<String>,
}

impl Console {
    /// Creates the console with the pages and data of `site`.
    #[must_use]
    pub fn new(site: impl Site) -> Self {
        let inner = SharedConsole {
            site: Box::new(site),
            sessions: Sessions::default(),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Makes a code that opens one session, within ten minutes, for the holder of the token
    /// `secret`. The session ends with the token.
    #[must_use]
    pub fn one_time_code(&self, secret: &str) -> String {
        self.inner.sessions.add_code(secret, Instant::now())
    }

    /// Returns the hash of the token that a request of a signed-in page stands for.
    pub(super) fn token_of(&self, parts: &Parts) -> Option<Hash> {
        if !is_from_own_page(&parts.headers) {
            return None;
        }
        let key = parts.headers.get(&KEY_HEADER)?.as_bytes();
        let name = cookie_name(parts);
        let id = cookies(&parts.headers).find_map(|(found, id)| (found == name).then_some(id))?;
        self.inner.sessions.find(id, key, Instant::now())
    }

    /// Answers a request for a file, which needs no credentials.
    pub(super) fn asset(&self, parts: &Parts, path: &str) -> Option<Response<ResponseBody>> {
        let path = match path {
            PATH => "",
            path => path.strip_prefix(PREFIX)?,
        };
        let asset = self.inner.site.asset(path)?;
        if !reply::is_read(&parts.method) {
            return Some(reply::not_allowed(reply::READ_METHODS));
        }
        let mut response = reply::json(StatusCode::OK, Bytes::from_static(asset.content));
        let content_type = HeaderValue::from_static(asset.content_type);
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        let mut response = protect(response);
        if asset.kind == AssetKind::Frame {
            let headers = response.headers_mut();
            headers.insert(CONTENT_SECURITY_POLICY, FRAME_POLICY);
            headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
            headers.insert(DNS_PREFETCH, HeaderValue::from_static("off"));
        }
        Some(response)
    }

    /// Ends the session of a request. The cookie stays, and opens nothing.
    fn end_session(&self, parts: &Parts) -> Response<ResponseBody> {
        let name = cookie_name(parts);
        if is_from_own_page(&parts.headers) {
            for (_, id) in cookies(&parts.headers).filter(|(found, _)| *found == name) {
                self.inner.sessions.remove(id);
            }
        }
        reply::text(StatusCode::NO_CONTENT, "")
    }
}

impl Router {
    /// Answers a request below `/console/` that is none for an asset.
    pub(super) async fn console(
        &self,
        console: &Console,
        parts: &Parts,
        body: &mut hyper::body::Incoming,
        path: &str,
        peer: &Peer,
    ) -> Response<ResponseBody> {
        let path = path.strip_prefix(PREFIX).unwrap_or_default();
        let response = match (path, &parts.method) {
            (SESSION, &Method::POST) => self.sign_in(console, parts, body, peer).await,
            (SESSION, &Method::DELETE) => console.end_session(parts),
            (CODE, &Method::POST) => self.issue_code(console, parts, peer).await,
            (CODE, _) => reply::not_allowed("POST"),
            (SESSION, _) => reply::not_allowed("POST, DELETE"),
            _ => match path.strip_prefix(API) {
                Some(path) => self.console_data(console, parts, path, peer).await,
                None => reply::text(StatusCode::NOT_FOUND, "the console is at /console"),
            },
        };
        protect(response)
    }

    /// Opens a session for a one-time code, or for the token in the header `Authorization`.
    async fn sign_in(
        &self,
        console: &Console,
        parts: &Parts,
        body: &mut hyper::body::Incoming,
        peer: &Peer,
    ) -> Response<ResponseBody> {
        if !is_from_own_page(&parts.headers) || !parts.headers.contains_key(&KEY_HEADER) {
            return foreign();
        }
        let unknown = Principal::anonymous();
        let (body, _reservation) = match self.body_reader.read(&unknown, &parts.headers, body).await
        {
            Ok(read) => read,
            Err(response) => return *response,
        };
        let sign_in = serde_json::from_slice(&body).unwrap_or(SignIn { code: None });
        let sessions = &console.inner.sessions;
        let token = match sign_in.code {
            Some(code) => match sessions.take_code(&code, Instant::now()) {
                Some(token) => token,
                None => {
                    self.guard.count_failure(peer.address());
                    let reason = "this link was used already or has expired; `mcpd console` prints another, or sign in with a token";
                    return reply::text(StatusCode::UNAUTHORIZED, reason);
                }
            },
            None => match guard::bearer_hash(&parts.headers) {
                Some(token) => token,
                None => {
                    return reply::text(StatusCode::BAD_REQUEST, "a code or a token is missing");
                }
            },
        };
        let credentials = super::auth::Credentials::Session(&token);
        let principal = match self.guard.identify(credentials, peer.address()).await {
            Ok(principal) => principal,
            Err(refusal) => return reply::guard_refusal(refusal),
        };
        let Opened { id, key } = sessions.open(token, Instant::now());
        let body = json!({"key": key, "caller": principal.name()});
        let mut response = reply::json(StatusCode::OK, body.to_string());
        let secure = if peer.local_side().is_encrypted {
            "; Secure"
        } else {
            ""
        };
        let name = cookie_name(parts);
        let cookie = format!("{name}={id}; Path=/; HttpOnly; SameSite=Strict{secure}");
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
        response
    }

    /// Makes a one-time code for the holder of the token in the header `Authorization`, who could
    /// sign in with that as well.
    async fn issue_code(
        &self,
        console: &Console,
        parts: &Parts,
        peer: &Peer,
    ) -> Response<ResponseBody> {
        let Some(token) = guard::bearer_hash(&parts.headers) else {
            return reply::text(StatusCode::BAD_REQUEST, "a token is missing");
        };
        let credentials = super::auth::Credentials::Session(&token);
        match self.guard.identify(credentials, peer.address()).await {
            Ok(_) => {
                let code = console.inner.sessions.add_code_for(token, Instant::now());
                reply::json(StatusCode::OK, json!({"code": code}).to_string())
            }
            Err(refusal) => reply::guard_refusal(refusal),
        }
    }

    /// Answers a request for data.
    async fn console_data(
        &self,
        console: &Console,
        parts: &Parts,
        path: &str,
        peer: &Peer,
    ) -> Response<ResponseBody> {
        // Without authentication this header alone keeps pages of other sites out.
        if !is_from_own_page(&parts.headers) || !parts.headers.contains_key(&KEY_HEADER) {
            return foreign();
        }
        let is_change = parts.method == Method::POST;
        if !is_change && !reply::is_read(&parts.method) {
            return reply::not_allowed("GET, HEAD, POST");
        }
        let client = match self.identify(parts, peer).await {
            Ok(client) => client,
            Err(response) => return *response,
        };
        let Client { principal, .. } = &client;
        let request = SiteRequest {
            server: &self.server,
            caller: principal,
            path,
            query: parts.uri.query().unwrap_or_default(),
            is_change,
            auth: self.guard.auth(),
        };
        let answer = console.inner.site.answer(request).await;
        let status = StatusCode::from_u16(answer.status);
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        reply::json(status, answer.body.to_string())
    }
}

/// Returns whether a path, without its last slash, is one of the console.
pub(super) fn is_below(path: &str) -> bool {
    path == PATH || path.starts_with(PREFIX)
}

/// Refuses a request that no page of the console sends.
fn foreign() -> Response<ResponseBody> {
    let reason = "this path is for the page at /console: the header `Mcpd-Console` is required, and no other site may call";
    reply::text(StatusCode::FORBIDDEN, reason)
}

/// Returns whether a browser says nothing against the console's own page as the sender. Other
/// ports of the same host are the same site, and another origin.
fn is_from_own_page(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(&FETCH_SITE).iter();
    sites.all(|site| site == "same-origin")
}

/// Returns the name of the cookie: servers on other ports of the host have cookies of their own.
fn cookie_name(parts: &Parts) -> String {
    let authority = guard::authority(parts).unwrap_or_default();
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    let digits = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    format!("{COOKIE_PREFIX}{}", digits.unwrap_or_default())
}

/// Returns the cookies of a request.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let headers = headers.get_all(COOKIE).iter();
    headers
        .filter_map(|header| header.to_str().ok())
        .flat_map(|header| header.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
}

/// Adds the headers that every response of the console has.
fn protect(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let headers = response.headers_mut();
    let same_origin = HeaderValue::from_static("same-origin");
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", same_origin.clone());
    headers.insert("cross-origin-opener-policy", same_origin);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
