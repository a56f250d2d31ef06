//! Address of a server that runs elsewhere and speaks Streamable HTTP, with the headers it needs,
//! as plain data.

use std::fmt;

use mcpd_server::source::Secrets;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// Reason why an [`Address`] can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressError {
    /// Not a URL, or not one of `http` or `https`.
    Url(String),
    /// Invalid name of a header.
    HeaderName(String),
    /// Invalid value of a header; the value may be a secret, so the error names only the header.
    HeaderValue(String),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => write!(f, "use the URL `{url}`: expected an `http` or `https` URL"),
            Self::HeaderName(name) => write!(f, "use the header `{name}`: invalid header name"),
            Self::HeaderValue(name) => {
                write!(f, "use the header `{name}`: invalid header value")
            }
        }
    }
}

impl std::error::Error for AddressError {}

/// Address of an MCP server over Streamable HTTP, with the headers of every request.
#[derive(Clone)]
#[must_use]
pub struct Address {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) token: Option<String>,
}

impl Address {
    /// Makes the address of a server that needs no credentials.
    ///
    /// # Errors
    ///
    /// Fails if `url` is not one of `http` or `https`.
    pub fn new(url: &str) -> Result<Self, AddressError> {
        let parsed = Url::parse(url).ok();
        let parsed = parsed.filter(|url| matches!(url.scheme(), "http" | "https"));
        Ok(Self {
            url: parsed.ok_or_else(|| AddressError::Url(url.to_owned()))?,
            headers: HeaderMap::new(),
            token: None,
        })
    }

    /// Sends a header with every request.
    ///
    /// # Errors
    ///
    /// Fails if the name or the value is invalid.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, AddressError> {
        let wrong = |_| AddressError::HeaderName(name.to_owned());
        let header: HeaderName = name.parse().map_err(wrong)?;
        let wrong = |_| AddressError::HeaderValue(name.to_owned());
        let mut value: HeaderValue = value.parse().map_err(wrong)?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// Sends a token with every request, as `Authorization: Bearer …`.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    pub(crate) fn secrets(&self) -> Secrets {
        let headers = self.headers.iter().flat_map(|(name, value)| {
            let (name, value) = (name.as_str(), value.to_str().unwrap_or_default());
            // In `Basic QWxhZGRpbg==`, the part after the scheme is a secret of its own.
            let credentials = value.split_once(' ').filter(|_| is_credentials(name));
            let credentials = credentials.map(|(_, credentials)| (name, credentials));
            [Some((name, value)), credentials].into_iter().flatten()
        });
        let token = self.token.as_deref().map(|token| ("token", token));
        Secrets::new(headers.chain(token))
    }
}

/// Returns whether a header carries credentials, as a scheme and a secret.
fn is_credentials(name: &str) -> bool {
    matches!(name, "authorization" | "proxy-authorization")
}

/// Shows no value and no query: they may be secrets, and `Debug` output ends up in logs.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("origin", &self.url.origin().ascii_serialization())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("token", &self.token.is_some())
            .finish()
    }
}
