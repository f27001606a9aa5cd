//! Networks and hosts as operators configure them, and whether an address is loopback or public.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;
use std::sync::LazyLock;

use ipnet::IpNet;
use url::Url;

/// The text is neither an address nor a network.
#[derive(Debug, thiserror::Error)]
#[error("expected an address or a range, such as 10.0.0.0/8")]
pub struct InvalidNetwork;

/// Parses an address or a network in CIDR notation.
pub fn parse_network(text: &str) -> Result<IpNet, InvalidNetwork> {
    text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_| InvalidNetwork)
}

/// Whether an address is in one of the networks; an IPv4-mapped address counts as IPv4.
pub fn contains(networks: &[IpNet], address: IpAddr) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// Whether the host of a URL is this machine, which is reached without a proxy.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Networks that are not the public internet: of IPv4, and of 2000::/3, the only range of public IPv6 addresses (from IANA's
/// registries of special-purpose addresses).
static SPECIAL_PURPOSE_NETWORKS: LazyLock<Vec<IpNet>> = LazyLock::new(|| {
    let ranges = [
        "0.0.0.0/8",       // this network
        "10.0.0.0/8",      // private
        "100.64.0.0/10",   // shared by the customers of a provider (CGNAT)
        "127.0.0.0/8",     // loopback
        "169.254.0.0/16",  // link-local, such as the metadata services of clouds
        "172.16.0.0/12",   // private
        "192.0.0.0/24",    // assigned to protocols
        "192.0.2.0/24",    // documentation
        "192.88.99.0/24",  // 6to4 relays
        "192.168.0.0/16",  // private
        "198.18.0.0/15",   // benchmarks
        "198.51.100.0/24", // documentation
        "203.0.113.0/24",  // documentation
        "224.0.0.0/4",     // multicast
        "240.0.0.0/4",     // reserved, and broadcast
        "2001::/23",       // assigned to protocols, such as Teredo
        "2001:db8::/32",   // documentation
        "2002::/16",       // 6to4, which contains an IPv4 address
        "3fff::/20",       // documentation
    ];
    ranges.iter().filter_map(|range| range.parse().ok()).collect()
});

/// Whether an address belongs to the public internet, not to this machine or a private network.
pub fn is_public(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let in_global_range = match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => match address.segments() {
            // NAT64: contains an IPv4 address.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                let inner = Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
                return is_public(inner.into());
            }
            [first, ..] => first & 0xe000 == 0x2000,
        },
    };
    in_global_range && !contains(&SPECIAL_PURPOSE_NETWORKS, address)
}

/// Hosts that the operator allows, each with or without a port. They may have private addresses and need no https.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<String>);

/// An entry of the list is not a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a host; use names or addresses, each with or without a port")]
pub struct InvalidHost(String);

impl FromStr for AllowedHosts {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut hosts = Vec::new();
        for host in text.split(',').map(str::trim).filter(|host| !host.is_empty()) {
            let url = Url::parse(&format!("http://{host}")).ok();
            let is_host = url.is_some_and(|url| authority(&url).contains(&host.to_lowercase()));
            if !is_host {
                return Err(InvalidHost(host.to_owned()));
            }
            hosts.push(host.to_lowercase());
        }
        Ok(AllowedHosts(hosts))
    }
}

impl AllowedHosts {
    /// Returns the entry that has the host of a URL.
    pub fn find(&self, url: &Url) -> Option<&str> {
        let hosts = authority(url);
        self.0.iter().find(|host| hosts.contains(host)).map(String::as_str)
    }
}

/// Returns how a list may name the host of a URL: alone, and with the port.
fn authority(url: &Url) -> [String; 2] {
    let host = url.host_str().unwrap_or_default();
    [host.to_owned(), format!("{host}:{}", url.port_or_known_default().unwrap_or_default())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_urls_are_recognized_in_every_scheme() {
        for url in
            ["http://localhost/", "http://127.0.0.1:1", "http://[::1]/", "postgres://u:p@127.0.0.1:5432/x"]
        {
            assert!(is_loopback(&url.parse().unwrap()), "{url}");
        }
        for url in ["http://10.0.0.1/", "postgres://db.example/x", "postgres://10.0.0.1/x"] {
            assert!(!is_loopback(&url.parse().unwrap()), "{url}");
        }
    }

    #[test]
    fn addresses_are_matched_with_networks() {
        let is_in = |network: &str, address: &str| {
            contains(&[parse_network(network).unwrap()], address.parse().unwrap())
        };
        assert!(is_in("10.0.0.0/8", "10.255.0.1"));
        assert!(is_in("10.1.2.3/8", "10.255.0.1"));
        assert!(!is_in("10.0.0.0/8", "11.0.0.1"));
        assert!(is_in("127.0.0.1", "127.0.0.1"));
        assert!(!is_in("127.0.0.1", "127.0.0.2"));
        assert!(is_in("0.0.0.0/0", "8.8.8.8"));
        assert!(is_in("fd00::/8", "fd12::1"));
        assert!(is_in("::1", "::1"));
        assert!(is_in("10.0.0.0/8", "::ffff:10.1.1.1"));
        for invalid in ["10.0.0.0/33", "x", "10.0.0.0/", ""] {
            assert!(parse_network(invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn special_purpose_addresses_are_not_public() {
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
        assert_eq!(SPECIAL_PURPOSE_NETWORKS.len(), 19, "every network parses");
    }

    #[test]
    fn list_of_hosts_has_names_and_addresses() {
        assert_eq!("".parse(), Ok(AllowedHosts::default()));
        for wrong in ["http://a", "a/b", "a:b", "a b", "user@a"] {
            assert!(wrong.parse::<AllowedHosts>().is_err(), "{wrong}");
        }
    }
}
