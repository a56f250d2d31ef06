//! Servers over Streamable HTTP. Credentials go where they were meant to go, and to no other
//! origin.

use std::time::Duration;

use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use self::client::Client;
use super::reader::Reader;
use crate::address::Address;
use crate::link;
use crate::listener::Listener;
use crate::words;

mod client;
mod events;
mod redirect;
mod response;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How many requests may be on their way that are no caller's: what there is, whether the server is there. They wait for no
/// turn, and a server that is busy is not to be taken for one that hangs.
const OWN_REQUESTS: usize = 8;

pub(super) fn transport(
    address: &Address,
    reader: Reader,
    listener: &Listener,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    // Whoever embeds this may have chosen another already, and that is as good.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let client = reqwest::Client::builder()
        .default_headers(address.headers.clone())
        .connect_timeout(CONNECT)
        // They are followed here: as the library does it, a message may get lost on the way.
        .redirect(Policy::none())
        // A server that is started anew has closed what it had, and a request that finds out can't be made again.
        .pool_max_idle_per_host(0);
    // A system without authorities, which could vouch for nobody, can still speak to its own.
    let client = match address.url.scheme() {
        "http" => client.tls_certs_only([]),
        _ => client,
    };
    let client = client
        .build()
        .map_err(|error| format!("can't be connected with: {}", words::chain(&error)))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
        .max_concurrent_requests(link::MOST_AT_A_TIME + OWN_REQUESTS);
    if let Some(token) = &address.token {
        config = config.auth_header(token);
    }
    let client = Client::new(client, reader, listener);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}
