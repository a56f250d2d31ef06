//! Variables of OpenTelemetry in the environment of the process, as far as the libraries do not
//! read them: the wish for spans, the address, the time limit.

use std::collections::BTreeMap;
use std::time::Duration;

/// Timeout of an export; the default in the specification of the exporter.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Variables of an environment. The libraries read those of the sampler,
/// the queue and the exporter.
pub(crate) struct Environment(BTreeMap<String, String>);

impl Environment {
    pub(crate) fn of_process() -> Self {
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
    pub(crate) fn get(&self, names: &[&str]) -> Option<&str> {
        let mut values = names.iter().filter_map(|name| self.0.get(*name));
        values.find(|value| !value.is_empty()).map(String::as_str)
    }

    /// Returns whether a variable enables the export. Unlike in the specification it is off by
    /// default: many programs are started on a machine without a collector.
    pub(crate) fn wants_spans(&self) -> bool {
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
    pub(crate) fn is_encrypted(&self) -> bool {
        let scheme = self
            .endpoint()
            .and_then(|endpoint| endpoint.split_once(':'));
        scheme.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("https"))
    }

    /// Finds settings that are not supported.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(exporter) = self.get(&["OTEL_TRACES_EXPORTER"])
            && exporter != "otlp"
        {
            return Err(format!("export to `{exporter}`: only `otlp` is supported"));
        }
        let protocol = self.get(&[
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
        ]);
        match protocol {
            Some(protocol) if protocol != "http/protobuf" => Err(format!(
                "use the protocol `{protocol}`: only `http/protobuf` is supported, which collectors accept on port 4318"
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn timeout(&self) -> Duration {
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
