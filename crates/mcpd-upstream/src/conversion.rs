//! Conversions between the types of two crates with equal JSON, optionally redacted, and from
//! errors to sentences.

use std::error::Error;
use std::fmt::Write as _;
use std::io;

use mcpd_server::source::Secrets;
use rmcp::service::ServiceError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Question behind a fault that a wrong path gives.
const WRONG_URL: &str = "; is the URL that of its MCP endpoint?";

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

/// Describes an error with its causes; one of HTTP by what happened, and by what may help.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref() {
        Some(fault) => http_fault(fault),
        None => join(error),
    }
}

fn http_fault(fault: &StreamableHttpError<reqwest::Error>) -> String {
    match fault {
        StreamableHttpError::Client(error) => client_fault(error),
        StreamableHttpError::AuthRequired(_) => {
            "it wants a token, or another one (HTTP 401)".to_owned()
        }
        StreamableHttpError::UnexpectedServerResponse(what) => match &**what {
            what if what.starts_with("HTTP 404") => format!("{what}{WRONG_URL}"),
            what => what.to_owned(),
        },
        StreamableHttpError::HttpStatus(error) if matches!(error.status, 404 | 405) => {
            format!("HTTP {}{WRONG_URL}", error.status)
        }
        StreamableHttpError::UnexpectedContentType(kind) => {
            let kind = kind.as_deref().unwrap_or("no content type");
            format!("the answer has the content type `{kind}`{WRONG_URL}")
        }
        fault => join(fault),
    }
}

/// Describes a failure to send a request or to read its response by its first cause.
fn client_fault(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "it did not respond in time".to_owned();
    }
    let mut causes = vec![error as &(dyn Error + 'static)];
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause);
        next = cause.source();
    }
    let refused = |cause: &&(dyn Error + 'static)| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    if causes.iter().any(refused) {
        return "connection refused; is the server running?".to_owned();
    }
    let not_tls = |cause: &&(dyn Error + 'static)| {
        matches!(cause.downcast_ref(), Some(rustls::Error::InvalidMessage(_)))
    };
    if causes.iter().any(not_tls) {
        return "it does not speak TLS; is the URL `http`?".to_owned();
    }
    let first = causes.last().map(ToString::to_string);
    first.unwrap_or_default()
}

/// Joins an error and all its causes.
fn join(error: &(dyn Error + 'static)) -> String {
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
