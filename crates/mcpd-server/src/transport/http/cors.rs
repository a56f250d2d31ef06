//! What a browser asks before a web page may call, and wants to hear with every answer. Which pages may,
//! the guard has decided: none gets here that is not allowed.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use super::reply::{self, Body};

/// How long a browser may remember the answer, in seconds.
const REMEMBERED: HeaderValue = HeaderValue::from_static("600");
/// What a page may read besides the body.
const READABLE: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");

/// The answer to a browser that asks whether a page may send a request; it has no token yet. A page that is
/// allowed may send what it likes, `Mcp-Param-*` included, which no list could name.
pub(super) fn preflight(parts: &Parts) -> Option<Response<Body>> {
    let headers = &parts.headers;
    let is_preflight = parts.method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    is_preflight.then(|| {
        let mut response = reply::text(StatusCode::NO_CONTENT, "");
        let allowed = response.headers_mut();
        let methods = HeaderValue::from_static("GET, POST, DELETE");
        allowed.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        allowed.insert(ACCESS_CONTROL_MAX_AGE, REMEMBERED);
        if let Some(wanted) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            allowed.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        response
    })
}

/// Lets the page at `origin` read a response.
pub(super) fn allow(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, READABLE);
    headers.insert(VARY, HeaderValue::from_static("Origin"));
}
