//! In which form an answer travels: its entity tag, whether the client has it already, and its compression.
//!
//! A tag names the identity representation; a compressed one is the same tag with the coding's name behind it, so
//! each is a strong tag of its own and every one of them is recognised on the next request.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use salvo::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use salvo::http::{HeaderMap, HeaderValue, Method, ResBody, StatusCode};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, async_trait};

use crate::http::middleware::accept::weighted;
use crate::response_cache::{self, CachedResponse};

/// Below this an answer is sent as it is.
const COMPRESSED_FROM: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Zstd,
    Brotli,
    Gzip,
}

impl Coding {
    /// In the order in which they are preferred when the client does not care.
    const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];

    const fn name(self) -> &'static str {
        match self {
            Coding::Zstd => "zstd",
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }

    /// Chooses the coding that an `Accept-Encoding` header likes best; `None` for identity.
    fn choose(accepted: &str) -> Option<Coding> {
        let own = |name: &str| {
            weighted(accepted).find(|(coding, _)| coding.eq_ignore_ascii_case(name)).map(|(_, weight)| weight)
        };
        let others = own("*").unwrap_or(0);
        let mut best = None;
        for coding in Coding::ALL {
            let weight = own(coding.name()).unwrap_or(others);
            if weight > best.map_or(0, |(_, weight)| weight) {
                best = Some((coding, weight));
            }
        }
        // A client that likes identity better says so by name.
        let identity = own("identity").unwrap_or(0);
        best.filter(|(_, weight)| *weight >= identity).map(|(coding, _)| coding)
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

/// Gives answers their tag, leaves out what the client has, and compresses the rest.
pub struct Represent;

#[async_trait]
impl Handler for Represent {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        ctrl.call_next(req, depot, res).await;
        let reads = matches!(*req.method(), Method::GET | Method::HEAD);
        if reads {
            res.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding, Authorization"));
        }
        let ResBody::Once(body) = &res.body else { return };
        let body = body.clone();
        // What was tagged and encoded before, if the body is that of an answer that is kept.
        let finished = depot.get_typed::<Arc<CachedResponse>>().ok().filter(|kept| *kept.body() == body);
        let accepted = joined(req.headers(), ACCEPT_ENCODING.as_str());
        let coding =
            Coding::choose(&accepted).filter(|_| body.len() >= COMPRESSED_FROM && is_text(res.headers()));
        if reads && res.status_code == Some(StatusCode::OK) {
            let tag =
                finished.as_ref().map_or_else(|| response_cache::etag(&body), |kept| kept.etag().to_owned());
            let headers = res.headers_mut();
            headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-cache"));
            if let Ok(value) = HeaderValue::from_str(&quoted(&tag, coding)) {
                headers.insert(ETAG, value);
            }
            if knows(&joined(req.headers(), IF_NONE_MATCH.as_str()), &tag) {
                headers.remove(CONTENT_TYPE);
                res.status_code(StatusCode::NOT_MODIFIED);
                res.body(ResBody::None);
                return;
            }
        }
        let encode = |coding: Coding| match finished {
            Some(kept) => kept.encoded(coding.name(), |body| coding.encode(body)),
            None => coding.encode(&body).map(Bytes::from),
        };
        let encoded = coding.and_then(|coding| Some((coding, encode(coding).ok()?)));
        let length = match encoded {
            Some((coding, encoded)) => {
                res.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
                let length = encoded.len();
                res.body(ResBody::Once(encoded));
                length
            }
            None => body.len(),
        };
        if *req.method() == Method::HEAD {
            res.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
    }
}

/// Whether compressing is worth it.
fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/") || kind.contains("json") || kind.contains("javascript")
}

fn joined(headers: &HeaderMap, name: &str) -> String {
    let values: Vec<_> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
    values.join(",")
}

fn quoted(tag: &str, coding: Option<Coding>) -> String {
    match coding {
        Some(coding) => format!("\"{tag}-{}\"", coding.name()),
        None => format!("\"{tag}\""),
    }
}

/// Whether an `If-None-Match` header names the tag, in whichever coding, by weak comparison.
fn knows(header: &str, tag: &str) -> bool {
    if header.trim() == "*" {
        return true;
    }
    // Between two quotes stands a tag; what is outside of them are commas, spaces and W/.
    let opaque_tags = header.split('"').skip(1).step_by(2);
    let mut codings = Coding::ALL.iter().map(|coding| Some(*coding)).chain([None]);
    let own: Vec<String> = codings.by_ref().map(|coding| quoted(tag, coding)).collect();
    opaque_tags.into_iter().any(|known| own.iter().any(|own| own.trim_matches('"') == known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codings_are_chosen_by_weight_then_by_ours() {
        for (accepted, expected) in [
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
            assert_eq!(Coding::choose(accepted), expected, "{accepted}");
        }
    }

    #[test]
    fn a_tag_is_known_in_any_coding_weak_or_strong_among_others() {
        for header in
            ["\"abc\"", "W/\"abc\"", "\"x,y\", \"abc-gzip\"", "W/\"abc-br\" , \"z\"", "*", "\"abc-zstd\""]
        {
            assert!(knows(header, "abc"), "{header}");
        }
        for header in ["", "\"abcd\"", "abc", "\"abc-xz\"", "\"*\""] {
            assert!(!knows(header, "abc"), "{header}");
        }
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same() {
        let text = "tidemark ".repeat(500).into_bytes();
        let gzip = Coding::Gzip.encode(&text).unwrap();
        let mut decoded = Vec::new();
        std::io::copy(&mut flate2::read::GzDecoder::new(&gzip[..]), &mut decoded).unwrap();
        assert_eq!(decoded, text);
        assert_eq!(zstd::decode_all(&Coding::Zstd.encode(&text).unwrap()[..]).unwrap(), text);
        let brotli = Coding::Brotli.encode(&text).unwrap();
        let mut decoded = Vec::new();
        brotli::BrotliDecompress(&mut &brotli[..], &mut decoded).unwrap();
        assert_eq!(decoded, text);
    }
}
