//! Export of a program's spans to an [OpenTelemetry](https://opentelemetry.io) collector, if the
//! environment names one.
//!
//! Libraries make spans with the crate `opentelemetry`; the program decides where they go. Here the
//! operator does, with the variables of the specification: faults in them are logged and stop
//! nothing, a collector that is down costs spans and nothing else, and both its failure and its
//! recovery are logged once.
//!
//! ```
//! use mcpd_telemetry::{FLUSH_TIMEOUT, Telemetry};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let telemetry = Telemetry::start("my-server", env!("CARGO_PKG_VERSION"));
//! if telemetry.is_exporting() {
//!     println!("spans go to the collector of OTEL_EXPORTER_OTLP_ENDPOINT");
//! }
//! // Serves, with spans of the global tracer provider …
//! telemetry.shut_down(FLUSH_TIMEOUT).await;
//! # }
//! ```
//!
//! Spans go over HTTP, as protocol buffers. Unlike in the specification the export is off by
//! default: an endpoint, or `OTEL_TRACES_EXPORTER=otlp`, turns it on.
//!
//! # Stability
//!
//! Before 1.0 a minor version may break; that of OpenTelemetry counts as part of it. The minimum
//! supported Rust version is 1.95.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod client;
mod environment;

use std::time::Duration;

use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::SdkTracerProvider;

use self::client::CollectorClient;
use self::environment::Environment;

/// Timeout for the last spans at an orderly end without haste.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Exporter of spans, if any is configured.
#[derive(Debug)]
pub struct Telemetry(Option<SdkTracerProvider>);

impl Telemetry {
    /// Starts the export that the environment configures, for a service of this name, unless the
    /// environment names it, and version. Must be called on a tokio runtime.
    #[must_use]
    pub fn start(service: &'static str, version: &'static str) -> Self {
        let environment = Environment::of_process();
        if !environment.wants_spans() {
            return Self(None);
        }
        let provider = provider(&environment, resource(&environment, service, version));
        Self(
            provider
                .inspect_err(|error| tracing::warn!("span export is disabled: failed to {error}"))
                .inspect(|provider| global::set_tracer_provider(provider.clone()))
                .ok(),
        )
    }

    /// Returns whether spans are exported, so that a program need not make them otherwise.
    #[must_use]
    pub fn is_exporting(&self) -> bool {
        self.0.is_some()
    }

    /// Exports the remaining spans within `limit`.
    ///
    /// # Cancel safety
    ///
    /// A thread goes on with the export until the limit.
    pub async fn shut_down(self, limit: Duration) {
        let Some(provider) = self.0 else { return };
        let farewell = move || provider.shutdown_with_timeout(limit);
        // A blocking thread waits, because the runtime must go on talking to the collector.
        match tokio::task::spawn_blocking(farewell).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!("failed to export the last spans: {error}"),
            Err(error) => tracing::debug!("failed to export the last spans: {error}"),
        }
    }
}

/// Creates the provider of tracers.
///
/// # Errors
///
/// Failed step, and its cause.
fn provider(environment: &Environment, resource: Resource) -> Result<SdkTracerProvider, String> {
    environment.check()?;
    let client = CollectorClient::new(environment.timeout(), environment.is_encrypted());
    let client = client.map_err(|error| format!("create an HTTP client: {error}"))?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .build()
        .map_err(|error| format!("create a span exporter: {error}"))?;
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .build())
}

/// Resource attributes of the spans.
fn resource(environment: &Environment, service: &'static str, version: &'static str) -> Resource {
    let resource = Resource::builder_empty()
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.version", version))
        .with_detectors(&[
            Box::new(TelemetryResourceDetector),
            Box::new(EnvResourceDetector::new()),
        ]);
    match environment.get(&["OTEL_SERVICE_NAME"]) {
        Some(name) => resource.with_service_name(name.to_owned()),
        None => resource,
    }
    .build()
}
