//! Target of a request: a host and a port, as a run names them.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// Maximum length of a host name in the DNS.
const MAX_NAME: usize = 253;

/// Maximum length of one part of it.
const MAX_LABEL: usize = 63;

/// Host and port that a run asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: Host,
    pub(super) port: u16,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// In lower case, without a dot at its end.
    Name(String),
    /// No IPv4 address in the form of IPv6.
    Address(IpAddr),
}

impl Target {
    /// Reads `HOST:PORT`, with IPv6 in brackets.
    pub(super) fn parse(authority: &str) -> Option<Self> {
        let (host, port) = authority.rsplit_once(':')?;
        Self::new(host, port.parse().ok()?)
    }

    /// Reads a host, with IPv6 in brackets.
    pub(super) fn new(host: &str, port: u16) -> Option<Self> {
        let bracketed = host.strip_prefix('[').map(|rest| rest.strip_suffix(']'));
        let host = match bracketed {
            Some(address) => Host::address(address?.parse::<Ipv6Addr>().ok()?.into()),
            None => match host.parse() {
                Ok(address) => Host::address(IpAddr::V4(address)),
                Err(_) => Host::Name(host_name(host)?),
            },
        };
        (port != 0).then_some(Self { host, port })
    }
}

impl Host {
    /// An IPv4 address in the form of IPv6 is the IPv4 address.
    pub(super) fn address(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}:{}", self.port),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]:{}", self.port),
        }
    }
}

/// Returns a host name in lower case without a dot at its end; `None` if it can't be one, or a
/// resolver might take it for an address, as `127.1` and `0x7f000001`.
pub(super) fn host_name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && label.bytes().all(is_part)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|char: char| char.is_ascii_digit())
        && last
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'x' || byte == b'X');
    let is_name = name.len() <= MAX_NAME && name.split('.').all(is_label) && !is_number;
    is_name.then(|| name.to_ascii_lowercase())
}
