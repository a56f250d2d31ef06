//! Addresses by the network they belong to: public ones, private ones, and those that serve the
//! machine itself or its cloud.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Range of addresses: its first address and the number of leading bits that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Range {
    first: IpAddr,
    bits: u8,
}

impl Range {
    /// Returns the range, or `None` if there are not so many bits, or bits behind them are set.
    pub(crate) fn new(first: IpAddr, bits: u8) -> Option<Self> {
        let range = Self { first, bits };
        (bits <= width(first) && prefix(first, bits) == number(first)).then_some(range)
    }

    const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Self {
        let first = IpAddr::V4(Ipv4Addr::new(a, b, c, d));
        Self { first, bits }
    }

    const fn v6(a: u16, b: u16, bits: u8) -> Self {
        let first = IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0));
        Self { first, bits }
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.first.is_ipv4()
            && prefix(address, self.bits) == number(self.first)
    }

    /// Returns the part that both ranges share: one of them, or nothing.
    pub(crate) fn intersect(self, other: Self) -> Option<Self> {
        let (wide, narrow) = if self.bits <= other.bits {
            (self, other)
        } else {
            (other, self)
        };
        wide.contains(narrow.first).then_some(narrow)
    }

    pub(crate) fn first(&self) -> IpAddr {
        self.first
    }

    /// Number of bits, unless the range is a single address.
    pub(crate) fn bits(&self) -> Option<u8> {
        (self.bits < width(self.first)).then_some(self.bits)
    }
}

fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns the number of the address with all but the first `bits` cleared.
fn prefix(address: IpAddr, bits: u8) -> u128 {
    let rest = u32::from(width(address) - bits);
    let mask = u128::MAX.checked_shl(rest).unwrap_or_default();
    number(address) & mask
}

/// IPv4 addresses that are not public (IANA special-purpose registry, multicast, reserved).
const SPECIAL_V4: &[Range] = &[
    Range::v4(0, 0, 0, 0, 8),
    Range::v4(10, 0, 0, 0, 8),
    Range::v4(100, 64, 0, 0, 10),
    Range::v4(127, 0, 0, 0, 8),
    Range::v4(169, 254, 0, 0, 16),
    Range::v4(172, 16, 0, 0, 12),
    Range::v4(192, 0, 0, 0, 24),
    Range::v4(192, 0, 2, 0, 24),
    Range::v4(192, 88, 99, 0, 24),
    Range::v4(192, 168, 0, 0, 16),
    Range::v4(198, 18, 0, 0, 15),
    Range::v4(198, 51, 100, 0, 24),
    Range::v4(203, 0, 113, 0, 24),
    Range::v4(224, 0, 0, 0, 3),
    // The agent of Azure, at a public address.
    Range::v4(168, 63, 129, 16, 32),
];

/// The only public IPv6 addresses. Everything else, such as NAT64 and mapped IPv4 addresses, leads
/// elsewhere.
const PUBLIC_V6: Range = Range::v6(0x2000, 0, 3);

/// Parts of it that are not public: protocol assignments with Teredo, documentation, 6to4.
const SPECIAL_V6: &[Range] = &[
    Range::v6(0x2001, 0, 23),
    Range::v6(0x2001, 0xdb8, 32),
    Range::v6(0x2002, 0, 16),
    Range::v6(0x3fff, 0, 20),
];

/// Addresses of private networks.
const PRIVATE: &[Range] = &[
    Range::v4(10, 0, 0, 0, 8),
    Range::v4(172, 16, 0, 0, 12),
    Range::v4(192, 168, 0, 0, 16),
    Range::v6(0xfc00, 0, 7),
];

/// Servers of clouds that give credentials to their machines, within private networks.
const METADATA: &[Ipv6Addr] = &[
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Returns whether an address is one of this machine: a socket can have it. Where a socket can have
/// any address (`ip_nonlocal_bind`), it is one that packets to it would come from. No packet is
/// sent.
pub(crate) fn is_own(address: IpAddr) -> bool {
    /// For documentation, so no machine has them.
    const FOREIGN_V4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
    const FOREIGN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let can_have = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    let (any, foreign): (IpAddr, IpAddr) = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), FOREIGN_V4.into()),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), FOREIGN_V6.into()),
    };
    if !can_have(address) {
        return false;
    }
    if !can_have(foreign) {
        return true;
    }
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        // The port does not matter.
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

/// Returns whether the address belongs to the public network.
pub(crate) fn is_public(address: IpAddr) -> bool {
    let is_in = |ranges: &[Range]| ranges.iter().any(|range| range.contains(address));
    match address {
        IpAddr::V4(_) => !is_in(SPECIAL_V4),
        IpAddr::V6(_) => PUBLIC_V6.contains(address) && !is_in(SPECIAL_V6),
    }
}

/// Returns whether the address belongs to a private network, and is no server of its cloud.
pub(crate) fn is_private(address: IpAddr) -> bool {
    let is_metadata = matches!(address, IpAddr::V6(address) if METADATA.contains(&address));
    PRIVATE.iter().any(|range| range.contains(address)) && !is_metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn public_addresses_are_told_from_all_others() {
        for text in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1"] {
            assert!(is_public(address(text)), "{text}");
        }
        for text in ["2606:4700::1111", "2a00::1", "2001:4860:4860::8888"] {
            assert!(is_public(address(text)), "{text}");
        }
        let special = "0.0.0.0 10.1.2.3 100.100.100.200 127.0.0.1 127.9.9.9 169.254.169.254 \
             172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.168.1.1 198.19.0.1 224.0.0.1 \
             255.255.255.255 168.63.129.16 :: ::1 ::ffff:1.1.1.1 ::1.1.1.1 64:ff9b::101:101 \
             64:ff9b:1::1 100::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 2001::1 2001:db8::1 \
             2002:7f00:1::1 3fff::1 5f00::1";
        for text in special.split_whitespace() {
            assert!(!is_public(address(text)), "{text}");
        }
    }

    #[test]
    fn own_addresses_are_told_from_others() {
        for text in ["127.0.0.1", "127.1.2.3"] {
            assert!(is_own(address(text)), "{text}");
        }
        for text in ["93.184.216.34", "2606:4700::1111"] {
            assert!(!is_own(address(text)), "{text}");
        }
    }

    #[test]
    fn private_addresses_exclude_this_machine_and_its_cloud() {
        for text in ["10.0.0.1", "172.20.0.1", "192.168.0.1", "fd12::1"] {
            assert!(is_private(address(text)), "{text}");
        }
        let refused = "127.0.0.1 169.254.169.254 100.100.100.200 fd00:ec2::254 fd20:ce::254 ::1 \
             fe80::1 1.1.1.1";
        for text in refused.split_whitespace() {
            assert!(!is_private(address(text)), "{text}");
        }
    }

    #[test]
    fn range_has_no_bits_behind_its_prefix() {
        let range = |text, bits| Range::new(address(text), bits);
        assert!(range("10.0.0.0", 8).is_some() && range("0.0.0.0", 0).is_some());
        assert!(range("::", 0).is_some() && range("::1", 128).is_some());
        assert!(range("10.0.0.1", 8).is_none() && range("10.0.0.0", 33).is_none());
        let all = range("::", 0).unwrap();
        assert!(all.contains(address("fe80::1")) && !all.contains(address("1.1.1.1")));
    }
}
