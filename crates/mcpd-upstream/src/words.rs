//! Between the types of two crates, which are the same JSON, with secrets and without, and from errors to sentences.

use std::error::Error;
use std::fmt::Write as _;

use mcpd_server::source::Secrets;
use rmcp::service::ServiceError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The same in the words of another crate.
///
/// # Errors
///
/// What in it the other has no words for.
pub(crate) fn translated<T: DeserializeOwned>(value: &impl Serialize) -> Result<T, String> {
    redacted(&Secrets::default(), value)
}

/// The same without these secrets.
///
/// # Errors
///
/// What in it the other has no words for.
pub(crate) fn redacted<T: DeserializeOwned>(
    secrets: &Secrets,
    value: &impl Serialize,
) -> Result<T, String> {
    let json = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    let json = secrets.redact_json(json);
    serde_json::from_slice(&json).map_err(|error| error.to_string())
}

/// Why a request failed. Which transport it was made over, by all its types, is nobody's concern.
pub(crate) fn why(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportSend(error) => chain(&*error.error),
        error => chain(error),
    }
}

/// An error and all its causes.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    // This one names its cause to nobody.
    let error = match error.downcast_ref() {
        Some(StreamableHttpError::<reqwest::Error>::Client(cause)) => cause,
        _ => error,
    };
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let said = cause.to_string();
        // Some repeat what they were caused by.
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        source = cause.source();
    }
    text
}
