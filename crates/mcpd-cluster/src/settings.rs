//! Settings of a node: the servers, the names, the credentials.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Maximum length of a name.
const MAX_NAME: usize = 32;
/// Time of being cut off after which a worker ends its runs, unless the operator says otherwise.
pub(crate) const DEFAULT_LEASE: Duration = Duration::from_secs(10);

/// Name of a cluster or of a node: lower case letters, digits and hyphens, 32 at most. It is a
/// token of subjects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

impl Name {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a name made from the name of a host, with hyphens for what a name must not have.
    #[must_use]
    pub fn of_host(host: &str) -> Self {
        let host = host.split('.').next().unwrap_or_default();
        let allowed = |char: char| match char.to_ascii_lowercase() {
            char @ ('a'..='z' | '0'..='9' | '-') => char,
            _ => '-',
        };
        let name: String = host.chars().map(allowed).take(MAX_NAME).collect();
        match name.is_empty() {
            true => Self("node".to_owned()),
            false => Self(name),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text that is not a [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name: use 1 to {MAX_NAME} of `a` to `z`, `0` to `9` and `-`")]
#[non_exhaustive]
pub struct InvalidName(pub String);

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let is_name = (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_allowed);
        match is_name {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidName(text.chars().take(2 * MAX_NAME).collect())),
        }
    }
}

/// Credentials of a node for the NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credentials {
    /// File with the seed of an NKey.
    KeyFile(PathBuf),
    /// File with a JWT and its key, as `nsc` writes it.
    CredentialsFile(PathBuf),
    /// Certificate and key of the client, in PEM.
    #[non_exhaustive]
    Certificate {
        /// File with the certificate.
        certificate: PathBuf,
        /// File with its key.
        key: PathBuf,
    },
}

impl Credentials {
    /// Names the files of a certificate.
    #[must_use]
    pub fn certificate(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self::Certificate {
            certificate: certificate.into(),
            key: key.into(),
        }
    }
}

/// Settings of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Servers, such as `nats://nats-1:4222` or `tls://nats-1:4222`.
    pub urls: Vec<String>,
    /// Name of the cluster.
    pub cluster: Name,
    /// Name of this node.
    pub node: Name,
    /// Credentials; each applies beside the others.
    pub credentials: Vec<Credentials>,
    /// File with the certificates that servers are checked against, beside those of the system.
    pub ca: Option<PathBuf>,
    /// Time of being cut off after which a worker ends what it runs. All nodes have the same.
    pub lease: Duration,
}

impl Settings {
    /// Settings of `node` in the cluster `default`, without credentials.
    #[must_use]
    pub fn new(urls: Vec<String>, node: Name) -> Self {
        Self {
            urls,
            cluster: Name("default".to_owned()),
            node,
            credentials: Vec::new(),
            ca: None,
            lease: DEFAULT_LEASE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens_of_subjects() {
        assert_eq!("gpu-7".parse::<Name>().unwrap().as_str(), "gpu-7");
        for text in ["", "GPU", "a.b", "a*", ">", "a b", &"x".repeat(33)] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
        assert_eq!(Name::of_host("Web_3.example.org").as_str(), "web-3");
        assert_eq!(Name::of_host("").as_str(), "node");
    }
}
