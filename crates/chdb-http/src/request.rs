//! Parses a request: query string, headers, multipart form and compressed body.

use std::io::Read as _;
use std::time::Duration;

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE};

use crate::compressed_blocks::{self, BlockError};
use crate::engine_types::Parameter;
use crate::exception::{Exception, Result};
use crate::session;

/// Parameters that are accepted without effect.
const IGNORED_PARAMETERS: [&str; 10] = [
    "role",
    "quota_key",
    "stacktrace",
    "buffer_size",
    "client_protocol_version",
    "close_session",
    "send_progress_in_http_headers",
    "http_headers_progress_interval_ms",
    "enable_http_compression",
    "_",
];

#[derive(Clone, Debug)]
pub(crate) struct SessionOptions {
    pub id: String,
    pub timeout: Duration,
    pub must_exist: bool,
}

/// A request without its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryRequest {
    pub query: Option<String>,
    pub query_id: Option<String>,
    pub database: Option<String>,
    pub default_format: Option<String>,
    pub user: Option<String>,
    pub password: Option<String>,
    pub compress: bool,
    pub decompress: bool,
    /// Send nothing before the result is complete.
    pub buffer_all: bool,
    /// Cancel the query if the client disconnects, provided that it is read-only.
    pub cancel_readonly_on_close: bool,
    pub session: Option<SessionOptions>,
    pub parameters: Vec<Parameter>,
    pub settings: Vec<(String, String)>,
}

impl QueryRequest {
    pub(crate) fn parse(query: &str, headers: &HeaderMap) -> Result<Self> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let mut request = Self {
            database: header("x-clickhouse-database"),
            default_format: header("x-clickhouse-format"),
            ..Self::default()
        };
        let mut session =
            SessionOptions { id: String::new(), timeout: session::DEFAULT_TIMEOUT, must_exist: false };
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "session_id" if !value.is_empty() => session.id = value.into_owned(),
                "session_id" => {}
                "session_timeout" => session.timeout = parse_timeout(&value)?,
                "session_check" => session.must_exist = is_true(&value),
                _ => request.set(&name, value.into_owned()),
            }
        }
        request.session = Some(session).filter(|session| !session.id.is_empty());
        Ok(request)
    }

    fn set(&mut self, name: &str, value: String) {
        match name {
            "query" => self.query = Some(value),
            "query_id" => self.query_id = Some(value),
            "database" => self.database = Some(value),
            "default_format" => self.default_format = Some(value),
            "user" => self.user = Some(value),
            "password" => self.password = Some(value),
            "compress" => self.compress = is_true(&value),
            "decompress" => self.decompress = is_true(&value),
            "wait_end_of_query" | "http_wait_end_of_query" => self.buffer_all |= is_true(&value),
            "cancel_http_readonly_queries_on_client_close" => self.cancel_readonly_on_close = is_true(&value),
            _ if IGNORED_PARAMETERS.contains(&name) => {}
            _ => match name.strip_prefix("param_") {
                Some(parameter) => self.parameters.push((parameter.to_owned(), value)),
                None => self.settings.push((name.to_owned(), value)),
            },
        }
    }

    /// Whether the setting `readonly` rejects writes.
    pub(crate) fn is_readonly(&self) -> bool {
        let value =
            self.settings.iter().rev().find(|(name, _)| name == "readonly").map(|(_, value)| &**value);
        !matches!(value, None | Some("" | "0"))
    }

    /// Reads a `multipart/form-data` body, whose fields are equivalent to query parameters.
    pub(crate) async fn read_form(&mut self, boundary: String, body: Bytes) -> Result<()> {
        let malformed = |error: multer::Error| Exception::bad_request(format!("malformed form: {error}"));
        let stream = futures_util::stream::once(async move { Ok::<_, std::io::Error>(body) });
        let mut form = multer::Multipart::new(stream, boundary);
        while let Some(field) = form.next_field().await.map_err(malformed)? {
            let name = field.name().unwrap_or_default().to_owned();
            if field.file_name().is_some() {
                let text =
                    format!("external tables ({name}) are not supported: insert the rows into a table");
                return Err(Exception::unsupported(text));
            }
            let value = String::from_utf8(field.bytes().await.map_err(malformed)?.into())
                .map_err(|_| Exception::bad_request(format!("the form's field {name} is not UTF-8")))?;
            self.set(&name, value);
        }
        Ok(())
    }
}

/// The boundary of a `multipart/form-data` body.
pub(crate) fn multipart_boundary(headers: &HeaderMap) -> Result<Option<String>> {
    let Some(content_type) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return Ok(None);
    };
    if !content_type.trim_start().to_ascii_lowercase().starts_with("multipart/form-data") {
        return Ok(None);
    }
    multer::parse_boundary(content_type)
        .map(Some)
        .map_err(|_| Exception::bad_request("the form has no boundary"))
}

