//! Server to connect to: its URL, the headers of every request, and the rule that credentials
//! cross no network in plain text.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::Error;

/// Headers that the bridge sets itself.
const RESERVED_HEADERS: [&str; 10] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "transfer-encoding",
];

/// MCP server over HTTP, and the credentials for it.
#[derive(Clone)]
pub struct Target {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) token: Option<HeaderValue>,
    pub(crate) socket: Option<PathBuf>,
    is_plaintext_allowed: bool,
}

impl Target {
    /// Parses the URL of a server, `http` or `https`.
    ///
    /// # Errors
    ///
    /// Returns the reason why no server can be there.
    pub fn new(url: &str) -> Result<Self, Error> {
        let fault = |reason| Error::Url {
            // The whole text is shown only if it is no URL: otherwise it may have a secret.
            url: Url::parse(url).map_or_else(|_| url.to_owned(), |url| place(&url)),
            reason,
        };
        let mut parsed = Url::parse(url).map_err(|_| {
            fault("it is not a URL; expected one such as `https://tools.example/mcp`")
        })?;
        if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
            return Err(fault("expected an `http` or `https` URL"));
        }
        parsed.set_fragment(None);
        Ok(Self {
            url: parsed,
            headers: HeaderMap::new(),
            token: None,
            socket: None,
            is_plaintext_allowed: false,
        })
    }

    /// Adds a header to every request, such as `X-Api-Key: 123`.
    ///
    /// # Errors
    ///
    /// Returns the fault of the header, or that the bridge sets it itself.
    pub fn header(mut self, line: &str) -> Result<Self, Error> {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let fault = |reason| Error::Header {
            name: name.trim().to_owned(),
            reason,
        };
        if !line.contains(':') {
            // A line without a colon may be the secret alone.
            return Err(Error::Header {
                name: "…".to_owned(),
                reason: "expected `Name: value`",
            });
        }
        let parsed: HeaderName = (name.trim().parse()).map_err(|_| fault("it is not a name"))?;
        if RESERVED_HEADERS.contains(&parsed.as_str()) {
            return Err(fault("the bridge sets it"));
        }
        let value = HeaderValue::from_str(value.trim());
        let mut value = value.map_err(|_| fault("its value has invalid characters"))?;
        value.set_sensitive(true);
        self.headers.append(parsed, value);
        Ok(self)
    }

    /// Sets the token, sent as `Authorization: Bearer …`.
    ///
    /// # Errors
    ///
    /// Fails if the token can't be part of a header.
    pub fn token(mut self, token: &str) -> Result<Self, Error> {
        self.token = Some(bearer(token).ok_or(Error::Token)?);
        Ok(self)
    }

    /// Connects to a socket in the file system; the host of the URL is only a name then.
    #[must_use]
    pub fn socket(mut self, path: &Path) -> Self {
        self.socket = Some(path.to_owned());
        self
    }

    /// Allows credentials over `http` to other machines.
    #[must_use]
    pub fn allow_plaintext(mut self) -> Self {
        self.is_plaintext_allowed = true;
        self
    }

    /// Returns whether the URL or a header may authenticate the client: any header can be a secret.
    #[must_use]
    pub fn has_credentials(&self) -> bool {
        self.token.is_some()
            || !self.headers.is_empty()
            || !self.url.username().is_empty()
            || self.url.password().is_some()
    }

    /// Checks that credentials stay on this machine or are encrypted.
    ///
    /// # Errors
    ///
    /// Returns the host that would get them in plain text.
    pub(crate) fn check_transport(&self) -> Result<(), Error> {
        match self.has_credentials() && !self.is_confidential() {
            true => Err(Error::Plaintext(self.place())),
            false => Ok(()),
        }
    }

    /// Returns whether requests are encrypted, stay on this machine, or may be in plain text.
    #[must_use]
    pub fn is_confidential(&self) -> bool {
        self.is_plaintext_allowed || self.url.scheme() == "https" || self.is_local()
    }

    /// Returns whether the server is on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.socket.is_some() || is_loopback(&self.url)
    }

    /// Returns the URL without what may be a secret.
    pub(crate) fn place(&self) -> String {
        place(&self.url)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("url", &self.place())
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// Returns the value of `Authorization` for a token, if it can be one.
pub(crate) fn bearer(token: &str) -> Option<HeaderValue> {
    let is_word = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let value = HeaderValue::try_from(format!("Bearer {token}"));
    let mut value = value.ok().filter(|_| is_word)?;
    value.set_sensitive(true);
    Some(value)
}

/// Returns a URL without user information, query and fragment, which may be secrets.
pub(crate) fn place(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // These fail for URLs that have no such parts.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.into()
}

/// Returns whether the host of a URL is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    let address: Result<IpAddr, _> = literal.parse();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_in_no_description() {
        let target = Target::new("https://user:pw1@tools.example/mcp?key=pw2#pw3").unwrap();
        let target = target.token("pw4").unwrap().header("X-Key: pw5").unwrap();
        let shown = format!("{target:?} {}", target.place());
        assert!(
            !shown.contains("pw") && shown.contains("tools.example/mcp"),
            "{shown}"
        );
        assert!(target.has_credentials());
        for wrong in ["pw6", "X Y: pw6", "X-Key: pw6\r\nA: b", "Accept: pw6"] {
            let fault = target.clone().header(wrong).unwrap_err().to_string();
            assert!(!fault.contains("pw6"), "{fault}");
        }
    }

    #[test]
    fn credentials_need_encryption_or_this_machine() {
        #[track_caller]
        fn check(url: &str, expected: bool) {
            let bare = Target::new(url).unwrap();
            assert!(bare.check_transport().is_ok(), "{url}");
            let target = bare.clone().token("secret").unwrap();
            assert_eq!(target.check_transport().is_ok(), expected, "{url}");
            let header = bare.header("X-Key: 1").unwrap();
            assert_eq!(header.check_transport().is_ok(), expected, "{url}");
            assert!(target.clone().allow_plaintext().check_transport().is_ok());
            assert!(target.socket(Path::new("/run/a")).check_transport().is_ok());
        }
        check("https://tools.example/mcp", true);
        check("http://127.0.0.1:1/mcp", true);
        check("http://[::1]:1/mcp", true);
        check("http://localhost/mcp", true);
        check("http://tools.example/mcp", false);
        check("http://localhost.example/mcp", false);
        check("http://10.0.0.1/mcp", false);
    }

    #[test]
    fn url_of_another_kind_is_refused() {
        for url in [
            "",
            "tools",
            "tools.example/mcp",
            "ftp://tools.example",
            "file:///etc/passwd",
        ] {
            assert!(Target::new(url).is_err(), "{url}");
        }
    }
}
