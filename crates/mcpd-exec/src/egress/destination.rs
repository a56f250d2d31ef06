//! Destinations that a sandbox lists, and the decision about a host, a port and an address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::Verdict;
use super::address::{Range, is_own, is_private, is_public};
use super::target::{Host, Target};

/// Suffixes of names that exist in private networks only, by RFC 6762, RFC 8375, and a decision of
/// ICANN. No such name can be registered in public.
const PRIVATE_SUFFIXES: &[&str] = &["internal", "local", "home.arpa"];

/// Name of this machine (RFC 6761).
const LOCALHOST: &str = "localhost";

/// Hosts and a port that a run may connect to.
///
/// `HOST:PORT`, where `HOST` is a name, `*.` and a name for all names below it, an address, a range
/// such as `10.0.0.0/8`, or `*` for every host of the public network. IPv6 is in brackets, and
/// `PORT` may be `*`.
///
/// Private and local addresses are refused unless they are meant: by a destination that is their
/// address or range, by `localhost` for this machine, or by a name below `internal`, `local` or
/// `home.arpa` for addresses of private networks.
///
/// ```
/// use mcpd_exec::egress::Destination;
///
/// for text in ["api.example.com:443", "*.internal:5432", "10.0.0.0/8:*", "[::1]:80"] {
///     let destination: Destination = text.parse()?;
///     assert_eq!(destination.to_string(), text);
/// }
/// assert!("api.example.com".parse::<Destination>().is_err());
/// # Ok::<(), mcpd_exec::egress::InvalidDestination>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Destination {
    hosts: Hosts,
    /// `None` stands for every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Hosts {
    /// All of the public network.
    Any,
    Name(String),
    /// All names below this one, at any depth.
    Below(String),
    Addresses(Range),
}

/// Text that is no destination.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a destination: {reason}")]
pub struct InvalidDestination {
    text: String,
    reason: &'static str,
}

impl FromStr for Destination {
    type Err = InvalidDestination;

    fn from_str(text: &str) -> Result<Self, InvalidDestination> {
        let invalid = |reason| InvalidDestination {
            text: text.to_owned(),
            reason,
        };
        let (host, port) = split(text).ok_or_else(|| {
            invalid("write `HOST:PORT`, as in `api.example.com:443`; IPv6 is in brackets")
        })?;
        let port = match port {
            "*" => None,
            number => match number.parse() {
                Ok(0) | Err(_) => return Err(invalid("its port is neither a number nor `*`")),
                Ok(number) => Some(number),
            },
        };
        let hosts = hosts(host).map_err(invalid)?;
        Ok(Self { hosts, port })
    }
}

/// Splits text at the colon before the port, and removes brackets.
fn split(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    match host.strip_prefix('[') {
        Some(bracketed) => Some((bracketed.strip_suffix(']')?, port)),
        None => (!host.contains(':')).then_some((host, port)),
    }
}

fn hosts(host: &str) -> Result<Hosts, &'static str> {
    if host == "*" {
        return Ok(Hosts::Any);
    }
    if let Some((first, bits)) = host.split_once('/') {
        let first = first.parse().map_err(|_| "its range has no address")?;
        let bits = bits.parse().map_err(|_| "its range has no length")?;
        let range = Range::new(first, bits);
        return range.map(Hosts::Addresses).ok_or(
            "its range must begin with its first address and not be longer than an address",
        );
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        let range = Range::new(address, if address.is_ipv4() { 32 } else { 128 });
        return range.map(Hosts::Addresses).ok_or("its address is wrong");
    }
    let (below, name) = match host.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, host),
    };
    if name.contains('*') {
        return Err("`*` stands for a whole host, or for the first part of a name before a dot");
    }
    let name = super::target::host_name(name)
        .ok_or("its host is neither a name, in ASCII, nor an address")?;
    Ok(match below {
        true => Hosts::Below(name),
        false => Hosts::Name(name),
    })
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Any => f.write_str("*")?,
            Hosts::Name(name) => f.write_str(name)?,
            Hosts::Below(name) => write!(f, "*.{name}")?,
            Hosts::Addresses(range) => {
                let length = range.bits().map(|bits| format!("/{bits}"));
                let length = length.unwrap_or_default();
                match range.first() {
                    IpAddr::V4(first) => write!(f, "{first}{length}")?,
                    IpAddr::V6(first) => write!(f, "[{first}{length}]")?,
                }
            }
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => f.write_str(":*"),
        }
    }
}

