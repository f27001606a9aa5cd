//! Where a request comes from, and under which address it reached us. What a proxy says is believed only from the
//! proxies that are trusted by configuration, in `Forwarded` or in the `X-Forwarded-` headers. A proxy keeps one of the two
//! and passes the other on as the client made it, so where both are there, only that counts in which they agree.

use std::net::IpAddr;

use salvo::Request;
use salvo::http::header::{FORWARDED, HOST};

use crate::model::network::Network;

/// What proxies note at every hop: the parameter of `Forwarded`, and the header of its own.
type Note = (&'static str, &'static str);

const CLIENT: Note = ("for", "x-forwarded-for");
const HOST_ASKED: Note = ("host", "x-forwarded-host");
const SCHEME: Note = ("proto", "x-forwarded-proto");

fn is_trusted(address: IpAddr, trusted: &[Network]) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// The address of the client: the last one before the trusted proxies.
pub fn peer(req: &Request, trusted: &[Network]) -> Option<IpAddr> {
    let nearest = nearest(req)?;
    let clients = notes(req, CLIENT).map(|hops| Some(behind(nearest, &hops?, trusted).0));
    Some(agreed(clients).unwrap_or(nearest))
}

/// The address under which the client reached the service, as `scheme://host`.
pub fn origin(req: &Request, trusted: &[Network]) -> String {
    let said = |note| {
        let nearest = nearest(req).filter(|&nearest| is_trusted(nearest, trusted))?;
        let hops = notes(req, CLIENT).map(|hops| hops.map_or(0, |hops| behind(nearest, &hops, trusted).1));
        let [standard, other] = notes(req, note);
        let said = [(standard, hops[0]), (other, hops[1])].map(|(values, hops)| outermost(values?, hops));
        agreed(said)
    };
    let scheme = said(SCHEME).filter(|scheme| scheme == "https");
    let scheme = scheme.unwrap_or_else(|| req.scheme().to_string());
    let host = said(HOST_ASKED);
    let host = host.or_else(|| req.uri().authority().map(ToString::to_string));
    let host =
        host.or_else(|| req.headers().get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned));
    format!("{scheme}://{}", host.filter(|host| is_host(host)).unwrap_or_else(|| "localhost".to_owned()))
}

/// Who the connection is from.
fn nearest(req: &Request) -> Option<IpAddr> {
    req.remote_addr().ip().map(|address| address.to_canonical())
}

/// The address before the trusted proxies, and how many hops of a list they noted.
fn behind(nearest: IpAddr, hops: &[String], trusted: &[Network]) -> (IpAddr, usize) {
    let (mut client, mut noted) = (nearest, 0);
    while is_trusted(client, trusted)
        && let Some(before) = hops.iter().rev().nth(noted).and_then(|hop| address(hop))
    {
        client = before;
        noted += 1;
    }
    (client, noted)
}

/// What the outermost of the trusted proxies said, of a list to which they added so many values, or one that was made by
/// the first and left alone by the others. What comes before is the client's.
fn outermost(mut values: Vec<String>, hops: usize) -> Option<String> {
    let place = values.len().saturating_sub(hops.max(1));
    Some(values.swap_remove(place)).filter(|value| !value.is_empty())
}

/// What is said twice alike, or once.
fn agreed<T: PartialEq>(said: [Option<T>; 2]) -> Option<T> {
    match said {
        [Some(one), Some(other)] => (one == other).then_some(one),
        [one, other] => one.or(other),
    }
}

/// Whether a text can stand as the host of a URL.
fn is_host(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
}

/// The values of a note, one for every hop: those of `Forwarded`, where any hop has it, and those of its own header.
fn notes(req: &Request, (parameter, header): Note) -> [Option<Vec<String>>; 2] {
    let hops = list(req, FORWARDED.as_str()).into_iter().map(|hop| {
        let pairs = hop.split(';').filter_map(|pair| pair.trim().split_once('='));
        let mut values = pairs.filter(|(name, _)| name.eq_ignore_ascii_case(parameter));
        values.next().map(|(_, value)| value.trim_matches('"').to_owned()).unwrap_or_default()
    });
    let has_any = |values: &Vec<String>| values.iter().any(|value| !value.is_empty());
    [hops.collect(), list(req, header)].map(|values| Some(values).filter(has_any))
}

