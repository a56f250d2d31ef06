//! CORS: the preflight response to browsers, and the headers that let a web page read responses.
//! The guard has refused forbidden origins before.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderValue, ORIGIN, VARY,
};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};

use super::reply::{self, ResponseBody};

/// Cache lifetime of a preflight response, in seconds.
const PREFLIGHT_MAX_AGE: HeaderValue = HeaderValue::from_static("600");
/// Headers that a page may read.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");

/// Answers a preflight request, which has no token yet. An allowed page may send any header:
/// `Mcp-Param-*` cannot be listed.
pub(super) fn preflight(parts: &Parts) -> Option<Response<ResponseBody>> {
    let headers = &parts.headers;
    let is_preflight = parts.method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    is_preflight.then(|| {
        let mut response = reply::text(StatusCode::NO_CONTENT, "");
        let allowed = response.headers_mut();
        let methods = HeaderValue::from_static("GET, POST, DELETE");
        allowed.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        allowed.insert(ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE);
        if let Some(wanted) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            allowed.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        response
    })
}

/// Lets the page at `origin` read a response.
pub(super) fn allow(response: &mut Response<ResponseBody>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.insert(VARY, HeaderValue::from_static("Origin"));
}
