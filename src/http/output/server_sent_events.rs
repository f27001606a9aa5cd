//! A response of server-sent events, which ends when the client or the process does.
//!
//! Nothing is produced before the client has read what came before.

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use futures_util::stream::try_unfold;
use salvo::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use salvo::http::{HeaderName, HeaderValue, Method, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation};

use super::problem::Problem;
use crate::http::openapi::operation::add_event_stream;
use crate::http::request_id::{RequestId, loggable_path};

/// Neither the server, a proxy nor the client takes the connection for dead before.
const MAX_SILENCE: Duration = Duration::from_secs(15);
const COMMENT: Bytes = Bytes::from_static(b":\n\n");
/// Clients connect again after two seconds. Sent at once, so that they know that the stream is open.
const FIRST: Bytes = Bytes::from_static(b"retry: 2000\n\n");

/// Produces the texts of a stream.
pub trait EventSource: Send + 'static {
    /// Returns the next text; none at the end. May be cancelled.
    fn next(&mut self) -> impl Future<Output = Result<Option<Bytes>, Problem>> + Send;
}

pub struct ServerSentEvents<S>(pub S);

#[async_trait]
impl<S: EventSource> Writer for ServerSentEvents<S> {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        res.status_code(StatusCode::OK);
        let headers = res.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache, no-transform"));
        // nginx buffers responses unless they forbid it.
        headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
        if *req.method() == Method::HEAD {
            return;
        }
        let (request_id, path) = (RequestId::from_depot(depot).to_owned(), req.uri().path().to_owned());
        let pieces = try_unfold((self.0, true), |(mut source, is_first): (S, bool)| async move {
            if is_first {
                return Ok(Some((FIRST, (source, false))));
            }
            // Streams that were woken by one event do not all send their comments at once.
            let silence = MAX_SILENCE.mul_f64(1.0 - fastrand::f64() / 3.0);
            let next = tokio::time::timeout(silence, source.next()).await;
            let piece = next.unwrap_or(Ok(Some(COMMENT)))?;
            Ok(piece.map(|piece| (piece, (source, false))))
        });
        res.stream(pieces.map_err(move |problem: Problem| {
            let (path, cause) = (&*loggable_path(&path), problem.cause());
            tracing::warn!(
                request_id,
                cause,
                path,
                "a stream of events broke off, its client connects again"
            );
            std::io::Error::other("the stream failed")
        }));
    }
}

impl<S: EventSource> EndpointOutRegister for ServerSentEvents<S> {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_event_stream(operation);
    }
}
