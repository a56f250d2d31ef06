//! Token exchange (RFC 8693): an access token for another service in place of the caller's own,
//! which is for this server alone. Tokens are kept until shortly before they expire.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex as AsyncMutex;

use super::OAuthError;
use super::address;
use super::fetch::Fetcher;
use crate::policy::CredentialSource;
use crate::policy::principal::Principal;
use crate::support::sync::lock;

const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
/// Time limit of one exchange.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Lifetime of a token whose issuer names none.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);
/// Time before its end from which a token is not used any more.
const MARGIN: Duration = Duration::from_secs(30);
/// Maximum number of kept tokens.
const MAX_TOKENS: usize = 1024;
/// Maximum length of a token, in bytes: it becomes a variable.
const MAX_TOKEN_BYTES: usize = 64 << 10;

/// Exchange of callers' access tokens at the token endpoint of an issuer.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use mcpd_server::policy::ToolPolicy;
/// use mcpd_server::transport::http::TokenExchange;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let github = TokenExchange::new("https://auth.example.com/token")?
///     .client("mcpd", "s3cret")
///     .parameter("audience", "https://api.example.com");
/// let repository = ToolPolicy::new("repository/*")?;
/// let repository = repository.credential_variable("API_TOKEN", Arc::new(github));
/// # Ok(()) }
/// ```
pub struct TokenExchange {
    endpoint: Url,
    fetcher: Fetcher,
    client: Option<(String, String)>,
    parameters: Vec<(String, String)>,
    /// Tokens by the hash of the caller's own.
    tokens: Mutex<BTreeMap<[u8; 32], Place>>,
}

/// Omits all secrets.
impl fmt::Debug for TokenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenExchange")
            .field("endpoint", &self.endpoint.as_str())
            .finish_non_exhaustive()
    }
}

/// Place of a token, locked while it is exchanged.
type Place = Arc<AsyncMutex<Option<Exchanged>>>;

struct Exchanged {
    token: String,
    until: Instant,
}

/// Successful response. -- RFC 8693, 2.2.1
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
}

/// Error response. -- RFC 6749, 5.2
#[derive(Deserialize)]
struct ErrorResponse {
    error: String,
}

impl TokenExchange {
    /// Creates an exchange at a token endpoint: an `https` URL, or `http` on this machine.
    ///
    /// # Errors
    ///
    /// Fails for another URL, or if the certificate store of the system cannot be read.
    pub fn new(endpoint: &str) -> Result<Self, OAuthError> {
        let endpoint = address::parse_fetch_url(endpoint)?;
        Ok(Self {
            fetcher: Fetcher::new(&endpoint, TIMEOUT)?,
            endpoint,
            client: None,
            parameters: Vec::new(),
            tokens: Mutex::default(),
        })
    }

    /// Sets the credentials of this server at the endpoint, which are sent by HTTP Basic.
    #[must_use]
    pub fn client(mut self, id: impl Into<String>, secret: impl Into<String>) -> Self {
        self.client = Some((id.into(), secret.into()));
        self
    }