/// Undoes `Content-Encoding` and, with `decompress`, native compression, up to `limit` bytes of output.
pub(crate) fn decode(headers: &HeaderMap, decompress: bool, body: Bytes, limit: usize) -> Result<Bytes> {
    let encoding = headers
        .get(CONTENT_ENCODING)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_ascii_lowercase());
    let decoded = match encoding.as_deref() {
        None | Some("" | "identity") => body,
        Some("gzip" | "x-gzip") => decompress_all(flate2::read::MultiGzDecoder::new(&body[..]), limit)?,
        Some("deflate") => decompress_all(flate2::read::ZlibDecoder::new(&body[..]), limit)?,
        Some("lz4") => decompress_lz4(&body, limit)?,
        Some("zstd") => {
            let decoder = zstd::stream::read::Decoder::with_buffer(&body[..])
                .map_err(|error| Exception::bad_request(format!("the body is not zstd: {error}")))?;
            decompress_all(decoder, limit)?
        }
        Some(other) => {
            let text = format!("unknown Content-Encoding {other}: use gzip, deflate, lz4 or zstd");
            return Err(Exception::unsupported(text));
        }
    };
    if !decompress {
        return Ok(decoded);
    }
    compressed_blocks::decode(&decoded, limit).map_err(|error| match error {
        BlockError::TooLarge(_) => Exception::too_large(limit),
        BlockError::Checksum => Exception::new(40, "CHECKSUM_DOESNT_MATCH", error),
        _ => Exception::cannot_decompress(error),
    })
}

fn decompress_all(mut decoder: impl std::io::Read, limit: usize) -> Result<Bytes> {
    let mut raw = Vec::new();
    decompress_frame(&mut decoder, &mut raw, limit)?;
    Ok(raw.into())
}

fn decompress_frame(decoder: &mut impl std::io::Read, raw: &mut Vec<u8>, limit: usize) -> Result<()> {
    let max = u64::try_from(limit - raw.len()).unwrap_or(u64::MAX).saturating_add(1);
    decoder
        .take(max)
        .read_to_end(raw)
        .map_err(|error| Exception::cannot_decompress(format!("the body cannot be decompressed: {error}")))?;
    if raw.len() > limit { Err(Exception::too_large(limit)) } else { Ok(()) }
}

/// Decompresses LZ4 frames. The decoder stops after each frame, and accepts a frame that is truncated between two blocks.
/// The magic number appended to the body detects that: an unfinished frame reads it as the size of a block.
fn decompress_lz4(body: &[u8], limit: usize) -> Result<Bytes> {
    const MAGIC: [u8; 4] = 0x184D_2204_u32.to_le_bytes();
    let mut decoder = lz4_flex::frame::FrameDecoder::new(body.chain(&MAGIC[..]));
    let mut raw = Vec::new();
    while !decoder.get_ref().get_ref().0.is_empty() {
        decompress_frame(&mut decoder, &mut raw, limit)?;
    }
    if decoder.get_ref().get_ref().1.len() != MAGIC.len() {
        return Err(Exception::cannot_decompress("the body cannot be decompressed: it is truncated"));
    }
    Ok(raw.into())
}

fn is_true(value: &str) -> bool {
    matches!(value, "1" | "true")
}

fn parse_timeout(value: &str) -> Result<Duration> {
    let seconds: u64 =
        value.parse().map_err(|_| Exception::bad_request("session_timeout is not a number of seconds"))?;
    let timeout = Duration::from_secs(seconds);
    if timeout > session::MAX_TIMEOUT {
        let text = format!("session_timeout exceeds {} s", session::MAX_TIMEOUT.as_secs());
        return Err(Exception::bad_request(text));
    }
    Ok(timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_parameters_are_distinguished() {
        let request = QueryRequest::parse(
            "query=SELECT+1&param_a=x%27y&max_threads=2&compress=1&role=r&session_id=&session_check=1",
            &HeaderMap::new(),
        )
        .unwrap();
        assert_eq!(request.query.as_deref(), Some("SELECT 1"));
        assert_eq!(request.parameters, [("a".to_owned(), "x'y".to_owned())]);
        assert_eq!(request.settings, [("max_threads".to_owned(), "2".to_owned())]);
        assert!(request.compress && !request.decompress && request.session.is_none());
        assert!(QueryRequest::parse("session_id=a&session_timeout=3601", &HeaderMap::new()).is_err());
    }

    #[test]
    fn all_frames_are_read_and_truncated_bodies_rejected() {
        use std::io::Write as _;
        // Two frames, as clients send that compress block by block.
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
            let decoded = decode(&headers, false, body.clone().into(), 1 << 20).unwrap();
            assert!(decoded[..] == pieces.concat(), "{name}");
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
    fn decompression_bomb_is_rejected() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, "zstd".parse().unwrap());
        let bomb = Bytes::from(zstd::bulk::compress(&vec![0; 1 << 20], 1).unwrap());
        assert_eq!(decode(&headers, false, bomb.clone(), 1 << 20).unwrap().len(), 1 << 20);
        assert_eq!(decode(&headers, false, bomb, (1 << 20) - 1).unwrap_err().code, 223);
    }
}
