//! Listener of the metrics, if they have an address of their own.

use std::net::SocketAddr;

use anyhow::Context as _;
use mcpd_server::Server;
use mcpd_server::transport::http;
use tokio::net::{TcpListener, lookup_host};

use super::check_metrics_exposure;

/// Listener of the metrics endpoint.
#[derive(Debug)]
pub struct Metrics {
    listener: TcpListener,
    address: SocketAddr,
}

impl Metrics {
    /// Listens at `address`. Metrics need no token, so the address must be
    /// reachable from this machine alone.
    ///
    /// # Errors
    ///
    /// It is not, or can't be used.
    pub async fn listen(address: &str) -> anyhow::Result<Self> {
        let doing = || format!("serve metrics at `{address}`");
        let addresses: Vec<_> = lookup_host(address).await.with_context(doing)?.collect();
        check_metrics_exposure(address, &addresses)?;
        let listener = TcpListener::bind(&addresses[..])
            .await
            .with_context(doing)?;
        let address = listener.local_addr().with_context(doing)?;
        Ok(Self { listener, address })
    }

    /// URL of the metrics.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Serves the metrics until the server stops.
    ///
    /// # Errors
    ///
    /// The listener fails.
    pub async fn serve(self, server: &Server) -> Result<(), mcpd_server::Error> {
        http::serve_metrics(server, self.listener, Vec::new()).await
    }
}
