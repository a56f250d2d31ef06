//! Shapes of HTTP responses: one JSON body, an event stream, or a status with a reason.

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
use super::guard::GuardRefusal;
use super::pieces::Pieces;
use crate::limits::rate_limit;
use crate::message::reply::MethodResult;

/// Body of every response.
pub(super) type ResponseBody = Either<Pieces, Events>;

/// JSON-RPC response, and the HTTP status for the case that it is the whole response.
#[derive(Debug)]
pub(super) struct WholeResponse {
    pub(super) message: Pieces,
    status: StatusCode,
    /// Time to wait before a retry.
    wait: Option<Duration>,
}

impl WholeResponse {
    pub(super) fn ok(message: impl Into<Pieces>) -> Self {
        Self {
            message: message.into(),
            status: StatusCode::OK,
            wait: None,
        }
    }

    /// Builds the response to a request, with the status that an error has on its wire.
    pub(super) fn new(
        id: &RequestId,
        result: MethodResult,
        status_of: fn(&ErrorObject) -> StatusCode,
    ) -> Self {
        match result {
            Ok(result) => Self::ok(Pieces::response(id, result)),
            Err(error) => Self::error(status_of(&error), Some(id), &error),
        }
    }

    /// Builds an error. One with a retry delay becomes a 429 with the header `Retry-After`.
    pub(super) fn error(status: StatusCode, id: Option<&RequestId>, error: &ErrorObject) -> Self {
        let wait = rate_limit::suggested_delay(error);
        Self {
            message: jsonrpc::error_response(id, error).into(),
            status: wait.map_or(status, |_| StatusCode::TOO_MANY_REQUESTS),
            wait,
        }
    }
}

impl From<WholeResponse> for Response<ResponseBody> {
    fn from(whole: WholeResponse) -> Self {
        let mut response = json(whole.status, whole.message);
        if let Some(wait) = whole.wait {
            retry_after(&mut response, wait);
        }
        response
    }
}

/// Responds with one JSON value.
pub(super) fn json(status: StatusCode, body: impl Into<Pieces>) -> Response<ResponseBody> {
    let mut response = Response::new(Either::Left(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Responds with a JSON-RPC error.
pub(super) fn error(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &ErrorObject,
) -> Response<ResponseBody> {
    WholeResponse::error(status, id, error).into()
}

fn retry_after(response: &mut Response<ResponseBody>, wait: Duration) {
    let seconds = HeaderValue::from(wait.as_secs() + 1);
    response.headers_mut().insert(RETRY_AFTER, seconds);
}

/// Responds with an event stream.
pub(super) fn events(events: Events) -> Response<ResponseBody> {
    let mut response = Response::new(Either::Right(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Tells proxies not to buffer, which would hold progress back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Mark of a response without an end: a client that has closed its sending side counts as gone.
#[derive(Debug, Clone, Copy)]
pub(super) struct WithoutEnd;

/// Marks a response as one [without an end](WithoutEnd).
pub(super) fn without_end(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    response.extensions_mut().insert(WithoutEnd);
    response
}

/// Response to a request that is refused before it is dispatched.
pub(super) type RefusedResponse = Box<Response<ResponseBody>>;

/// Responds with a status and a reason for people.
pub(super) fn text(status: StatusCode, reason: impl Into<Bytes>) -> Response<ResponseBody> {
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

/// Responds with 429 to a call, for a client without JSON-RPC.
pub(super) fn too_many(reason: &str, wait: Duration) -> Response<ResponseBody> {
    let mut response = text(StatusCode::TOO_MANY_REQUESTS, reason.to_owned());
    retry_after(&mut response, wait);
    response
}

/// Removes the body and keeps the head, with its length (for `HEAD`).
pub(super) fn without_body(response: Response<ResponseBody>) -> Response<ResponseBody> {
    let (mut head, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        head.headers.insert(CONTENT_LENGTH, length.into());
    }
    Response::from_parts(head, Either::Left(Bytes::new().into()))
}

/// Responds with 202 and no body.
pub(super) fn accepted_response() -> Response<ResponseBody> {
    text(StatusCode::ACCEPTED, "")
}

/// Methods that read.
pub(super) const READ_METHODS: &str = "GET, HEAD";

/// Returns whether the method reads.
pub(super) fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// Responds to a method that is not allowed.
pub(super) fn not_allowed(allowed: &'static str) -> Response<ResponseBody> {
    not_allowed_as(allowed, "method not allowed")
}

/// Responds to a method that is not allowed, with a specific reason.
pub(super) fn not_allowed_as(
    allowed: &'static str,
    reason: &'static str,
) -> Response<ResponseBody> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, reason);
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

/// Responds with a refusal of the guard.
pub(super) fn guard_refusal(refusal: GuardRefusal) -> Response<ResponseBody> {
    let mut response = text(refusal.status, refusal.reason);
    if let Some(challenge) = refusal.challenge {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    if let Some(wait) = refusal.wait {
        retry_after(&mut response, wait);
    }
    response
}
