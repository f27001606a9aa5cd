//! What a request asks: the parameters of ClickHouse's HTTP interface from the query string, the headers, a form and the body.
//! It undoes compression and tells settings from parameters; whether the request may run is decided elsewhere.

use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};

use super::frames::{self, FrameError};
use super::reply::{Failure, too_large};
use super::session;
use super::told::Parameter;

/// Names that steer the HTTP interface or that only a server with users, roles and quotas knows.
const IGNORED: [&str; 11] = [
    "role",
    "quota_key",
    "stacktrace",
    "buffer_size",
    "client_protocol_version",
    "close_session",
    "cancel_http_readonly_queries_on_client_close",
    "send_progress_in_http_headers",
    "http_headers_progress_interval_ms",
    "enable_http_compression",
    "_",
];

/// The session that a request belongs to.
#[derive(Clone, Debug)]
pub(super) struct SessionName {
    pub id: String,
    pub timeout: Duration,
    pub must_exist: bool,
}

/// Everything a request says, apart from its body.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    pub query: Option<String>,
    pub query_id: Option<String>,
    pub database: Option<String>,
    pub default_format: Option<String>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub compress: bool,
    pub decompress: bool,
    pub whole: bool,
    pub session: Option<SessionName>,
    pub parameters: Vec<Parameter>,
    pub settings: Vec<(String, String)>,
}

impl Asked {
    /// Reads the query string and the headers.
    pub(super) fn new(query: &str, headers: &HeaderMap) -> Result<Self, Failure> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let mut asked = Self {
            database: header("x-clickhouse-database"),
            default_format: header("x-clickhouse-format"),
            ..Self::default()
        };
        let mut session = (None, session::DEFAULT_TIMEOUT, false);
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "session_id" if !value.is_empty() => session.0 = Some(value.into_owned()),
                "session_id" => {}
                "session_timeout" => session.1 = seconds(&value)?,
                "session_check" => session.2 = on(&value),
                _ => asked.take(&name, value.into_owned()),
            }
        }
        if let (Some(id), timeout, must_exist) = session {
            asked.session = Some(SessionName { id, timeout, must_exist });
        }
        Ok(asked)
    }

    /// Takes one parameter, of the query string or of a form.
    fn take(&mut self, name: &str, value: String) {
        match name {
            "query" => self.query = Some(value),
            "query_id" => self.query_id = Some(value),
            "database" => self.database = Some(value),
            "default_format" => self.default_format = Some(value),
            "user" => self.user = Some(value),
            "password" => self.password = Some(value),
            "compress" => self.compress = on(&value),
            "decompress" => self.decompress = on(&value),
            "wait_end_of_query" | "http_wait_end_of_query" => self.whole |= on(&value),
            _ if IGNORED.contains(&name) => {}
            _ => match name.strip_prefix("param_") {
                Some(parameter) => self.parameters.push((parameter.to_owned(), value)),
                None => self.settings.push((name.to_owned(), value)),
            },
        }
    }

    /// Reads a body of `multipart/form-data`, whose fields count like the query string's.
    pub(super) async fn take_form(&mut self, boundary: String, body: Bytes) -> Result<(), Failure> {
        let malformed =
            |error: multer::Error| Failure::bad_request(format!("the form cannot be read: {error}"));
        let whole = futures_util::stream::once(async move { Ok::<_, std::io::Error>(body) });
        let mut form = multer::Multipart::new(whole, boundary);
        while let Some(field) = form.next_field().await.map_err(malformed)? {
            let name = field.name().unwrap_or_default().to_owned();
            if field.file_name().is_some() {
                let text =
                    format!("external tables ({name}) are not supported here: insert the rows into a table");
                return Err(Failure::new(48, "NOT_IMPLEMENTED", text));
            }
            let value = String::from_utf8(field.bytes().await.map_err(malformed)?.into())
                .map_err(|_| Failure::bad_request(format!("the form's field {name} is not UTF-8")))?;
            self.take(&name, value);
        }
        Ok(())
    }
}

/// The boundary of a form, when the body is one.
pub(super) fn boundary(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let Some(kind) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return Ok(None) };
    if !kind.trim_start().to_ascii_lowercase().starts_with("multipart/form-data") {
        return Ok(None);
    }
    multer::parse_boundary(kind).map(Some).map_err(|_| Failure::bad_request("the form names no boundary"))
}

/// Undoes the compression of a body, of which at most `limit` bytes may come out.
pub(super) fn decode(headers: &HeaderMap, framed: bool, body: Bytes, limit: usize) -> Result<Bytes, Failure> {
    let encoding = headers
        .get(CONTENT_ENCODING)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase());
    let body = match encoding.as_deref() {
        None | Some("" | "identity") => body,
        Some("gzip" | "x-gzip") => unpack(flate2::read::MultiGzDecoder::new(&body[..]), limit)?,
        Some("deflate") => unpack(flate2::read::ZlibDecoder::new(&body[..]), limit)?,
        Some("lz4") => unpack_lz4(&body, limit)?,
        Some("zstd") => {
            let decoder = zstd::stream::read::Decoder::with_buffer(&body[..]);
            unpack(
                decoder.map_err(|error| Failure::bad_request(format!("the body is not zstd: {error}")))?,
                limit,
            )?
        }
        Some(other) => {
            return Err(Failure::new(
                48,
                "NOT_IMPLEMENTED",
                format!("unknown Content-Encoding {other}: use gzip, deflate, lz4 or zstd"),
            ));
        }
    };
    if !framed {
        return Ok(body);
    }
    frames::decode(&body, limit).map_err(|error| match error {
        FrameError::TooLarge(limit) => too_large(limit),
        FrameError::Checksum => Failure::new(40, "CHECKSUM_DOESNT_MATCH", error),
        _ => Failure::new(271, "CANNOT_DECOMPRESS", error),
    })
}

