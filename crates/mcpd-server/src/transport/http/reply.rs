//! The few shapes of an HTTP response here: one JSON body, an event stream, or a status with a reason.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Either;
use hyper::body::Body as _;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::{Method, Response, StatusCode};
use mcpd_protocol::jsonrpc::{self, ErrorObject, RequestId};

use super::events::Events;
use super::guard::Refusal;
use super::pieces::Pieces;
use crate::quota;

/// The body of every response.
pub(super) type Body = Either<Pieces, Events>;

/// A JSON-RPC response, and what HTTP says of it where it is all of the response there.
#[derive(Debug)]
pub(super) struct Whole {
    pub(super) message: Pieces,
    status: StatusCode,
    /// When to try again.
    wait: Option<Duration>,
}

impl Whole {
    pub(super) fn ok(message: impl Into<Pieces>) -> Self {
        Self {
            message: message.into(),
            status: StatusCode::OK,
            wait: None,
        }
    }

    /// The response with this result.
    pub(super) fn result(id: &RequestId, result: Bytes) -> Self {
        Self::ok(Pieces::response(id, result))
    }

    /// An error. One that says when to try again says so in HTTP, too.
    pub(super) fn error(status: StatusCode, id: Option<&RequestId>, error: &ErrorObject) -> Self {
        let wait = quota::wait(error);
        Self {
            message: jsonrpc::error_response(id, error).into(),
            status: wait.map_or(status, |_| StatusCode::TOO_MANY_REQUESTS),
            wait,
        }
    }
}

impl From<Whole> for Response<Body> {
    fn from(whole: Whole) -> Self {
        let mut response = json(whole.status, whole.message);
        if let Some(wait) = whole.wait {
            retry_after(&mut response, wait);
        }
        response
    }
}

/// One JSON value.
pub(super) fn json(status: StatusCode, body: impl Into<Pieces>) -> Response<Body> {
    let mut response = Response::new(Either::Left(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A JSON-RPC error.
pub(super) fn error(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &ErrorObject,
) -> Response<Body> {
    Whole::error(status, id, error).into()
}

fn retry_after(response: &mut Response<Body>, wait: Duration) {
    let seconds = HeaderValue::from(wait.as_secs() + 1);
    response.headers_mut().insert(RETRY_AFTER, seconds);
}

/// Notifications and an answer, as they come.
pub(super) fn events(events: Events) -> Response<Body> {
    let mut response = Response::new(Either::Right(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Proxies that collect before they pass on would hold progress back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Mark of a response that has no end of its own: its client is gone when it has closed its sending side.
#[derive(Debug, Clone, Copy)]
pub(super) struct WithoutEnd;

/// Marks a response as one [without an end](WithoutEnd).
pub(super) fn without_end(mut response: Response<Body>) -> Response<Body> {
    response.extensions_mut().insert(WithoutEnd);
    response
}

/// A request that is refused before it is dispatched, whole.
pub(super) type Refused = Box<Response<Body>>;

/// A status and, for people, why.
pub(super) fn text(status: StatusCode, reason: impl Into<Bytes>) -> Response<Body> {
    let reason = Pieces::from(reason);
    let is_empty = reason.is_empty();
    let mut response = Response::new(Either::Left(reason));
    *response.status_mut() = status;
    if !is_empty {
        response.headers_mut().insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
    }
    response
}

/// A call is refused for now, for a client that knows no JSON-RPC.
pub(super) fn too_many(reason: &str, wait: Duration) -> Response<Body> {
    let mut response = text(StatusCode::TOO_MANY_REQUESTS, reason.to_owned());
    retry_after(&mut response, wait);
    response
}

/// The head of a response alone, which says how long the body would be.
pub(super) fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Either::Left(Bytes::new().into()))
}

/// Accepted, and nothing to say about it.
pub(super) fn accepted() -> Response<Body> {
    text(StatusCode::ACCEPTED, "")
}

/// The methods by which what is there is read.
pub(super) const READ: &str = "GET, HEAD";

/// Whether it is one of them.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// The wrong verb.
pub(super) fn not_allowed(allowed: &'static str) -> Response<Body> {
    not_allowed_as(allowed, "this method is not allowed here")
}

/// The same where there is more to say.
pub(super) fn not_allowed_as(allowed: &'static str, reason: &'static str) -> Response<Body> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, reason);
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// What the guard says.
pub(super) fn refused(refusal: Refusal) -> Response<Body> {
    let mut response = text(refusal.status, refusal.reason);
    if let Some(challenge) = refusal.challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    if let Some(wait) = refusal.wait {
        retry_after(&mut response, wait);
    }
    response
}
