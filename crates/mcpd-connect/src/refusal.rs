//! Responses with an error status: the JSON-RPC error in the body, or what the status stands for.

use std::time::Duration;

use mcpd_protocol::jsonrpc::{ErrorCode, ErrorObject, Message};
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

/// Maximum bytes read from the body.
const MAX_BODY: usize = 64 << 10;
/// Time limit for each piece of the body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of the body's excerpt in an error, in characters.
const MAX_WORDS: usize = 200;

/// Codes of errors about a session with status 400: those of SDKs, and an invalid request.
const SESSION_ERRORS: [i64; 3] = [-32000, -32001, -32600];

/// Response with an error status.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    error: Option<ErrorObject>,
    /// Readable beginning of the body.
    words: String,
}

impl Refusal {
    /// Reads a response.
    pub(crate) async fn read(mut response: Response) -> Self {
        let mut body = Vec::new();
        // A body that breaks off still has a status.
        while let Ok(Ok(Some(chunk))) = timeout(BODY_TIMEOUT, response.chunk()).await {
            let room = MAX_BODY - body.len();
            body.extend_from_slice(&chunk[..room.min(chunk.len())]);
            if body.len() == MAX_BODY {
                break;
            }
        }
        let error = match Message::decode(&body) {
            Ok(Message::Response(response)) => response.outcome.err(),
            _ => None,
        };
        let text = String::from_utf8_lossy(&body);
        // A page in HTML is useless in an error.
        let words = text.trim();
        let words = if words.starts_with('<') { "" } else { words };
        let words = words.chars().take(MAX_WORDS);
        Self {
            status: response.status(),
            error,
            words: words
                .map(|char| if char.is_control() { ' ' } else { char })
                .collect(),
        }
    }

    /// Returns whether it reports an unknown or expired session. Some servers do so with status
    /// 400; none of these statuses is for a message that was processed.
    pub(crate) fn is_of_session(&self) -> bool {
        let code = self.error.as_ref().map(|error| error.code);
        match self.status {
            // "When a client receives HTTP 404 in response to a request containing an
            // Mcp-Session-Id, it MUST start a new session" -- 2025-11-25/basic/transports. An
            // unknown method may have this status, too.
            StatusCode::NOT_FOUND | StatusCode::GONE => code != Some(ErrorCode::METHOD_NOT_FOUND),
            StatusCode::BAD_REQUEST => {
                let said = self.text().to_lowercase();
                let is_about_session = said.contains("session") || said.contains("not initialized");
                is_about_session && code.is_none_or(|code| SESSION_ERRORS.contains(&code.get()))
            }
            _ => false,
        }
    }

    /// Returns the words of the error, or of the body.
    fn text(&self) -> &str {
        let error = self.error.as_ref();
        error.map_or(&*self.words, |error| &*error.message)
    }

    /// Describes it for an operator.
    pub(crate) fn describe(&self) -> String {
        let words = self.text();
        let status = self.status;
        match words.is_empty() {
            true => format!("HTTP {status}"),
            false => format!("HTTP {status}: {words}"),
        }
    }

    /// Returns the answer to the request.
    pub(crate) fn into_error(self, place: &str) -> ErrorObject {
        let advice = match self.status {
            StatusCode::UNAUTHORIZED => "; check the token, or log in with `mcpd connect --login`",
            StatusCode::FORBIDDEN => "; these credentials do not permit it",
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => "; check the path of the URL",
            StatusCode::TOO_MANY_REQUESTS => "; try again later",
            _ => "",
        };
        let described = self.describe();
        self.error.unwrap_or_else(|| {
            ErrorObject::internal_error(format!("`{place}` answers {described}{advice}"))
        })
    }
}
