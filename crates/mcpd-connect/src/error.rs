//! Errors of the bridge: faulty settings, and failed logins. None of them shows a secret.

use std::io;

/// Reason why a bridge can't be built, or a login fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL is unusable.
    #[error("use the URL `{url}`: {reason}")]
    Url {
        /// URL, without its query and user information.
        url: String,
        /// Fault of the URL.
        reason: &'static str,
    },
    /// A header is unusable. Its value is not shown, as it may be a secret.
    #[error("use the header `{name}`: {reason}")]
    Header {
        /// Name of the header.
        name: String,
        /// Fault of the header.
        reason: &'static str,
    },
    /// The token can't be part of a header.
    #[error("use the token: it must be one word of printable ASCII characters")]
    Token,
    /// Credentials would cross a network without encryption.
    #[error(
        "send credentials to `{0}`: `http` is not encrypted; use `https`, or `--allow-http` if \
         the network is trusted"
    )]
    Plaintext(String),
    /// The HTTP client can't be created.
    #[error("create an HTTP client: {0}")]
    Client(String),
    /// The server can't be reached.
    #[error("reach `{place}`: {reason}")]
    Unreachable {
        /// URL, without its query.
        place: String,
        /// Reason why there is no answer.
        reason: String,
    },
    /// The server does not accept the token.
    #[error("open `{0}`: the server does not accept the token")]
    Unauthorized(String),
    /// The server gives no link to its console.
    #[error("open `{place}`: {reason}")]
    Console {
        /// URL of the console.
        place: String,
        /// Answer of the server, in words.
        reason: String,
    },
    /// A login failed.
    #[error("log in at `{place}`: {reason}")]
    Login {
        /// URL of the server, without its query.
        place: String,
        /// Description of the failed step.
        reason: String,
    },
    /// Stored logins can't be read or removed.
    #[error("use the stored logins in `{directory}`")]
    Store {
        /// Directory of the logins.
        directory: String,
        /// Fault of the file system.
        source: io::Error,
    },
}

/// Returns the message of an error with those of its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text += &format!(": {cause_text}");
        }
        source = cause.source();
    }
    text
}