impl Destination {
    /// Returns what both destinations allow: always one of their hosts with one of their ports.
    fn intersect(&self, other: &Self) -> Option<Self> {
        let hosts = match (&self.hosts, &other.hosts) {
            (one, two) if one == two => one.clone(),
            // `*` is the public network alone, and only a public address is within it.
            (Hosts::Any, Hosts::Addresses(range)) | (Hosts::Addresses(range), Hosts::Any) => {
                let is_public = range.bits().is_none() && is_public(range.first());
                is_public.then_some(Hosts::Addresses(*range))?
            }
            (Hosts::Any, named) | (named, Hosts::Any) if !is_private_name(named) => named.clone(),
            (Hosts::Name(name), Hosts::Below(above)) | (Hosts::Below(above), Hosts::Name(name)) => {
                is_below(name, above).then(|| Hosts::Name(name.clone()))?
            }
            (Hosts::Below(one), Hosts::Below(two)) if is_below(one, two) => {
                Hosts::Below(one.clone())
            }
            (Hosts::Below(one), Hosts::Below(two)) if is_below(two, one) => {
                Hosts::Below(two.clone())
            }
            (Hosts::Addresses(one), Hosts::Addresses(two)) => {
                Hosts::Addresses(one.intersect(*two)?)
            }
            _ => return None,
        };
        let port = match (self.port, other.port) {
            (None, port) | (port, None) => port,
            (one, two) if one == two => one,
            _ => return None,
        };
        Some(Self { hosts, port })
    }

    fn has_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }

    /// Returns whether it lists the host, as far as that can be said without its addresses.
    fn lists(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::Any, Host::Name(_)) => true,
            (Hosts::Any, Host::Address(address)) => is_public(*address),
            (Hosts::Name(own), Host::Name(name)) => own == name,
            (Hosts::Below(own), Host::Name(name)) => is_below(name, own),
            (Hosts::Addresses(range), Host::Address(address)) => range.contains(*address),
            _ => false,
        }
    }

    /// Returns whether it lists the address itself.
    fn lists_address(&self, address: IpAddr) -> bool {
        matches!(&self.hosts, Hosts::Addresses(range) if range.contains(address))
    }

    /// Returns whether it means such an address, though that is not public, by a name.
    fn permits_private(&self, address: IpAddr) -> bool {
        let is_localhost =
            matches!(&self.hosts, Hosts::Name(name) | Hosts::Below(name) if is_in(name, LOCALHOST));
        is_localhost && address.is_loopback() || is_private_name(&self.hosts) && is_private(address)
    }
}

/// Returns whether the hosts have names that exist in private networks only.
fn is_private_name(hosts: &Hosts) -> bool {
    match hosts {
        Hosts::Name(name) | Hosts::Below(name) => {
            PRIVATE_SUFFIXES.iter().any(|suffix| is_in(name, suffix))
        }
        _ => false,
    }
}

fn is_below(name: &str, above: &str) -> bool {
    let rest = name.strip_suffix(above);
    rest.is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
}

fn is_in(name: &str, suffix: &str) -> bool {
    name == suffix || is_below(name, suffix)
}

/// Returns the destinations that both lists allow.
pub(crate) fn intersect(one: &[Destination], two: &[Destination]) -> Vec<Destination> {
    let pairs = one
        .iter()
        .flat_map(|one| two.iter().map(move |two| one.intersect(two)));
    let mut both: Vec<_> = pairs.flatten().collect();
    both.sort();
    both.dedup();
    both
}

/// Decides about a target before its name is resolved.
///
/// # Errors
///
/// No destination lists it.
pub(super) fn check_target(list: &[Destination], target: &Target) -> Result<(), Verdict> {
    let lists = |own: &Destination| own.has_port(target.port) && own.lists(&target.host);
    match list.iter().any(lists) {
        true => Ok(()),
        false => Err(Verdict::NotListed),
    }
}

