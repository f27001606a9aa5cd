//! Response bodies, complete or streamed. A stream that fails ends with ClickHouse's tagged exception.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

use crate::cancel::KillOnDrop;
use crate::compressed_blocks;
use crate::exception::Exception;

/// Renders an exception inside a stream that has begun.
pub(crate) struct ExceptionTrailer {
    /// The value of `X-ClickHouse-Exception-Tag`.
    pub tag: String,
    pub version: String,
}

impl ExceptionTrailer {
    fn render(&self, exception: &Exception) -> Vec<u8> {
        let (tag, message) = (&self.tag, exception.text(&self.version));
        let length = message.len() + 1;
        format!("\r\n__exception__\r\n{tag}\r\n{message}\n{length} {tag}\r\n__exception__\r\n").into_bytes()
    }
}

/// The chunks of a result that follow the response head.
pub(crate) struct ChunkStream {
    pub chunks: mpsc::Receiver<Result<Bytes, Exception>>,
    pub trailer: ExceptionTrailer,
    pub kill_on_drop: KillOnDrop,
}

#[derive(Default)]
pub(crate) struct ResponseBody {
    buffered: VecDeque<Bytes>,
    stream: Option<ChunkStream>,
    compress: bool,
}

impl ResponseBody {
    /// Creates a body of the first chunks, and of a stream if they are not all.
    pub(crate) fn new(
        chunks: impl IntoIterator<Item = Bytes>,
        stream: Option<ChunkStream>,
        compress: bool,
    ) -> Self {
        let buffered = chunks.into_iter().filter(|chunk| !chunk.is_empty()).collect();
        Self { buffered, stream, compress }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let compress = self.compress;
        if let Some(chunk) = self.buffered.front_mut() {
            let part = if compress {
                // Block by block, so that not all of it is in memory twice.
                let length = chunk.len().min(compressed_blocks::RESPONSE_BLOCK_BYTES);
                compressed_blocks::encode(&chunk.split_to(length))
            } else {
                std::mem::take(chunk)
            };
            if chunk.is_empty() {
                self.buffered.pop_front();
            }
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        let Some(stream) = &mut self.stream else { return Poll::Ready(None) };
        let received = ready!(stream.chunks.poll_recv(context));
        let chunk = match received {
            Some(Ok(chunk)) => chunk,
            ended => {
                let trailer = ended.and_then(Result::err).map(|exception| stream.trailer.render(&exception));
                stream.kill_on_drop.disarm();
                self.stream = None;
                let Some(trailer) = trailer else { return Poll::Ready(None) };
                trailer.into()
            }
        };
        let data = if compress { compressed_blocks::encode(&chunk) } else { chunk };
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.buffered.is_empty() && self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.stream {
            Some(_) => SizeHint::default(),
            None if self.compress && !self.buffered.is_empty() => SizeHint::default(),
            None => SizeHint::with_exact(self.buffered.iter().map(|chunk| chunk.len() as u64).sum()),
        }
    }
}

/// The content type of an output format.
pub(crate) fn content_type(format: &str) -> &'static str {
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
    fn exception_trailer_ends_with_message_length() {
        let trailer = ExceptionTrailer { tag: "abcdefghijklmnop".to_owned(), version: "26".to_owned() };
        let text = String::from_utf8(trailer.render(&Exception::new(395, "X", "no"))).unwrap();
        let message = "Code: 395. DB::Exception: no (X) (version 26 (chdb))";
        let length = message.len() + 1;
        assert_eq!(
            text,
            format!(
                "\r\n__exception__\r\nabcdefghijklmnop\r\n{message}\n{length} abcdefghijklmnop\r\n__exception__\r\n"
            )
        );
    }
}
