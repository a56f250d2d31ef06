//! Metrics endpoint: on a separate listener, which serves nothing else and needs no token, or
//! beside the clients.

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Response, StatusCode};

use super::reply::{self, ResponseBody};
use super::router::Router;
use super::{Auth, Listener, Options};
use crate::policy::principal::Principal;
use crate::server::Server;
use crate::server::error::Error;

/// Path of the metrics.
pub(super) const PATH: &str = "/metrics";
/// Maximum number of connections: collectors are few, and the descriptors are for clients.
const MAX_CONNECTIONS: usize = 64;

/// Serves the metrics at `/metrics`, and nothing else, until the server stops. Accepts the Hosts
/// of loopback names, the listening address and `allowed_hosts`.
///
/// # Errors
///
/// The listener fails permanently.
///
/// # Cancel safety
///
/// Dropping the future closes the listener and every connection.
pub async fn serve_metrics(
    server: &Server,
    listener: impl Into<Listener>,
    allowed_hosts: Vec<String>,
) -> Result<(), Error> {
    let listener = listener.into();
    let mut options = Options::new(Auth::without_credentials(Principal::anonymous()));
    options.allowed_hosts = allowed_hosts;
    options.max_connections = MAX_CONNECTIONS;
    let router = Router::new(server.clone(), &options, &listener);
    super::accept(listener, router.only_metrics()).await
}

/// Responds with the current metrics.
pub(super) fn answer(server: &Server, method: &Method) -> Response<ResponseBody> {
    if !reply::is_read(method) {
        return reply::not_allowed(reply::READ_METHODS);
    }
    let mut response = reply::json(StatusCode::OK, server.metrics_text());
    response.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"),
    );
    response
}
