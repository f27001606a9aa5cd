//! What goes back to a client: failures in ClickHouse's words with its HTTP statuses, and bodies, whole or streamed.
//! A streamed body that fails in the middle ends with ClickHouse's tagged exception; nothing here runs statements.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use super::cancel::Watch;
use super::frames;

/// A statement or a request that failed: ClickHouse's code, and its text without the version.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub code: u32,
    text: String,
}

impl Failure {
    /// A failure of the front's own.
    pub(super) fn new(code: u32, name: &str, text: impl std::fmt::Display) -> Self {
        Self { code, text: format!("Code: {code}. DB::Exception: {text} ({name})") }
    }

    /// A failure that the engine reports in a text of its own.
    pub(super) fn engine(text: String) -> Self {
        let text = text.trim_end().to_owned();
        let code =
            text.strip_prefix("Code: ").and_then(|rest| rest.split('.').next()).and_then(|n| n.parse().ok());
        match code {
            Some(code) => Self { code, text },
            None => Self::new(48, "NOT_IMPLEMENTED", text),
        }
    }

    /// A request that cannot be understood.
    pub(super) fn bad_request(text: impl std::fmt::Display) -> Self {
        Self::new(36, "BAD_ARGUMENTS", text)
    }

    /// Something that this user or this method may not do.
    pub(super) fn readonly(text: impl std::fmt::Display) -> Self {
        Self::new(164, "READONLY", text)
    }

    /// The whole text, ending as ClickHouse's do, by which clients know an exception.
    pub(super) fn text(&self, version: &str) -> String {
        if self.text.contains("(version ") {
            self.text.clone()
        } else {
            format!("{} (version {version} (chdb))", self.text)
        }
    }

    /// The status that ClickHouse's own HTTP interface gives to the code.
    pub(super) fn status(&self) -> StatusCode {
        match self.code {
            194 => StatusCode::UNAUTHORIZED,
            192 | 193 | 497 | 516 => StatusCode::FORBIDDEN,
            6
            | 25..=28
            | 33
            | 36
            | 38
            | 41
            | 42
            | 43
            | 53
            | 62
            | 69
            | 72
            | 117
            | 130
            | 131
            | 164
            | 441
            | 456
            | 457 => StatusCode::BAD_REQUEST,
            15 | 16 | 46 | 47 | 50 | 56 | 60 | 63 | 64 | 73 | 81 | 115 | 372 => StatusCode::NOT_FOUND,
            159 => StatusCode::REQUEST_TIMEOUT,
            202 => StatusCode::SERVICE_UNAVAILABLE,
            223 => StatusCode::PAYLOAD_TOO_LARGE,
            48 => StatusCode::NOT_IMPLEMENTED,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// The name of the code of a body that is too large.
pub(super) fn too_large(limit: usize) -> Failure {
    Failure::new(
        223,
        "QUERY_IS_TOO_LARGE",
        format!("the body is longer than {limit} bytes: send it in several inserts, or raise --max-body"),
    )
}

/// How a failure is told inside a stream that has begun.
pub(super) struct Tail {
    pub tag: String,
    pub version: String,
}

impl Tail {
    fn render(&self, failure: &Failure) -> Vec<u8> {
        let (tag, message) = (&self.tag, failure.text(&self.version));
        let length = message.len() + 1;
        format!("\r\n__exception__\r\n{tag}\r\n{message}\n{length} {tag}\r\n__exception__\r\n").into_bytes()
    }
}

/// The part of a streamed result that is still to come.
pub(super) struct Rest {
    pub pieces: mpsc::Receiver<Result<Bytes, Failure>>,
    pub tail: Tail,
    /// Ends the query when the client goes away.
    pub watch: Watch,
}

/// A reply's body.
#[derive(Default)]
pub(super) struct ReplyBody {
    ready: VecDeque<Bytes>,
    rest: Option<Rest>,
    framed: bool,
}

impl ReplyBody {
    /// A body that is known as a whole.
    pub(super) fn whole(pieces: impl IntoIterator<Item = Bytes>, framed: bool) -> Self {
        let pieces = pieces.into_iter().filter(|piece| !piece.is_empty());
        let ready =
            if framed { pieces.map(|piece| frames::encode(&piece)).collect() } else { pieces.collect() };
        Self { ready, rest: None, framed }
    }

    /// A body that has begun and continues.
    pub(super) fn streamed(first: impl IntoIterator<Item = Bytes>, rest: Rest, framed: bool) -> Self {
        Self { rest: Some(rest), ..Self::whole(first, framed) }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(piece) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let framed = self.framed;
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        let piece = match std::task::ready!(rest.pieces.poll_recv(context)) {
            Some(Ok(piece)) => piece,
            Some(Err(failure)) => {
                let tail = rest.tail.render(&failure).into();
                rest.watch.finished();
                self.rest = None;
                tail
            }
            None => {
                rest.watch.finished();
                self.rest = None;
                return Poll::Ready(None);
            }
        };
        Poll::Ready(Some(Ok(Frame::data(if framed { frames::encode(&piece) } else { piece }))))
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.rest {
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(self.ready.iter().map(|piece| piece.len() as u64).sum()),
        }
    }
}

/// The content type of a format's output.
pub(super) fn content_type(format: &str) -> &'static str {
    let lower = format.to_ascii_lowercase();
    match lower.as_str() {
        "json"
        | "jsonstrings"
        | "jsoncompact"
        | "jsoncompactstrings"
        | "jsoncolumns"
        | "jsoncompactcolumns"
        | "jsoncolumnswithmetadata"
        | "jsonobjecteachrow" => "application/json; charset=UTF-8",
        _ if lower.starts_with("json") => "application/x-ndjson; charset=UTF-8",
        _ if lower.starts_with("csv") => "text/csv; charset=UTF-8",
        _ if lower.starts_with("tsv") || lower.starts_with("tabseparated") => {
            "text/tab-separated-values; charset=UTF-8"
        }
        "native" | "parquet" | "arrow" | "arrowstream" | "orc" | "avro" | "rawblob" => {
            "application/octet-stream"
        }
        _ if lower.starts_with("rowbinary") => "application/octet-stream",
        _ => "text/plain; charset=UTF-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_ends_with_the_length_of_its_message() {
        let tail = Tail { tag: "abcdefghijklmnop".to_owned(), version: "26".to_owned() };
        let text = String::from_utf8(tail.render(&Failure::new(395, "X", "no"))).unwrap();
        let message = "Code: 395. DB::Exception: no (X) (version 26 (chdb))";
        let length = message.len() + 1;
        assert_eq!(
            text,
            format!(
                "\r\n__exception__\r\nabcdefghijklmnop\r\n{message}\n{length} abcdefghijklmnop\r\n__exception__\r\n"
            )
        );
    }

    #[test]
    fn the_engine_s_code_becomes_a_status() {
        let failure = Failure::engine("Code: 60. DB::Exception: no such table. (UNKNOWN_TABLE)".to_owned());
        assert_eq!((failure.code, failure.status()), (60, StatusCode::NOT_FOUND));
        assert!(failure.text("26").ends_with("(UNKNOWN_TABLE) (version 26 (chdb))"));
        let odd = Failure::engine("send_insert does not support this".to_owned());
        assert_eq!((odd.code, odd.status()), (48, StatusCode::NOT_IMPLEMENTED));
    }
}