    /// Adds a parameter of the request, such as `audience`, `resource` or `scope`.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    async fn exchange(&self, subject: &str) -> Result<Exchanged, String> {
        let fixed = [
            ("grant_type", GRANT_TYPE),
            ("subject_token", subject),
            ("subject_token_type", ACCESS_TOKEN),
        ];
        let parameters = self.parameters.iter();
        let parameters = parameters.map(|(name, value)| (name.as_str(), value.as_str()));
        let form: Vec<_> = fixed.into_iter().chain(parameters).collect();
        let client = self.client.as_ref();
        let client = client.map(|(id, secret)| (id.as_str(), secret.as_str()));
        let asked = Instant::now();
        let (status, body) = self
            .fetcher
            .post(&self.endpoint, client, &form)
            .await
            .map_err(|error| {
                // It names the endpoint, which is the operator's business.
                tracing::warn!("exchange of a token failed: {error}");
                "the issuer could not be asked to exchange the token".to_owned()
            })?;
        if status != StatusCode::OK {
            return Err(refusal(status, &body));
        }
        let response: TokenResponse = serde_json::from_slice(&body)
            .map_err(|_| "the issuer's answer to the exchange is malformed".to_owned())?;
        let is_usable = response.token_type.eq_ignore_ascii_case("bearer")
            || response.token_type.eq_ignore_ascii_case("n_a");
        let token = response.access_token;
        if !is_usable || token.is_empty() || token.len() > MAX_TOKEN_BYTES || token.contains('\0') {
            return Err("the issuer answered the exchange with a token of another kind".to_owned());
        }
        if token == subject {
            return Err("the issuer answered the exchange with the caller's own token".to_owned());
        }
        let lifetime = response
            .expires_in
            .map_or(DEFAULT_LIFETIME, Duration::from_secs);
        Ok(Exchanged {
            token,
            until: asked
                + lifetime
                    .saturating_sub(MARGIN)
                    .min(Duration::from_hours(24)),
        })
    }

    /// Place of the token of the caller with this own token.
    fn place(&self, subject: &str) -> Place {
        let mut tokens = lock(&self.tokens);
        if tokens.len() >= MAX_TOKENS {
            let now = Instant::now();
            tokens.retain(|_, place| {
                let exchanged = place.try_lock();
                exchanged.is_ok_and(|one| one.as_ref().is_some_and(|one| now < one.until))
            });
            if tokens.len() >= MAX_TOKENS {
                // The hashes are random, so this is a random entry.
                tokens.pop_first();
            }
        }
        let hash = Sha256::digest(subject).into();
        Arc::clone(tokens.entry(hash).or_default())
    }
}

/// Describes a refusal by its error code alone, which has no secret.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let error: Option<ErrorResponse> = serde_json::from_slice(body).ok();
    let is_code = |error: &ErrorResponse| {
        let mut bytes = error.error.bytes();
        error.error.len() <= 64 && bytes.all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    match error.filter(is_code) {
        Some(ErrorResponse { error }) => format!("the issuer refused the exchange: `{error}`"),
        None => format!(
            "the issuer answered the exchange with status {}",
            status.as_u16()
        ),
    }
}

impl CredentialSource for TokenExchange {
    fn credential<'a>(&'a self, caller: &'a Principal) -> BoxFuture<'a, Result<String, String>> {
        self.exchanged_token(caller).boxed()
    }
}

impl TokenExchange {
    /// Returns the token in place of the caller's own, a kept one if it lasts.
    async fn exchanged_token(&self, caller: &Principal) -> Result<String, String> {
        let Some(subject) = caller.access_token() else {
            return Err("the caller has no access token of an OAuth issuer to exchange".to_owned());
        };
        // Callers with the same token wait for one exchange.
        let place = self.place(subject);
        let mut exchanged = place.lock().await;
        let known = exchanged
            .as_ref()
            .filter(|known| Instant::now() < known.until);
        if let Some(known) = known {
            return Ok(known.token.clone());
        }
        let new = self.exchange(subject).await?;
        let token = new.token.clone();
        *exchanged = Some(new);
        Ok(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_repeats_nothing_but_an_error_code() {
        let check = |body: &str, expected: &str| {
            assert_eq!(refusal(StatusCode::BAD_REQUEST, body.as_bytes()), expected);
        };
        check(
            r#"{"error": "invalid_target", "error_description": "s3cret"}"#,
            "the issuer refused the exchange: `invalid_target`",
        );
        let other = "the issuer answered the exchange with status 400";
        for body in ["", "<html>s3cret", r#"{"error": "No s3cret!"}"#] {
            check(body, other);
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let exchange = TokenExchange::new("https://auth.example/token")
            .unwrap()
            .client("mcpd", "s3cret");
        let text = format!("{exchange:?}");
        assert!(text.contains("auth.example") && !text.contains("s3cret"));
    }
}