/// The values of a comma-separated header, first to last. A client's bytes that are no text hide none of a proxy's.
fn list(req: &Request, header: &str) -> Vec<String> {
    let values = req.headers().get_all(header).iter();
    let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()));
    values
        .flat_map(|value| value.split(',').map(|value| value.trim().to_owned()).collect::<Vec<_>>())
        .collect()
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

    /// A request from an address, which says in its head what is said of it.
    fn request(from: &str, head: &[(&'static str, &str)]) -> Request {
        let mut req = Request::new();
        *req.remote_addr_mut() = std::net::SocketAddr::new(from.parse().unwrap(), 40_000).into();
        for (name, value) in head {
            req.headers_mut().append(*name, value.parse().unwrap());
        }
        req
    }

    /// Where requests of strangers come from, where two proxies are trusted.
    fn client(head: &[(&'static str, &str)]) -> String {
        let trusted = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        peer(&request("10.0.0.1", head), &trusted).unwrap().to_string()
    }

    #[test]
    fn nobody_but_a_trusted_proxy_says_where_a_request_is_from() {
        let head = [("forwarded", "for=192.0.2.1"), ("x-forwarded-for", "192.0.2.1")];
        let trusted = ["10.0.0.1".parse().unwrap()];
        assert_eq!(peer(&request("198.51.100.7", &head), &trusted).unwrap().to_string(), "198.51.100.7");
        assert_eq!(client(&[]), "10.0.0.1");
        // The last that is no proxy of ours: what comes before it is said by strangers.
        assert_eq!(client(&[("x-forwarded-for", "192.0.2.1, 198.51.100.7")]), "198.51.100.7");
        assert_eq!(client(&[("x-forwarded-for", "192.0.2.1, 198.51.100.7, 10.0.0.2")]), "198.51.100.7");
        assert_eq!(
            client(&[("forwarded", "for=192.0.2.1, For=\"198.51.100.7:80\";proto=https")]),
            "198.51.100.7"
        );
        assert_eq!(
            client(&[("forwarded", "for=192.0.2.1"), ("forwarded", "for=198.51.100.7")]),
            "198.51.100.7"
        );
    }

    #[test]
    fn where_both_conventions_are_there_only_that_counts_in_which_they_agree() {
        let ours = ("x-forwarded-for", "198.51.100.7");
        assert_eq!(client(&[ours, ("forwarded", "for=192.0.2.1")]), "10.0.0.1");
        assert_eq!(client(&[ours, ("forwarded", "for=unknown")]), "10.0.0.1");
        assert_eq!(
            client(&[("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=198.51.100.7")]),
            "10.0.0.1"
        );
        assert_eq!(client(&[ours, ("forwarded", "for=192.0.2.1, for=198.51.100.7")]), "198.51.100.7");
        // One that says nothing of the client's address is none.
        assert_eq!(client(&[ours, ("forwarded", "proto=https")]), "198.51.100.7");
        // Bytes that are no text hide nothing: were the list of the proxy gone, the other would be believed.
        let mut req = request("10.0.0.1", &[("x-forwarded-for", "192.0.2.1")]);
        let noted = salvo::http::HeaderValue::from_bytes(b"for=\xff, for=198.51.100.7").unwrap();
        req.headers_mut().insert(FORWARDED, noted);
        assert_eq!(peer(&req, &["10.0.0.1".parse().unwrap()]).unwrap().to_string(), "10.0.0.1");
    }

    #[test]
    fn the_address_of_the_service_is_what_the_outermost_trusted_proxy_says() {
        let trusted = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let asked = |from, head: &[(&'static str, &str)]| {
            let mut req = request(from, head);
            req.headers_mut().insert(HOST, "inside:8080".parse().unwrap());
            origin(&req, &trusted)
        };
        let said = [("x-forwarded-for", "198.51.100.7"), ("x-forwarded-host", "api.example.com")];
        let said = [said[0], said[1], ("x-forwarded-proto", "https")];
        assert_eq!(asked("10.0.0.1", &said), "https://api.example.com");
        assert_eq!(asked("198.51.100.7", &said), "http://inside:8080");
        // Values that the client sent along come first.
        let mut with_more = said;
        with_more[1].1 = "evil.example, api.example.com";
        with_more[2].1 = "ftp, https";
        assert_eq!(asked("10.0.0.1", &with_more), "https://api.example.com");
        // Of two proxies that both note it, the first knows; or only that one does.
        let two = "client.example, api.example.com, 10.0.0.2:8080";
        let chain = [("x-forwarded-for", "198.51.100.7, 10.0.0.2"), ("x-forwarded-host", two)];
        assert_eq!(asked("10.0.0.1", &chain), "http://api.example.com");
        let chain = [chain[0], ("x-forwarded-host", "api.example.com")];
        assert_eq!(asked("10.0.0.1", &chain), "http://api.example.com");
        let standard = "for=192.0.2.1;host=evil.example, for=198.51.100.7;host=api.example.com;proto=https, for=10.0.0.2";
        assert_eq!(asked("10.0.0.1", &[("forwarded", standard)]), "https://api.example.com");
        // A client's own word beside that of the proxy.
        let beside = [said[0], said[1], said[2], ("forwarded", "for=198.51.100.7;host=evil.example")];
        assert_eq!(asked("10.0.0.1", &beside), "https://inside:8080");
    }
}