fn unpack(mut decoder: impl std::io::Read, limit: usize) -> Result<Bytes, Failure> {
    let mut raw = Vec::new();
    unpack_more(&mut decoder, &mut raw, limit)?;
    Ok(raw.into())
}

fn unpack_more(decoder: &mut impl std::io::Read, raw: &mut Vec<u8>, limit: usize) -> Result<(), Failure> {
    let most = u64::try_from(limit - raw.len()).unwrap_or(u64::MAX).saturating_add(1);
    decoder.take(most).read_to_end(raw).map_err(|error| {
        Failure::new(271, "CANNOT_DECOMPRESS", format!("the body cannot be decompressed: {error}"))
    })?;
    if raw.len() > limit { Err(too_large(limit)) } else { Ok(()) }
}

/// Undoes LZ4 frames. A body may hold several, after each of which the decoder pauses as at an end;
/// and it takes a frame that is cut between two blocks for a whole one. The mark put behind the body
/// shows that: to an unfinished frame it is a block far too large.
fn unpack_lz4(body: &[u8], limit: usize) -> Result<Bytes, Failure> {
    const MARK: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
    let mut decoder = lz4_flex::frame::FrameDecoder::new(body.chain(&MARK[..]));
    let mut raw = Vec::new();
    while !decoder.get_ref().get_ref().0.is_empty() {
        unpack_more(&mut decoder, &mut raw, limit)?;
    }
    if decoder.get_ref().get_ref().1.len() != MARK.len() {
        return Err(Failure::new(
            271,
            "CANNOT_DECOMPRESS",
            "the body cannot be decompressed: it is cut short",
        ));
    }
    Ok(raw.into())
}

fn on(value: &str) -> bool {
    matches!(value, "1" | "true")
}

fn seconds(value: &str) -> Result<Duration, Failure> {
    let seconds: u64 =
        value.parse().map_err(|_| Failure::bad_request("session_timeout is not a number of seconds"))?;
    let timeout = Duration::from_secs(seconds);
    if timeout > session::LONGEST_TIMEOUT {
        return Err(Failure::bad_request(format!(
            "session_timeout is longer than {} s",
            session::LONGEST_TIMEOUT.as_secs()
        )));
    }
    Ok(timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_parameters_are_told_from_the_interface_s_own_names() {
        let asked = Asked::new(
            "query=SELECT+1&param_a=x%27y&max_threads=2&compress=1&role=r&session_id=&session_check=1",
            &HeaderMap::new(),
        )
        .unwrap();
        assert_eq!(asked.query.as_deref(), Some("SELECT 1"));
        assert_eq!(asked.parameters, [("a".to_owned(), "x'y".to_owned())]);
        assert_eq!(asked.settings, [("max_threads".to_owned(), "2".to_owned())]);
        assert!(asked.compress && !asked.decompress && asked.session.is_none());
        assert!(Asked::new("session_id=a&session_timeout=3601", &HeaderMap::new()).is_err());
    }

    #[test]
    fn every_piece_of_a_compressed_body_counts_and_a_cut_one_is_refused() {
        use std::io::Write as _;
        // two frames, as clients send that compress block by block
        let pieces =
            [vec![b'a'; 300_000], (0..300_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect()];
        let lz4 = |piece: &Vec<u8>| {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(piece).unwrap();
            encoder.finish().unwrap()
        };
        let gzip = |piece: &Vec<u8>| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(piece).unwrap();
            encoder.finish().unwrap()
        };
        let zstd = |piece: &Vec<u8>| zstd::bulk::compress(piece, 1).unwrap();
        let bodies: [(&str, Vec<u8>); 3] = [
            ("lz4", pieces.iter().flat_map(lz4).collect()),
            ("gzip", pieces.iter().flat_map(gzip).collect()),
            ("zstd", pieces.iter().flat_map(zstd).collect()),
        ];
        for (name, body) in bodies {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_ENCODING, name.parse().unwrap());
            let whole = decode(&headers, false, body.clone().into(), 1 << 20).unwrap();
            assert!(whole[..] == pieces.concat(), "{name}");
            for cut in [1, 4, 5, 8, 100, body.len() / 3] {
                let short = body[..body.len() - cut].to_vec();
                assert!(
                    decode(&headers, false, short.into(), 1 << 20).is_err(),
                    "{name} without its last {cut} bytes"
                );
            }
        }
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, "zstd".parse().unwrap());
        let bomb = Bytes::from(zstd::bulk::compress(&vec![0; 1 << 20], 1).unwrap());
        assert_eq!(decode(&headers, false, bomb.clone(), 1 << 20).unwrap().len(), 1 << 20);
        assert_eq!(decode(&headers, false, bomb, (1 << 20) - 1).unwrap_err().code, 223);
    }
}
