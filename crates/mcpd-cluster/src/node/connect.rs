//! Opens the connection: addresses, credentials, reconnection with backoff.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, ServerAddr};

use crate::error::Error;
use crate::settings::{Credentials, Settings};

/// Interval at which the client checks its connection; it gives up after three.
const PING_INTERVAL: Duration = Duration::from_secs(2);
/// Bounds of the pause before another attempt to connect.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(1);
/// Messages that wait for the connection.
const QUEUE: usize = 4096;

pub(super) async fn connect(settings: &Settings) -> Result<Client, Error> {
    let urls = settings.urls.iter();
    let servers = urls.map(|url| parse(url)).collect::<Result<Vec<_>, _>>()?;
    let reporter = Arc::new(Reporter::default());
    let options = options(settings).await?.retry_on_initial_connect();
    let options = options.event_callback(move |event| {
        reporter.report(&event);
        std::future::ready(())
    });
    options
        .connect(servers)
        .await
        .map_err(|error| Error::Connect(error.to_string()))
}

/// Parses the address of a server.
///
/// # Errors
///
/// It is none.
pub(super) fn parse(url: &str) -> Result<ServerAddr, Error> {
    url.parse().map_err(|error: std::io::Error| Error::Address {
        url: url.to_owned(),
        reason: error.to_string(),
    })
}

/// Returns the options of every connection.
pub(super) async fn options(settings: &Settings) -> Result<ConnectOptions, Error> {
    let mut options = ConnectOptions::new()
        .name(format!("mcpd {}", settings.node))
        .custom_inbox_prefix(format!("_INBOX.{}", settings.node))
        .ping_interval(PING_INTERVAL)
        .connection_timeout(Duration::from_secs(3))
        .max_reconnects(None)
        .client_capacity(QUEUE)
        .reconnect_delay_callback(backoff);
    if let Some(ca) = &settings.ca {
        options = options.add_root_certificates(ca.clone());
    }
    for credentials in &settings.credentials {
        options = add(options, credentials).await?;
    }
    Ok(options)
}

async fn add(options: ConnectOptions, credentials: &Credentials) -> Result<ConnectOptions, Error> {
    let fault = |path: &std::path::Path, source| Error::Credentials {
        path: path.to_owned(),
        source,
    };
    Ok(match credentials {
        Credentials::KeyFile(path) => {
            let seed = tokio::fs::read_to_string(path).await;
            let seed = seed.map_err(|source| fault(path, source))?;
            options.nkey(seed.trim().to_owned())
        }
        Credentials::CredentialsFile(path) => {
            let added = options.credentials_file(path).await;
            added.map_err(|source| fault(path, source))?
        }
        Credentials::Certificate { certificate, key } => {
            options.add_client_certificate(certificate.clone(), key.clone())
        }
    })
}

/// Exponential backoff.
fn backoff(attempts: usize) -> Duration {
    let doublings = u32::try_from(attempts).unwrap_or(u32::MAX).min(10);
    MAX_BACKOFF.min(MIN_BACKOFF * 2_u32.pow(doublings))
}

/// Log of the connection: a failure that goes on is reported once.
#[derive(Debug, Default)]
struct Reporter {
    has_reported: AtomicBool,
}

impl Reporter {
    fn report(&self, event: &Event) {
        match event {
            Event::Connected => {
                self.has_reported.store(false, Ordering::Relaxed);
                tracing::info!("connected with the cluster");
            }
            Event::Disconnected => tracing::warn!("the connection with the cluster is lost"),
            Event::ServerError(error) => {
                tracing::warn!(%error, "the server of the cluster complains");
            }
            Event::ClientError(error) if !self.has_reported.swap(true, Ordering::Relaxed) => {
                tracing::warn!(%error, "the cluster can't be reached; trying again");
            }
            Event::ClientError(error) => tracing::debug!(%error, "the cluster can't be reached"),
            Event::SlowConsumer(_) => tracing::warn!("messages of the cluster were dropped"),
            Event::LameDuckMode | Event::Draining | Event::Closed => {
                tracing::info!(%event, "the connection with the cluster changes");
            }
        }
    }
}
