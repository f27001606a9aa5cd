//! A name for every request: the caller's own where it is harmless, else a fresh one. It is on every answer and on
//! every line of the log.

use std::time::Instant;

use salvo::http::{HeaderName, HeaderValue};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, async_trait};
use tracing::Instrument;
use uuid::Uuid;

use crate::telemetry::trace;

pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The name of the request that a depot belongs to.
pub struct RequestId(String);

impl RequestId {
    pub fn of(depot: &Depot) -> &str {
        depot.get_typed::<RequestId>().map_or("", |id| &id.0)
    }
}

/// Names the request, and logs how it ended.
pub struct NameRequest;

#[async_trait]
impl Handler for NameRequest {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let own =
            req.headers().get(HEADER).and_then(|value| value.to_str().ok()).filter(|id| is_harmless(id));
        let id = own.map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        if let Ok(value) = HeaderValue::from_str(&id) {
            res.headers_mut().insert(HEADER, value);
        }
        let span = tracing::info_span!("request", request_id = id, trace_id = trace::id());
        depot.insert_typed(RequestId(id));
        let started = Instant::now();
        async {
            ctrl.call_next(req, depot, res).await;
            let status = res.status_code.map_or(0, |status| status.as_u16());
            let millis = started.elapsed().as_millis() as u64;
            tracing::info!(
                method = req.method().as_str(),
                path = req.uri().path(),
                status,
                millis,
                "answered"
            );
        }
        .instrument(span)
        .await;
    }
}

/// Whether an id can be echoed and logged as it is.
fn is_harmless(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn only_harmless_ids_are_kept() {
        for id in ["a", "A-z_0.9:/", &"x".repeat(128)] {
            assert!(is_harmless(id), "{id}");
        }
        for id in ["", "a b", "é", "a\"b", "a,b", &"x".repeat(129)] {
            assert!(!is_harmless(id), "{id}");
        }
    }
}
