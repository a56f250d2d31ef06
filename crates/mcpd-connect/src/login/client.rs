//! HTTP client for authorization servers: bounded in size and time, without redirects, and only
//! with encryption, unless everything is on this machine.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{RequestBuilder, StatusCode, Url};
use serde_json::Value;

use super::grant::Tokens;
use crate::error::chain;
use crate::http;
use crate::target::{is_loopback, place};

/// Maximum size of a response, in bytes.
const MAX_BODY: usize = 256 << 10;
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of a server's own words in an error, in characters.
const MAX_WORDS: usize = 200;

/// HTTP client.
#[derive(Debug)]
pub(super) struct AuthClient {
    /// The MCP server is on this machine, so its authorization server may be, too.
    is_local: bool,
}

impl AuthClient {
    pub(super) fn new(is_local: bool) -> Self {
        Self { is_local }
    }

    /// Checks a URL that a server has named.
    ///
    /// # Errors
    ///
    /// Returns the reason why it is not used.
    pub(super) fn check_url(&self, url: &str) -> Result<Url, String> {
        let shown: String = url.escape_debug().take(MAX_WORDS).collect();
        let parsed = Url::parse(url).map_err(|_| format!("`{shown}` is not a URL"))?;
        let is_safe = match parsed.scheme() {
            "https" => parsed.has_host() && (self.is_local || !is_loopback(&parsed)),
            "http" => self.is_local && is_loopback(&parsed),
            _ => false,
        };
        let has_secret = !parsed.username().is_empty() || parsed.password().is_some();
        match is_safe && !has_secret && parsed.fragment().is_none() {
            true => Ok(parsed),
            false => Err(format!(
                "`{shown}` is not used: expected an `https` URL of another machine, or, for a \
                 server on this machine, one on it"
            )),
        }
    }

    /// Fetches JSON; none if there is no such page.
    pub(super) async fn get(&self, url: &Url) -> Result<Option<Value>, String> {
        let client = build(url)?;
        let (status, body) = exchange(url, client.get(url.clone())).await?;
        match status {
            StatusCode::OK => parse(url, &body).map(Some),
            status if status.is_client_error() => Ok(None),
            status => Err(format!("`{}` answers HTTP {status}", place(url))),
        }
    }

    /// Posts JSON.
    pub(super) async fn post_json(&self, url: &Url, value: &Value) -> Result<Value, String> {
        let client = build(url)?;
        let request = client.post(url.clone());
        let request = request.header(CONTENT_TYPE, "application/json");
        let (status, body) = exchange(url, request.body(value.to_string())).await?;
        let answer = parse(url, &body);
        match status.is_success() {
            true => answer,
            false => Err(describe_error(url, status, &answer.unwrap_or_default())),
        }
    }

    /// Requests tokens with a form.
    pub(super) async fn request_token(
        &self,
        endpoint: &str,
        fields: &[(&str, &str)],
    ) -> Result<Tokens, String> {
        let url = self.check_url(endpoint)?;
        let client = build(&url)?;
        let request = client.post(url.clone());
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let (status, body) = exchange(&url, request.body(encode_form(fields))).await?;
        let answer = parse(&url, &body);
        if !status.is_success() {
            return Err(describe_error(&url, status, &answer.unwrap_or_default()));
        }
        let tokens = serde_json::from_value(answer?);
        let tokens = tokens.ok().filter(Tokens::is_usable);
        tokens.ok_or_else(|| format!("`{}` answers without a bearer token", place(&url)))
    }
}

fn build(url: &Url) -> Result<reqwest::Client, String> {
    let client = http::builder(url).timeout(RESPONSE_TIMEOUT).build();
    client.map_err(|error| format!("failed to create an HTTP client: {}", chain(&error)))
}

async fn exchange(url: &Url, request: RequestBuilder) -> Result<(StatusCode, Vec<u8>), String> {
    let fault = |error: reqwest::Error| {
        format!(
            "failed to reach `{}`: {}",
            place(url),
            chain(&error.without_url())
        )
    };
    let request = request.header(ACCEPT, "application/json");
    let mut response = request.send().await.map_err(fault)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(fault)? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(format!("`{}` has more than {MAX_BODY} bytes", place(url)));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((response.status(), body))
}

fn parse(url: &Url, body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|_| format!("`{}` is not JSON", place(url)))
}

/// Describes an error of RFC 6749.
fn describe_error(url: &Url, status: StatusCode, answer: &Value) -> String {
    let words = ["error", "error_description"].map(|name| answer[name].as_str());
    let words: Vec<_> = words.into_iter().flatten().map(shorten).collect();
    let words = match words.is_empty() {
        true => String::new(),
        false => format!(": {}", words.join(": ")),
    };
    format!("`{}` answers HTTP {status}{words}", place(url))
}

/// Shortens words of a server, and escapes what a terminal would interpret.
pub(super) fn shorten(words: &str) -> String {
    words
        .chars()
        .take(MAX_WORDS)
        .flat_map(char::escape_debug)
        .collect()
}

/// Encodes fields as `application/x-www-form-urlencoded`.
pub(super) fn encode_form(fields: &[(&str, &str)]) -> String {
    let mut url = Url::parse("http://localhost").expect("it is a URL");
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_urls_are_refused() {
        for url in [
            "",
            "/authorize",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,hi",
            "vbscript:x",
            "ftp://auth.example/",
            "smb://auth.example/share",
            "-h",
            "--help",
            "$(touch /tmp/x)",
            "`touch /tmp/x`",
            "a; touch /tmp/x",
            "http://auth.example/",
            "https://user:password@auth.example/",
            "https://auth.example/#fragment",
            "https://",
            "\\\\server\\share",
            "mailto:a@b",
        ] {
            for is_local in [true, false] {
                assert!(AuthClient::new(is_local).check_url(url).is_err(), "{url}");
            }
        }
        for url in ["http://127.0.0.1:1/", "http://localhost/", "https://[::1]/"] {
            assert!(AuthClient::new(true).check_url(url).is_ok(), "{url}");
            assert!(AuthClient::new(false).check_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn checked_url_has_no_characters_for_a_shell_or_a_terminal() {
        let client = AuthClient::new(false);
        for url in [
            "https://auth.example/a b",
            "https://auth.example/\r\nX: y",
            "https://auth.example/\u{202e}?q=\u{1b}[2J\"'<>",
            "https://auth.example/`id`|x\\y",
        ] {
            let url = client.check_url(url).unwrap();
            let is_plain = |byte: u8| matches!(byte, b'!'..=b'~') && !b"\"<>".contains(&byte);
            assert!(url.as_str().bytes().all(is_plain), "{url}");
        }
    }

    #[test]
    fn form_is_encoded() {
        assert_eq!(
            encode_form(&[("a", "b c&d"), ("e", "\u{e9}")]),
            "a=b+c%26d&e=%C3%A9"
        );
    }
}
