//! Conversions between the types of two crates with equal JSON, optionally redacted, and from
//! errors to sentences.

use std::error::Error;
use std::fmt::Write as _;

use mcpd_server::source::Secrets;
use rmcp::service::ServiceError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Converts a value to another crate's type.
///
/// # Errors
///
/// Returns the fault of the part that has no counterpart.
pub(crate) fn convert<T: DeserializeOwned>(value: &impl Serialize) -> Result<T, String> {
    convert_redacted(&Secrets::default(), value)
}

/// Converts a value to another crate's type, with these secrets redacted.
///
/// # Errors
///
/// Returns the fault of the part that has no counterpart.
pub(crate) fn convert_redacted<T: DeserializeOwned>(
    secrets: &Secrets,
    value: &impl Serialize,
) -> Result<T, String> {
    let json = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    let json = secrets.redact_json(json);
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}

/// Returns the reason why a request failed. The types of the transport are left out.
pub(crate) fn reason(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => chain(&*error.error),
        error => chain(error),
    }
}

/// Joins an error and all its causes.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    // The `source` of this error does not include its cause.
    let error = match error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::Client(cause)) => cause,
        _ => error,
    };
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        // Some errors repeat their cause.
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        source = cause.source();
    }
    text
}
