//! Where a request comes from, and under which address it reached us. What a proxy says is believed only from the
//! proxies that are trusted by configuration.

use std::net::IpAddr;

use salvo::Request;
use salvo::http::header::{FORWARDED, HOST};

use crate::model::network::Network;

fn is_trusted(address: IpAddr, trusted: &[Network]) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// The address of the client: the last one before the trusted proxies.
pub fn peer(req: &Request, trusted: &[Network]) -> Option<IpAddr> {
    let mut peer = req.remote_addr().ip()?.to_canonical();
    let mut hops = forwarded(req, "for").unwrap_or_else(|| list(req, "x-forwarded-for"));
    while is_trusted(peer, trusted)
        && let Some(before) = hops.pop().as_deref().and_then(address)
    {
        peer = before;
    }
    Some(peer)
}

/// The address under which the client reached the service, as `scheme://host`.
pub fn origin(req: &Request, trusted: &[Network]) -> String {
    let proxied = req.remote_addr().ip().is_some_and(|peer| is_trusted(peer, trusted));
    let said = |parameter, header| {
        let values = forwarded(req, parameter).unwrap_or_else(|| list(req, header));
        values.into_iter().next().filter(|value| !value.is_empty())
    };
    let scheme =
        proxied.then(|| said("proto", "x-forwarded-proto")).flatten().filter(|scheme| scheme == "https");
    let scheme = scheme.unwrap_or_else(|| req.scheme().to_string());
    let host = proxied.then(|| said("host", "x-forwarded-host")).flatten();
    let host = host.or_else(|| req.uri().authority().map(ToString::to_string));
    let host =
        host.or_else(|| req.headers().get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned));
    format!("{scheme}://{}", host.filter(|host| is_host(host)).unwrap_or_else(|| "localhost".to_owned()))
}

/// Whether a text can stand as the host of a URL.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
}

/// The values of a comma-separated header, first to last.
fn list(req: &Request, header: &'static str) -> Vec<String> {
    let values = req.headers().get_all(header).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|value| value.trim().to_owned()).collect()
}

/// The values of one parameter of `Forwarded`, one for every hop; `None` without the header.
fn forwarded(req: &Request, parameter: &str) -> Option<Vec<String>> {
    req.headers().contains_key(FORWARDED).then(|| {
        let hops = list(req, "forwarded").into_iter();
        hops.map(|hop| {
            let pairs = hop.split(';').filter_map(|pair| pair.trim().split_once('='));
            let mut values = pairs.filter(|(name, _)| name.eq_ignore_ascii_case(parameter));
            values.next().map(|(_, value)| value.trim_matches('"').to_owned()).unwrap_or_default()
        })
        .collect()
    })
}

/// Reads an address with or without a port, in brackets or not.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare =
        text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(text, |(address, _)| address);
    let parsed =
        bare.parse().ok().or_else(|| bare.split_once(':').and_then(|(address, _)| address.parse().ok()));
    parsed.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_ports() {
        for text in ["192.0.2.1", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
            assert_eq!(address(text), Some("192.0.2.1".parse().unwrap()), "{text}");
        }
        assert_eq!(address("[2001:db8::1]"), Some("2001:db8::1".parse().unwrap()));
        assert_eq!(address("unknown"), None);
    }
}
