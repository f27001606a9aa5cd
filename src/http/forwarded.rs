//! The client's address and the service's own URL behind proxies. `Forwarded` and `X-Forwarded-*` count only from trusted
//! proxies. A proxy sets one of the two and passes the other on as the client sent it, so if a request has both, only
//! what both agree on counts.

use std::net::IpAddr;

use ipnet::IpNet;
use salvo::http::header::{FORWARDED, HOST};
use salvo::{Depot, Request};

use crate::app::App;
use crate::model::network;

/// A value that each proxy adds: its parameter of `Forwarded`, and its `X-Forwarded-*` header.
type ForwardedField = (&'static str, &'static str);

const FOR: ForwardedField = ("for", "x-forwarded-for");
const HOST_FIELD: ForwardedField = ("host", "x-forwarded-host");
const PROTO: ForwardedField = ("proto", "x-forwarded-proto");

/// Returns the URL of the service without a path: the configured one, or the request's.
pub fn base_url(req: &Request, depot: &Depot) -> String {
    let Ok(App { settings, .. }) = depot.get_typed::<App>() else { return origin(req, &[]) };
    settings.public_url.clone().unwrap_or_else(|| origin(req, &settings.trusted_proxies))
}

/// Returns the client's address: the last one that is not a trusted proxy.
pub fn client_address(req: &Request, trusted: &[IpNet]) -> Option<IpAddr> {
    let remote = remote_address(req)?;
    let clients = hop_values(req, FOR).map(|hops| Some(skip_trusted(remote, &hops?, trusted).0));
    Some(reconcile(clients).unwrap_or(remote))
}

/// Returns the scheme and host that the client requested.
fn origin(req: &Request, trusted: &[IpNet]) -> String {
    let forwarded = |field| {
        let remote = remote_address(req).filter(|&remote| network::contains(trusted, remote))?;
        let hops =
            hop_values(req, FOR).map(|hops| hops.map_or(0, |hops| skip_trusted(remote, &hops, trusted).1));
        let [standard, legacy] = hop_values(req, field);
        reconcile([(standard, hops[0]), (legacy, hops[1])].map(|(values, hops)| outermost(values?, hops)))
    };
    let scheme = forwarded(PROTO).filter(|scheme| scheme == "https");
    let scheme = scheme.unwrap_or_else(|| req.scheme().to_string());
    let host = forwarded(HOST_FIELD);
    let host = host.or_else(|| req.uri().authority().map(ToString::to_string));
    let host =
        host.or_else(|| req.headers().get(HOST).and_then(|value| value.to_str().ok()).map(str::to_owned));
    format!("{scheme}://{}", host.filter(|host| is_host(host)).unwrap_or_else(|| "localhost".to_owned()))
}

fn remote_address(req: &Request) -> Option<IpAddr> {
    req.remote_addr().ip().map(|address| address.to_canonical())
}

/// Returns the last address before the trusted proxies, and the number of hops that these added.
fn skip_trusted(remote: IpAddr, hops: &[String], trusted: &[IpNet]) -> (IpAddr, usize) {
    let (mut client, mut skipped) = (remote, 0);
    while network::contains(trusted, client)
        && let Some(previous) = hops.iter().rev().nth(skipped).and_then(|hop| parse_address(hop))
    {
        client = previous;
        skipped += 1;
    }
    (client, skipped)
}

/// Returns the value of the outermost trusted proxy: either all `hops` proxies added a value, or only the outermost one.
/// Values before it come from the client.
fn outermost(mut values: Vec<String>, hops: usize) -> Option<String> {
    let index = values.len().saturating_sub(hops.max(1));
    Some(values.swap_remove(index)).filter(|value| !value.is_empty())
}

/// Returns the value of both headers if they agree, or that of the only one.
fn reconcile<T: PartialEq>(values: [Option<T>; 2]) -> Option<T> {
    match values {
        [Some(one), Some(other)] => (one == other).then_some(one),
        [one, other] => one.or(other),
    }
}

fn is_host(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
}

/// Returns the value of each hop in `Forwarded` and in the field's own header; `None` if all are empty.
fn hop_values(req: &Request, (parameter, header): ForwardedField) -> [Option<Vec<String>>; 2] {
    let hops = split_header(req, FORWARDED.as_str()).into_iter().map(|hop| {
        let pairs = hop.split(';').filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(name, _)| name.eq_ignore_ascii_case(parameter));
        values.next().map(|(_, value)| value.trim_matches('"').to_owned()).unwrap_or_default()
    });
    let has_any = |values: &Vec<String>| values.iter().any(|value| !value.is_empty());
    [hops.collect(), split_header(req, header)].map(|values| Some(values).filter(has_any))
}

/// Returns the values of a comma-separated header. Invalid UTF-8 of a client must not hide the values of a proxy.
fn split_header(req: &Request, header: &str) -> Vec<String> {
    let mut values = Vec::new();
    for line in req.headers().get_all(header) {
        let line = String::from_utf8_lossy(line.as_bytes());
        values.extend(line.split(',').map(|value| value.trim().to_owned()));
    }
    values
}

