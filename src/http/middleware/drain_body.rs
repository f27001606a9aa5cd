//! Reads the body of a rejected request before the response is sent, so that the client, which may still be sending,
//! reads the response instead of a connection reset.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use salvo::http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use salvo::http::{ReqBody, StatusCode};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, async_trait};

use crate::model::limits::MAX_BODY_BYTES;

const MAX_DRAINED_BYTES: usize = 64 * MAX_BODY_BYTES;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// For requests that are rejected before their body is read. A client that sent `Expect` does not send the body.
pub struct DrainRejectedBody;

#[async_trait]
impl Handler for DrainRejectedBody {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        ctrl.call_next(req, depot, res).await;
        let is_rejected = res
            .status_code
            .is_some_and(|status| status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE);
        if is_rejected && has_body(req) && !req.headers().contains_key(EXPECT) {
            drain(req.take_body(), 0).await;
        }
    }
}

pub(super) fn has_body(req: &Request) -> bool {
    let headers = req.headers();
    headers.contains_key(TRANSFER_ENCODING) || declared_length(req).is_some_and(|length| length > 0)
}

pub(in crate::http) fn declared_length(req: &Request) -> Option<u64> {
    req.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads and drops a body, of which `drained` bytes were read before.
pub(in crate::http) async fn drain(mut body: ReqBody, mut drained: usize) {
    let read = async {
        while drained < MAX_DRAINED_BYTES
            && let Some(Ok(frame)) = body.frame().await
        {
            drained += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // The response is the same if it times out.
    let _timeout = tokio::time::timeout(DRAIN_TIMEOUT, read).await;
}
