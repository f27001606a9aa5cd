//! ETags, 304 responses and compression. A compressed response has the tag of the uncompressed one with the name of the
//! coding appended, so every coding has a strong tag of its own, and `If-None-Match` matches any of them.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use salvo::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use salvo::http::{HeaderMap, HeaderValue, Method, ResBody, StatusCode};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, async_trait};

use super::accept::parse_weights;
use crate::http::output::Uncompressed;
use crate::response_cache::{self, CachedResponse};

const MIN_COMPRESSED_BYTES: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Zstd,
    Brotli,
    Gzip,
}

impl Coding {
    /// Among equal weights, a later one is preferred.
    const ALL: [Coding; 3] = [Coding::Gzip, Coding::Brotli, Coding::Zstd];

    const fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// Returns the preferred coding of an `Accept-Encoding` header; `None` for identity.
    fn negotiate(accept_encoding: &str) -> Option<Coding> {
        let weight_of = |name: &str| {
            let mut weights = parse_weights(accept_encoding);
            weights.find(|(coding, _)| coding.eq_ignore_ascii_case(name)).map(|(_, weight)| weight)
        };
        let default = weight_of("*").unwrap_or(0);
        // Identity is preferred only if it is named.
        let identity = weight_of("identity").unwrap_or(0);
        let codings = Coding::ALL.map(|coding| (coding, weight_of(coding.name()).unwrap_or(default)));
        let (best, weight) = codings.into_iter().max_by_key(|(_, weight)| *weight)?;
        (weight >= identity.max(1)).then_some(best)
    }

    fn encode(self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Coding::Zstd => zstd::encode_all(bytes, 1),
            Coding::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Coding::Brotli => {
                let parameters = brotli::enc::BrotliEncoderParams { quality: 3, ..Default::default() };
                let mut encoded = Vec::new();
                brotli::BrotliCompress(&mut &bytes[..], &mut encoded, &parameters)?;
                Ok(encoded)
            }
        }
    }
}

pub struct EtagAndCompress;

#[async_trait]
impl Handler for EtagAndCompress {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        ctrl.call_next(req, depot, res).await;
        let is_read = matches!(*req.method(), Method::GET | Method::HEAD);
        if is_read {
            res.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding, Authorization"));
        }
        let ResBody::Once(body) = &res.body else { return };
        let body = body.clone();
        // A cached response has its tag and encodings, unless an error replaced its body.
        let cached = depot.get_typed::<Arc<CachedResponse>>().ok().filter(|cached| *cached.body() == body);
        let negotiated = Coding::negotiate(&join_values(req.headers(), ACCEPT_ENCODING.as_str()))
            .filter(|_| body.len() >= MIN_COMPRESSED_BYTES && is_compressible(res.headers()))
            .filter(|_| depot.get_typed::<Uncompressed>().is_err());
        if is_read && res.status_code == Some(StatusCode::OK) {
            let tag = cached.map_or_else(|| response_cache::etag(&body), |cached| cached.etag().to_owned());
            let headers = res.headers_mut();
            headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-cache"));
            if let Ok(value) = HeaderValue::from_str(&quoted_tag(&tag, negotiated)) {
                headers.insert(ETAG, value);
            }
            if matches_tag(&join_values(req.headers(), IF_NONE_MATCH.as_str()), &tag) {
                headers.remove(CONTENT_TYPE);
                res.status_code(StatusCode::NOT_MODIFIED);
                res.body(ResBody::None);
                return;
            }
        }
        let encode = |coding: Coding| match cached {
            Some(cached) => cached.encoded(coding.name(), |plain| coding.encode(plain)),
            None => coding.encode(&body).map(Bytes::from),
        };
        let mut length = body.len();
        if let Some((coding, encoded)) = negotiated.and_then(|coding| Some((coding, encode(coding).ok()?))) {
            res.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
            length = encoded.len();
            res.body(ResBody::Once(encoded));
        }
        if *req.method() == Method::HEAD {
            res.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
    }
}

fn is_compressible(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/") || kind.contains("json") || kind.contains("javascript")
}

fn join_values(headers: &HeaderMap, name: &str) -> String {
    let values: Vec<_> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(",")
}

fn quoted_tag(tag: &str, coding: Option<Coding>) -> String {
    match coding {
        Some(coding) => format!("\"{tag}-{}\"", coding.name()),
        None => format!("\"{tag}\""),
    }
}

/// Whether an `If-None-Match` header matches the tag in any coding, by weak comparison.
fn matches_tag(header: &str, tag: &str) -> bool {
    if header.trim() == "*" {
        return true;
    }
    // Between pairs of quotes are tags; outside are commas, spaces and `W/`.
    let mut sent = header.split('"').skip(1).step_by(2);
    let codings = Coding::ALL.into_iter().map(Some).chain([None]);
    let own: Vec<String> = codings.map(|coding| quoted_tag(tag, coding)).collect();
    sent.any(|sent| own.iter().any(|own| own.trim_matches('"') == sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coding_is_negotiated_by_weight_then_preference() {
        for (accept_encoding, expected) in [
            ("", None),
            ("identity", None),
            ("deflate", None),
            ("gzip", Some(Coding::Gzip)),
            ("gzip, deflate, br, zstd", Some(Coding::Zstd)),
            ("gzip;q=1, zstd;q=0.5", Some(Coding::Gzip)),
            ("*", Some(Coding::Zstd)),
            ("*, zstd;q=0", Some(Coding::Brotli)),
            ("GZIP;q=0, *;q=0", None),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip;q=0.5", Some(Coding::Gzip)),
        ] {
            assert_eq!(Coding::negotiate(accept_encoding), expected, "{accept_encoding}");
        }
    }

    #[test]
    fn tag_matches_in_any_coding() {
        for header in
            ["\"abc\"", "W/\"abc\"", "\"x,y\", \"abc-gzip\"", "W/\"abc-br\" , \"z\"", "*", "\"abc-zstd\""]
        {
            assert!(matches_tag(header, "abc"), "{header}");
        }
        for header in ["", "\"abcd\"", "abc", "\"abc-xz\"", "\"*\""] {
            assert!(!matches_tag(header, "abc"), "{header}");
        }
    }

    #[test]
    fn encoded_bodies_decode_to_the_original() {
        let text = "tidemark ".repeat(500).into_bytes();
        let gzip = Coding::Gzip.encode(&text).unwrap();
        let mut from_gzip = Vec::new();
        std::io::copy(&mut flate2::read::GzDecoder::new(&gzip[..]), &mut from_gzip).unwrap();
        assert_eq!(from_gzip, text);
        assert_eq!(zstd::decode_all(&Coding::Zstd.encode(&text).unwrap()[..]).unwrap(), text);
        let brotli = Coding::Brotli.encode(&text).unwrap();
        let mut from_brotli = Vec::new();
        brotli::BrotliDecompress(&mut &brotli[..], &mut from_brotli).unwrap();
        assert_eq!(from_brotli, text);
    }
}
