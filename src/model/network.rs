//! Ranges of network addresses, as operators write them, and which addresses are this machine.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

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
}
