//! SSRF guard: URLs from which the server may fetch data of an issuer. They use TLS, and lead to
//! no private network unless the operator has named the host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::OAuthError;

/// Checks the public URL of the server.
///
/// # Errors
///
/// Clients cannot reach such a URL.
pub(super) fn parse_resource_url(url: &str) -> Result<Url, OAuthError> {
    let wrong = |why| OAuthError::Url(url.to_owned(), why);
    let parsed = Url::parse(url).map_err(|_| wrong("it is not a URL"))?;
    if !matches!(parsed.scheme(), "http" | "https") || !parsed.has_host() {
        return Err(wrong("expected an `http` or `https` URL"));
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(wrong("it has a query or a fragment"));
    }
    if !url
        .bytes()
        .all(|byte| matches!(byte, b'!'..=b'~') && byte != b'"')
    {
        return Err(wrong("it has characters that headers cannot contain"));
    }
    Ok(parsed)
}

/// Checks a URL to fetch from.
///
/// # Errors
///
/// Fetching from there is not allowed.
pub(super) fn parse_fetch_url(url: &str) -> Result<Url, OAuthError> {
    let wrong = |why| OAuthError::Url(url.to_owned(), why);
    let parsed = Url::parse(url).map_err(|_| wrong("it is not a URL"))?;
    let is_safe = match parsed.scheme() {
        "https" => parsed.has_host(),
        "http" => parsed.host_str().is_some_and(is_loopback),
        _ => false,
    };
    if !is_safe {
        return Err(wrong("expected an `https` URL, or `http` on this machine"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() || parsed.fragment().is_some() {
        return Err(wrong("it has user information or a fragment"));
    }
    Ok(parsed)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || literal(host).is_some_and(|address| address.is_loopback())
}

/// Parses a host that is a literal address.
fn literal(host: &str) -> Option<IpAddr> {
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    host.parse().ok()
}

/// DNS resolver with a filter. The host that the operator has named may have any address; a host
/// that an issuer names must have a public one.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    named: String,
}

impl Resolver {
    /// Creates a resolver that accepts any address for the host of this URL.
    pub(super) fn new(named: &Url) -> Self {
        Self {
            named: named.host_str().unwrap_or_default().to_owned(),
        }
    }

    /// Returns whether `url` may be fetched. For a host name, the decision is made when its
    /// addresses are known.
    pub(super) fn allows(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        match literal(host) {
            Some(address) => self.allows_address(host, address),
            None => true,
        }
    }

    fn allows_address(&self, host: &str, address: IpAddr) -> bool {
        match host {
            // The connection has no TLS, so it must stay on this machine.
            "localhost" => address.is_loopback(),
            host => host == self.named || is_public(address),
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let allowed = found.filter(|address| resolver.allows_address(&host, address.ip()));
            let allowed: Vec<SocketAddr> = allowed.collect();
            if allowed.is_empty() {
                return Err("the host has no public address".into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Returns whether the address is reachable from the whole Internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns whether the address is public. -- IANA IPv4 Special-Purpose Address Registry
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        || (a, b & 0xc0) == (100, 64)
        || (a, b, c) == (192, 0, 0)
        || (a, b & 0xfe) == (198, 18))
}

/// Returns whether the address is global unicast, without those that lead on into IPv4. -- IANA
/// IPv6 Special-Purpose Address Registry
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let is_global_unicast = segments[0] & 0xe000 == 0x2000;
    let is_special = segments[0] == 0x2001 && segments[1] < 0x0200
        || (segments[0], segments[1]) == (0x2001, 0x0db8)
        || segments[0] == 0x2002
        || segments[0] == 0x3fff;
    is_global_unicast && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: bool) {
        let other = Url::parse("https://named.example.com/").unwrap();
        let found = parse_fetch_url(url).is_ok_and(|url| Resolver::new(&other).allows(&url));
        assert_eq!(found, expected, "{url}");
    }

    #[test]
    fn fetch_requires_tls_and_a_public_address() {
        for url in [
            "https://auth.example.com/a?b",
            "https://8.8.8.8/",
            "http://localhost:1/",
            "https://[2606:4700::1]/",
        ] {
            check(url, true);
        }
        for url in [
            "",
            "/keys",
            "http://auth.example.com/",
            "http://localhost.example.com/",
            "ftp://auth.example.com/",
            "file:///etc/passwd",
            "https://user@auth.example.com/",
            "https://auth.example.com/#a",
            "https://127.0.0.1/",
            "https://10.1.2.3/",
            "https://172.16.0.1/",
            "https://192.168.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://100.100.100.200/",
            "https://0.0.0.0/",
            "https://198.18.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://[::1]/",
            "https://[::]/",
            "https://[fe80::1]/",
            "https://[fd00::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[64:ff9b::a00:1]/",
            "https://[2002:a00:1::]/",
            "https://[2001:0:a00:1::]/",
            "https://[2001:db8::1]/",
        ] {
            check(url, false);
        }
    }

    #[test]
    fn configured_host_may_have_any_address() {
        let named = parse_fetch_url("https://10.1.2.3/").unwrap();
        let resolver = Resolver::new(&named);
        assert!(resolver.allows(&named));
        assert!(!resolver.allows(&parse_fetch_url("https://10.1.2.4/").unwrap()));
        let loopback = parse_fetch_url("http://127.0.0.1:1/").unwrap();
        assert!(!resolver.allows(&loopback));
        assert!(Resolver::new(&loopback).allows(&loopback));
    }

    #[tokio::test]
    async fn resolver_filters_addresses() {
        let resolve = async |named: &str, name: &str| {
            let resolver = Resolver::new(&parse_fetch_url(named).unwrap());
            resolver.resolve(name.parse().unwrap()).await.is_ok()
        };
        assert!(resolve("https://auth.example.com/", "localhost").await);
        assert!(!resolve("https://auth.example.com/", "ip6-localhost").await);
    }
}