/// Parses an address with or without a port and brackets.
fn parse_address(text: &str) -> Option<IpAddr> {
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
    fn addresses_are_parsed_with_and_without_ports() {
        for text in ["192.0.2.1", "192.0.2.1:80", "[::ffff:192.0.2.1]:80"] {
            assert_eq!(parse_address(text), Some("192.0.2.1".parse().unwrap()), "{text}");
        }
        assert_eq!(parse_address("[2001:db8::1]"), Some("2001:db8::1".parse().unwrap()));
        assert_eq!(parse_address("unknown"), None);
    }

    fn proxies() -> [IpNet; 2] {
        ["10.0.0.1/32", "10.0.0.2/32"].map(|proxy| proxy.parse().unwrap())
    }

    fn request(remote: &str, headers: &[(&'static str, &str)]) -> Request {
        let mut req = Request::new();
        *req.remote_addr_mut() = std::net::SocketAddr::new(remote.parse().unwrap(), 40_000).into();
        for (name, value) in headers {
            req.headers_mut().append(*name, value.parse().unwrap());
        }
        req
    }

    /// The client address of a request that a trusted proxy forwards.
    fn client(headers: &[(&'static str, &str)]) -> String {
        client_address(&request("10.0.0.1", headers), &proxies()).unwrap().to_string()
    }

    #[test]
    fn forwarded_headers_count_only_from_trusted_proxies() {
        let spoofed = [("forwarded", "for=192.0.2.1"), ("x-forwarded-for", "192.0.2.1")];
        let address = client_address(&request("198.51.100.7", &spoofed), &proxies()[..1]);
        assert_eq!(address.unwrap().to_string(), "198.51.100.7");
        assert_eq!(client(&[]), "10.0.0.1");
        for headers in [
            &[("x-forwarded-for", "192.0.2.1, 198.51.100.7")][..],
            &[("x-forwarded-for", "192.0.2.1, 198.51.100.7, 10.0.0.2")],
            &[("forwarded", "for=192.0.2.1, For=\"198.51.100.7:80\";proto=https")],
            &[("forwarded", "for=192.0.2.1"), ("forwarded", "for=198.51.100.7")],
        ] {
            assert_eq!(client(headers), "198.51.100.7", "{headers:?}");
        }
    }

    #[test]
    fn of_both_headers_only_agreeing_values_count() {
        let legacy = ("x-forwarded-for", "198.51.100.7");
        assert_eq!(client(&[legacy, ("forwarded", "for=192.0.2.1")]), "10.0.0.1");
        assert_eq!(client(&[legacy, ("forwarded", "for=unknown")]), "10.0.0.1");
        assert_eq!(
            client(&[("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=198.51.100.7")]),
            "10.0.0.1"
        );
        assert_eq!(client(&[legacy, ("forwarded", "for=192.0.2.1, for=198.51.100.7")]), "198.51.100.7");
        // `Forwarded` without an address is ignored.
        assert_eq!(client(&[legacy, ("forwarded", "proto=https")]), "198.51.100.7");
        // Invalid UTF-8 does not remove `Forwarded`, which would make the other header count alone.
        let mut req = request("10.0.0.1", &[("x-forwarded-for", "192.0.2.1")]);
        let value = salvo::http::HeaderValue::from_bytes(b"for=\xff, for=198.51.100.7").unwrap();
        req.headers_mut().insert(FORWARDED, value);
        assert_eq!(client_address(&req, &proxies()[..1]).unwrap().to_string(), "10.0.0.1");
    }

    #[test]
    fn origin_is_that_of_the_outermost_trusted_proxy() {
        let origin_of = |remote, headers: &[(&'static str, &str)]| {
            let mut req = request(remote, headers);
            req.headers_mut().insert(HOST, "inside:8080".parse().unwrap());
            origin(&req, &proxies())
        };
        let headers = [
            ("x-forwarded-for", "198.51.100.7"),
            ("x-forwarded-host", "api.example.com"),
            ("x-forwarded-proto", "https"),
        ];
        assert_eq!(origin_of("10.0.0.1", &headers), "https://api.example.com");
        assert_eq!(origin_of("198.51.100.7", &headers), "http://inside:8080");
        // Values of the client come first.
        let mut spoofed = headers;
        spoofed[1].1 = "evil.example, api.example.com";
        spoofed[2].1 = "ftp, https";
        assert_eq!(origin_of("10.0.0.1", &spoofed), "https://api.example.com");
        // Either both of two proxies add a value, or only the outermost one.
        let hops = ("x-forwarded-for", "198.51.100.7, 10.0.0.2");
        let hosts = ("x-forwarded-host", "client.example, api.example.com, 10.0.0.2:8080");
        assert_eq!(origin_of("10.0.0.1", &[hops, hosts]), "http://api.example.com");
        assert_eq!(origin_of("10.0.0.1", &[hops, headers[1]]), "http://api.example.com");
        let standard = "for=192.0.2.1;host=evil.example, for=198.51.100.7;host=api.example.com;proto=https, for=10.0.0.2";
        assert_eq!(origin_of("10.0.0.1", &[("forwarded", standard)]), "https://api.example.com");
        // The client sent `Forwarded`, the proxy set the other headers.
        let both = [headers[0], headers[1], headers[2], ("forwarded", "for=198.51.100.7;host=evil.example")];
        assert_eq!(origin_of("10.0.0.1", &both), "https://inside:8080");
    }
}
