//! Export of a server's spans to an OpenTelemetry collector, if the environment names one. The
//! variables are those of OpenTelemetry; faults in them are logged, and stop nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use mcpd_server::ServerBuilder;
use opentelemetry::{KeyValue, global};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::SdkTracerProvider;

mod client;

use client::CollectorClient;

/// Timeout of an export; the default in the specification of the exporter.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the last spans at an orderly end.
pub(crate) const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Exporter of spans, if any is configured.
#[derive(Debug)]
pub(crate) struct Telemetry(Option<SdkTracerProvider>);

impl Telemetry {
    /// Starts the export that the environment configures. Must be called on a tokio runtime.
    pub(crate) fn start() -> Self {
        let environment = Environment::of_process();
        if !environment.wants_spans() {
            return Self(None);
        }
        let provider = provider(&environment);
        Self(
            provider
                .inspect_err(|error| tracing::warn!("span export is disabled: failed to {error:#}"))
                .inspect(|provider| global::set_tracer_provider(provider.clone()))
                .ok(),
        )
    }

    /// Enables spans in the server, if they are exported.
    pub(crate) fn enable_spans(&self, server: ServerBuilder) -> ServerBuilder {
        match &self.0 {
            Some(_) => server.spans(),
            None => server,
        }
    }

    /// Exports the remaining spans within `limit`.
    pub(crate) async fn shut_down(self, limit: Duration) {
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

fn provider(environment: &Environment) -> anyhow::Result<SdkTracerProvider> {
    environment.check()?;
    let client = CollectorClient::new(environment.timeout(), environment.is_encrypted());
    let client = client.context("create an HTTP client")?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .build()
        .context("create a span exporter")?;
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource(environment))
        .build())
}

/// Resource attributes of the spans.
fn resource(environment: &Environment) -> Resource {
    let resource = Resource::builder_empty()
        .with_service_name("mcpd")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
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

/// Variables of an environment. The libraries read those of the sampler,
/// the queue and the exporter.
struct Environment(BTreeMap<String, String>);

impl Environment {
    fn of_process() -> Self {
        let variables = std::env::vars_os();
        let texts = variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self(
            texts
                .filter(|(name, _)| name.starts_with("OTEL_"))
                .collect(),
        )
    }

    /// The first of these variables that is set. "The SDK MUST interpret an empty value of an
    /// environment variable the same way as when the variable is unset."
    fn get(&self, names: &[&str]) -> Option<&str> {
        let mut values = names.iter().filter_map(|name| self.0.get(*name));
        values.find(|value| !value.is_empty()).map(String::as_str)
    }

    /// Returns whether a variable enables the export. Unlike in the specification it is off by
    /// default: many clients start mcpd on a machine without a collector.
    fn wants_spans(&self) -> bool {
        let is_disabled = self.get(&["OTEL_SDK_DISABLED"]);
        if is_disabled.is_some_and(|disabled| disabled.eq_ignore_ascii_case("true")) {
            return false;
        }
        match self.get(&["OTEL_TRACES_EXPORTER"]) {
            Some(exporter) => exporter != "none",
            None => self.endpoint().is_some(),
        }
    }

    fn endpoint(&self) -> Option<&str> {
        self.get(&[
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        ])
    }

    /// Returns whether spans go over TLS. By default they go to this machine, without TLS.
    fn is_encrypted(&self) -> bool {
        let scheme = self
            .endpoint()
            .and_then(|endpoint| endpoint.split_once(':'));
        scheme.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
    }

    /// Finds settings that mcpd does not support.
    fn check(&self) -> anyhow::Result<()> {
        if let Some(exporter) = self.get(&["OTEL_TRACES_EXPORTER"])
            && exporter != "otlp"
        {
            bail!("export to `{exporter}`: only `otlp` is supported");
        }
        let protocol = self.get(&[
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ]);
        match protocol {
            Some(protocol) if protocol != "http/protobuf" => {
                bail!(
                    "use the protocol `{protocol}`: only `http/protobuf` is supported, which collectors accept on port 4318"
                )
            }
            _ => Ok(()),
        }
    }

    fn timeout(&self) -> Duration {
        let milliseconds = self.get(&[
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
            "OTEL_EXPORTER_OTLP_TIMEOUT",
        ]);
        let milliseconds = milliseconds.and_then(|milliseconds| milliseconds.parse().ok());
        milliseconds.map_or(EXPORT_TIMEOUT, Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks whether spans are exported in this environment, or the reason against it.
    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: Result<bool, &str>) {
        let variables = variables.iter();
        let owned = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment = Environment(owned.collect());
        let found = match environment.wants_spans() {
            true => environment.check().map(|()| true),
            false => Ok(false),
        };
        let found = found.map_err(|error| error.to_string());
        assert_eq!(
            found,
            expected.map_err(str::to_owned),
            "{:?}",
            environment.0
        );
    }

    #[test]
    fn span_export_follows_the_environment() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
        check(&[], Ok(false));
        check(&[endpoint], Ok(true));
        check(
            &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint.1)],
            Ok(true),
        );
        check(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], Ok(false));
        check(&[("OTEL_TRACES_EXPORTER", "otlp")], Ok(true));
        check(&[("OTEL_TRACES_EXPORTER", "none"), endpoint], Ok(false));
        check(&[("OTEL_SDK_DISABLED", "True"), endpoint], Ok(false));
        check(&[("OTEL_SDK_DISABLED", "false"), endpoint], Ok(true));
    }

    #[test]
    fn unsupported_settings_are_reported() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4317");
        check(
            &[("OTEL_TRACES_EXPORTER", "zipkin")],
            Err("export to `zipkin`: only `otlp` is supported"),
        );
        check(
            &[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            Err(
                "use the protocol `grpc`: only `http/protobuf` is supported, which collectors accept on port 4318",
            ),
        );
        check(
            &[
                endpoint,
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
                ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
            ],
            Ok(true),
        );
    }
}
