//! HTTP client of the span exporter. It logs once when exports begin to fail, and
//! once when they succeed again.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::redirect::Policy;
use tokio::runtime::Handle;

/// Connection to a collector.
#[derive(Debug)]
pub(crate) struct CollectorClient {
    client: reqwest::Client,
    /// The exporter has a thread of its own, and the client needs a runtime.
    runtime: Handle,
    is_failing: AtomicBool,
}

impl CollectorClient {
    /// Creates a client with this `timeout`, for a collector that is `encrypted` or not. Must be
    /// called on a tokio runtime.
    pub(crate) fn new(timeout: Duration, encrypted: bool) -> reqwest::Result<Self> {
        // Another part of the program may have installed it already.
        rustls::crypto::ring::default_provider()
            .install_default()
            .ok();
        let client = reqwest::Client::builder()
            .timeout(timeout)
            // The headers may be credentials, and must not reach another host.
            .redirect(Policy::none());
        // A system without certificate authorities, which could verify no peer, can still use a
        // local collector.
        let client = match encrypted {
            true => client,
            false => client.tls_certs_only([]),
        };
        Ok(Self {
            client: client.build()?,
            runtime: Handle::current(),
            is_failing: AtomicBool::new(false),
        })
    }

    fn tell(&self, fault: Option<&str>) {
        let was_failing = self.is_failing.swap(fault.is_some(), Ordering::Relaxed);
        match fault {
            Some(fault) if !was_failing => {
                tracing::warn!(
                    "span collector {fault}; spans are lost until it accepts them again"
                );
            }
            None if was_failing => tracing::info!("span collector accepts spans again"),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        let request = request.try_into()?;
        let answered = self
            .runtime
            .spawn(async move { client.execute(request).await });
        let answer = answered.await?.inspect_err(|error| {
            self.tell(Some(&format!("is unreachable: {}", cause(error))));
        })?;
        let status = answer.status();
        let fault = format!("responds with status {}", status.as_u16());
        self.tell(Some(fault.as_str()).filter(|_| !status.is_success()));
        // The exporter needs no more of the answer.
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = status;
        *response.headers_mut() = answer.headers().clone();
        Ok(response)
    }
}

/// Root cause of an error. Its outer messages repeat the address, which may contain a password.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
