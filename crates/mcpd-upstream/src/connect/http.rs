//! Servers over Streamable HTTP. Credentials are sent to the configured origin only.

use std::time::Duration;

use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use self::client::HttpClient;
use super::reader::Reader;
use crate::address::Address;
use crate::conversion;
use crate::link;
use crate::listener::Listener;

mod client;
mod events;
mod redirect;
mod response;

pub(super) use self::response::is_unauthorized;

/// Time limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Extra concurrency for mcpd's own requests, such as lists and liveness checks. They bypass the
/// queue of the callers, so that a busy server is not taken for a dead one.
const MAX_OWN_REQUESTS: usize = 8;

pub(super) fn transport(
    address: &Address,
    reader: Reader,
    listener: &Listener,
) -> Result<StreamableHttpClientTransport<HttpClient>, String> {
    // The embedding program may have installed a provider already, which serves as well.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let client = reqwest::Client::builder()
        .default_headers(address.headers.clone())
        .connect_timeout(CONNECT_TIMEOUT)
        // Redirects are followed by this crate, because the library may drop the message on the
        // way.
        .redirect(Policy::none())
        // A restarted server has closed its connections, and a request that fails on a stale one
        // can't be repeated safely.
        .pool_max_idle_per_host(0);
    // Plain HTTP needs no certificate authorities, so that it works on a system without any.
    let client = match address.url.scheme() {
        "http" => client.tls_certs_only([]),
        _ => client,
    };
    let client = client
        .build()
        .map_err(|error| format!("failed to connect: {}", conversion::chain(&error)))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .max_concurrent_requests(link::MAX_CONCURRENT_REQUESTS + MAX_OWN_REQUESTS);
    if let Some(token) = &address.token {
        config = config.auth_header(token);
    }
    let client = HttpClient::new(client, reader, listener);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
