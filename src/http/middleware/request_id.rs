//! Assigns an id to each request, and logs it when it has finished.

use std::time::Instant;

use salvo::http::HeaderValue;
use salvo::http::header::X_CONTENT_TYPE_OPTIONS;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, async_trait};
use tracing::Instrument;
use uuid::Uuid;

use crate::http::request_id::{REQUEST_ID_HEADER, RequestId, loggable_path};
use crate::model::key;
use crate::telemetry::trace;

/// Uses the client's id if it is safe.
pub struct AssignRequestId;

#[async_trait]
impl Handler for AssignRequestId {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let sent = req.headers().get(REQUEST_ID_HEADER).and_then(|value| value.to_str().ok());
        let id = sent.filter(|id| is_safe(id)).map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        if let Ok(value) = HeaderValue::from_str(&id) {
            res.headers_mut().insert(REQUEST_ID_HEADER, value);
        }
        res.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let span = tracing::info_span!("request", request_id = id, trace_id = trace::current_trace_id());
        depot.insert_typed(RequestId(id));
        let started = Instant::now();
        async {
            ctrl.call_next(req, depot, res).await;
            let status = res.status_code.map_or(0, |status| status.as_u16());
            let millis = started.elapsed().as_millis() as u64;
            let path = loggable_path(req.uri().path());
            tracing::info!(method = req.method().as_str(), path = &*path, status, millis, "request finished");
        }
        .instrument(span)
        .await;
    }
}

/// Whether an id can be echoed and logged, and is no API key.
fn is_safe(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && !key::contains_key(id)
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_request_ids_are_rejected() {
        for id in ["a", "A-z_0.9:/", &"x".repeat(128)] {
            assert!(is_safe(id), "{id}");
        }
        let key = key::ApiKey::generate().unwrap();
        for id in [key.reveal(), "", "a b", "é", "a\"b", "a,b", &"x".repeat(129)] {
            assert!(!is_safe(id), "{id}");
        }
    }
}