/// Returns whether the run may connect to this address of a listed target.
pub(super) fn permits(list: &[Destination], target: &Target, address: IpAddr) -> bool {
    let mut with_port = list.iter().filter(|own| own.has_port(target.port));
    is_public(address) && !is_own(address)
        || with_port.any(|own| {
            own.lists_address(address) || own.lists(&target.host) && own.permits_private(address)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> Vec<Destination> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn is_allowed(list: &[Destination], target: &str, address: &str) -> bool {
        let target = Target::parse(target).unwrap();
        check_target(list, &target).is_ok() && permits(list, &target, address.parse().unwrap())
    }

    #[test]
    fn text_that_is_no_destination_is_refused() {
        let wrong = [
            "",
            ":443",
            "example.com",
            "example.com:",
            "example.com:0",
            "example.com:70000",
            "example.com:https",
            "a b:1",
            "*example.com:1",
            "a.*.com:1",
            "10.0.0.1/8:1",
            "10.0.0.0/33:1",
            "::1:80",
            "[::1]",
            "[::1:80",
            "http://a.com:80",
            "m\u{fc}ller.de:443",
            "a..b:1",
            "-a.com:1",
            "127.1:80",
            "0x7f000001:80",
            "user@a.com:1",
            "*.:1",
        ];
        for text in wrong {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
        let error = "example.com".parse::<Destination>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`example.com` is not a destination: write `HOST:PORT`, as in `api.example.com:443`; IPv6 is in brackets"
        );
    }

    #[test]
    fn names_match_whole_labels_and_their_port() {
        let list = list(&["api.example.com:443", "*.cdn.example.com:*"]);
        let public = "93.184.216.34";
        for target in [
            "api.example.com:443",
            "API.Example.COM.:443",
            "a.b.cdn.example.com:80",
        ] {
            assert!(is_allowed(&list, target, public), "{target}");
        }
        for target in [
            "api.example.com:80",
            "example.com:443",
            "xapi.example.com:443",
            "cdn.example.com:80",
            "xcdn.example.com:80",
            "a.cdn.example.com.evil.com:80",
            "93.184.216.34:443",
        ] {
            assert!(!is_allowed(&list, target, public), "{target}");
        }
    }

    #[test]
    fn private_addresses_are_refused_unless_meant() {
        let names = list(&[
            "api.example.com:443",
            "*.internal:5432",
            "*:80",
            "localhost:90",
        ]);
        let cases = [
            ("api.example.com:443", "10.0.0.5", false),
            ("api.example.com:443", "127.0.0.1", false),
            ("api.example.com:443", "64:ff9b::a00:5", false),
            ("db.internal:5432", "10.0.0.5", true),
            ("db.internal:5432", "fd12::5", true),
            ("db.internal:5432", "127.0.0.1", false),
            ("metadata.google.internal:5432", "169.254.169.254", false),
            ("metadata.google.internal:5432", "fd20:ce::254", false),
            ("db.internal:80", "10.0.0.5", false),
            ("evil.example:80", "10.0.0.5", false),
            ("evil.example:80", "1.1.1.1", true),
            ("1.1.1.1:80", "1.1.1.1", true),
            ("10.0.0.5:80", "10.0.0.5", false),
            ("localhost:90", "127.0.0.1", true),
            ("localhost:90", "::1", true),
            ("localhost:90", "10.0.0.5", false),
            ("localhost:80", "127.0.0.1", false),
        ];
        for (target, address, allowed) in cases {
            assert_eq!(
                is_allowed(&names, target, address),
                allowed,
                "{target} {address}"
            );
        }
        let listed = list(&[
            "api.example.com:443",
            "10.0.0.0/8:443",
            "169.254.169.254:80",
        ]);
        assert!(is_allowed(&listed, "api.example.com:443", "10.0.0.5"));
        assert!(is_allowed(&listed, "10.9.9.9:443", "10.9.9.9"));
        assert!(is_allowed(&listed, "169.254.169.254:80", "169.254.169.254"));
        assert!(!is_allowed(&listed, "10.9.9.9:80", "10.9.9.9"));
        assert!(!is_allowed(&listed, "other.example.com:443", "10.0.0.5"));
    }

    #[test]
    fn wish_and_floor_allow_what_both_list() {
        let both = |one: &[&str], two: &[&str]| {
            let met = intersect(&list(one), &list(two));
            assert_eq!(met, intersect(&list(two), &list(one)), "{one:?} {two:?}");
            met.iter().map(Destination::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            both(&["*.a.com:443"], &["x.a.com:*", "b.com:443"]),
            ["x.a.com:443"]
        );
        assert_eq!(both(&["*.a.com:*"], &["*.x.a.com:443"]), ["*.x.a.com:443"]);
        assert_eq!(
            both(&["10.0.0.0/8:*"], &["10.1.0.0/16:80"]),
            ["10.1.0.0/16:80"]
        );
        assert_eq!(
            both(&["*:443"], &["a.com:443", "1.1.1.1:*"]),
            ["a.com:443", "1.1.1.1:443"]
        );
        let none: [&str; 0] = [];
        assert_eq!(
            both(&["*:*"], &["10.0.0.5:1", "10.0.0.0/8:1", "db.internal:1"]),
            none
        );
        assert_eq!(both(&["a.com:443"], &["a.com:80", "10.0.0.0/8:443"]), none);
        assert_eq!(both(&["*.a.com:1"], &["a.com:1", "xa.com:1"]), none);
    }
}
