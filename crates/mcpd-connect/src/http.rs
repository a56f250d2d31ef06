//! HTTP client of the bridge: sends one request with the headers of the target, and follows
//! redirects within the origin. A redirect elsewhere is a fault: credentials never leave it.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Method, Request, Response, StatusCode, Url};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, chain};
use crate::target::{Target, is_loopback, place};

/// Time limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval of probes that find out whether the other end of a silent connection is alive.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// Maximum number of redirects followed for one request.
const MAX_REDIRECTS: usize = 5;

/// HTTP request apart from the headers of the target.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
    /// Ends the wait for a server that is down.
    pub(crate) cancelled: Option<CancellationToken>,
}

impl Outgoing {
    /// Makes the request that posts a message.
    pub(crate) fn post(message: Bytes) -> Self {
        Self {
            method: Method::POST,
            headers: HeaderMap::new(),
            body: Some(message),
            cancelled: None,
        }
    }

    /// Makes a request without a body.
    pub(crate) fn bare(method: Method) -> Self {
        Self {
            method,
            headers: HeaderMap::new(),
            body: None,
            cancelled: None,
        }
    }

    /// Waits for a server that is down until `cancelled`.
    pub(crate) fn until(mut self, cancelled: CancellationToken) -> Self {
        self.cancelled = Some(cancelled);
        self
    }

    /// Adds headers.
    pub(crate) fn with(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }
}

/// Reason why there is no response.
#[derive(Debug)]
pub(crate) struct SendFault {
    /// The server is not reachable now, and has received nothing.
    pub(crate) is_outage: bool,
    pub(crate) reason: String,
}

impl SendFault {
    fn of(error: reqwest::Error) -> Self {
        Self {
            is_outage: error.is_connect() && is_outage(&error),
            reason: chain(&error.without_url()),
        }
    }

    fn lasting(reason: String) -> Self {
        Self {
            is_outage: false,
            reason,
        }
    }
}

/// HTTP client for one server.
#[derive(Debug)]
pub(crate) struct HttpClient {
    client: Client,
    pub(crate) target: Target,
}

impl HttpClient {
    /// Creates a client.
    ///
    /// # Errors
    ///
    /// Fails if credentials would be sent in plain text, or the certificate authorities of the
    /// system can't be read.
    pub(crate) fn new(target: Target) -> Result<Self, Error> {
        target.check_transport()?;
        let builder = builder(&target.url);
        #[cfg(unix)]
        let builder = match &target.socket {
            Some(socket) => builder.unix_socket(socket.as_path()),
            None => builder,
        };
        let client = builder.build();
        let client = client.map_err(|error| Error::Client(chain(&error)))?;
        Ok(Self { client, target })
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// Returns the reason why there is no response.
    pub(crate) async fn send(
        &self,
        outgoing: &Outgoing,
        token: Option<&HeaderValue>,
    ) -> Result<Response, SendFault> {
        let mut request = self.build(outgoing, token).map_err(SendFault::of)?;
        for _ in 0..=MAX_REDIRECTS {
            let next = request.try_clone();
            let from = request.url().clone();
            let response = self.client.execute(request).await.map_err(SendFault::of)?;
            let Some(to) = redirect_target(&response, &from) else {
                return Ok(response);
            };
            let next = next.filter(|_| to.origin() == from.origin() && keeps_method(&response));
            let Some(mut next) = next else {
                let status = response.status().as_u16();
                return Err(SendFault::lasting(format!(
                    "HTTP {status} redirects to `{}`; connect to that URL if it is the intended one",
                    place(&to)
                )));
            };
            *next.url_mut() = to;
            request = next;
        }
        Err(SendFault::lasting(format!(
            "more than {MAX_REDIRECTS} redirects"
        )))
    }

    fn build(&self, outgoing: &Outgoing, token: Option<&HeaderValue>) -> reqwest::Result<Request> {
        let Target { url, headers, .. } = &self.target;
        let accepted = match outgoing.body {
            Some(_) => "application/json, text/event-stream",
            None => "text/event-stream",
        };
        let mut request = self.client.request(outgoing.method.clone(), url.clone());
        request = request.header(ACCEPT, accepted);
        if let Some(body) = &outgoing.body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.clone());
        }
        let mut request = request.build()?;
        let all = request.headers_mut();
        for (name, value) in headers.iter().chain(&outgoing.headers) {
            all.append(name, value.clone());
        }
        if let Some(token) = token.or(self.target.token.as_ref()) {
            all.insert(AUTHORIZATION, token.clone());
        }
        Ok(request)
    }
}

/// Returns the common settings of clients for a URL.
pub(crate) fn builder(url: &Url) -> ClientBuilder {
    // The embedding program may have installed a provider already, which serves as well.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    let builder = Client::builder()
        .user_agent(concat!("mcpd-connect/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEPALIVE_INTERVAL)
        // Redirects are followed here, because the library may drop the message on the way.
        .redirect(Policy::none())
        // A restarted server has closed its connections, and a request that fails on a stale one
        // can't be repeated safely.
        .pool_max_idle_per_host(0);
    let builder = match is_loopback(url) {
        true => builder.no_proxy(),
        false => builder,
    };
    // Plain HTTP needs no certificate authorities, so that it works on a system without any.
    match url.scheme() {
        "http" => builder.tls_certs_only([]),
        _ => builder,
    }
}

/// Returns whether a failed connection may succeed later. An unknown host and a faulty certificate
/// are reported at once.
fn is_outage(error: &reqwest::Error) -> bool {
    if error.is_timeout() {
        return true;
    }
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            let is_passing = matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkDown
                    | io::ErrorKind::NetworkUnreachable
                    // The socket of a server that has not started.
                    | io::ErrorKind::NotFound
                    | io::ErrorKind::TimedOut
            );
            if is_passing {
                return true;
            }
        }
        source = cause.source();
    }
    false
}

/// Returns the target of a redirect.
fn redirect_target(response: &Response, from: &Url) -> Option<Url> {
    if !response.status().is_redirection() {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    from.join(location).ok()
}

/// Returns whether the redirect asks for the same request at the new location, rather than for a
/// `GET` of its result.
fn keeps_method(response: &Response) -> bool {
    matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    )
}
