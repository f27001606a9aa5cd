//! Ranges of network addresses, as operators write them, and which addresses are this machine or the public internet.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;
use std::sync::LazyLock;

use url::Url;

/// A range of addresses, as `10.0.0.0/8` or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// The error of a text that is no range of addresses.
#[derive(Debug, thiserror::Error)]
#[error("expected an address or a range of them, as 10.0.0.0/8")]
pub struct BadNetwork;

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| BadNetwork)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| BadNetwork)?;
        if bits <= most { Ok(Network { address, bits }) } else { Err(BadNetwork) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    pub fn contains(&self, address: IpAddr) -> bool {
        let shift = |width: u32| width.saturating_sub(u32::from(self.bits));
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).checked_shr(shift(128)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Whether an address leads to this machine, where no proxy is to be asked.
pub fn is_loopback(base: &Url) -> bool {
    match base.host() {
        // Of a scheme that no browser knows, as postgres, an address is a name.
        Some(url::Host::Domain(name)) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// What is not the public internet, of IPv4 and of the one range of IPv6 from which public addresses are given out (IANA's
/// registries of special-purpose addresses).
static SPECIAL: LazyLock<Vec<Network>> = LazyLock::new(|| {
    let ranges = [
        "0.0.0.0/8",       // this network
        "10.0.0.0/8",      // private
        "100.64.0.0/10",   // shared by the customers of a provider
        "127.0.0.0/8",     // this machine
        "169.254.0.0/16",  // link-local, the metadata of clouds among them
        "172.16.0.0/12",   // private
        "192.0.0.0/24",    // assigned to protocols
        "192.0.2.0/24",    // documentation
        "192.88.99.0/24",  // relays to IPv6
        "192.168.0.0/16",  // private
        "198.18.0.0/15",   // benchmarks
        "198.51.100.0/24", // documentation
        "203.0.113.0/24",  // documentation
        "224.0.0.0/4",     // multicast
        "240.0.0.0/4",     // reserved, and broadcast
        "2001::/23",       // assigned to protocols, tunnels among them
        "2001:db8::/32",   // documentation
        "2002::/16",       // tunnels to any IPv4 address
        "3fff::/20",       // documentation
    ];
    ranges.iter().filter_map(|range| range.parse().ok()).collect()
});

/// Whether an address is one of the public internet: none of a machine, a private network or a cloud's inside.
pub fn is_public(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let given_out = match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => match address.segments() {
            // An IPv4 address, where a network that has only IPv6 translates.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                let inner = Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
                return is_public(inner.into());
            }
            [first, ..] => first & 0xe000 == 0x2000,
        },
    };
    given_out && !SPECIAL.iter().any(|range| range.contains(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_in_every_scheme() {
        for near in
            ["http://localhost/", "http://127.0.0.1:1", "http://[::1]/", "postgres://u:p@127.0.0.1:5432/x"]
        {
            assert!(is_loopback(&near.parse().unwrap()), "{near}");
        }
        for far in ["http://10.0.0.1/", "postgres://db.example/x", "postgres://10.0.0.1/x"] {
            assert!(!is_loopback(&far.parse().unwrap()), "{far}");
        }
    }

    #[test]
    fn networks_contain_what_they_should() {
        let holds = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("127.0.0.1", "127.0.0.1"));
        assert!(!holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("0.0.0.0/0", "8.8.8.8"));
        assert!(holds("fd00::/8", "fd12::1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.1.1"));
        for wrong in ["10.0.0.0/33", "x", "10.0.0.0/", ""] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_what_anybody_can_reach_is_public() {
        for address in
            ["1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "198.20.0.1", "223.1.1.1"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.1.1",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        assert_eq!(SPECIAL.len(), 19, "every range is one");
    }
}
