//! A name for every request: the caller's own where it is harmless, else a fresh one. It is on every answer and on
//! every line of the log.

use std::borrow::Cow;
use std::time::Instant;

use salvo::http::header::X_CONTENT_TYPE_OPTIONS;
use salvo::http::{HeaderName, HeaderValue};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, async_trait};
use tracing::Instrument;
use uuid::Uuid;

use crate::model::key;
use crate::telemetry::trace;

pub(in crate::http) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The name of the request that a depot belongs to.
pub struct RequestId(String);

impl RequestId {
    pub fn of(depot: &Depot) -> &str {
        depot.get_typed::<RequestId>().map_or("", |id| &id.0)
    }
}

/// What a path may take of a line of the log.
const LOGGED: usize = 1024;

/// A path as the log may show it: a key that somebody put there by mistake is left out, and so is what makes it very long.
pub(in crate::http) fn logged(path: &str) -> Cow<'_, str> {
    let bare = key::redact(path);
    match bare.char_indices().nth(LOGGED) {
        Some((end, _)) => Cow::Owned(format!("{}…", &bare[..end])),
        None => bare,
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
        // Nothing here is ever meant to be taken for a script or a page that it does not say it is.
        res.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let span = tracing::info_span!("request", request_id = id, trace_id = trace::current_trace_id());
        depot.insert_typed(RequestId(id));
        let started = Instant::now();
        async {
            ctrl.call_next(req, depot, res).await;
            let status = res.status_code.map_or(0, |status| status.as_u16());
            let millis = started.elapsed().as_millis() as u64;
            let path = logged(req.uri().path());
            tracing::info!(method = req.method().as_str(), path = &*path, status, millis, "answered");
        }
        .instrument(span)
        .await;
    }
}

/// Whether an id can be echoed and logged as it is. A key cannot, though it has the form of one.
fn is_harmless(id: &str) -> bool {
    (1..=128).contains(&id.len())
        && !key::contains_key(id)
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_logged_without_keys_and_not_for_ever() {
        assert_eq!(logged("/v2/accounts/@some.one"), "/v2/accounts/@some.one");
        let key = key::ApiKey::generate().unwrap();
        assert_eq!(logged(&format!("/v2/{}/x", key.reveal())), "/v2/tdm_…/x");
        let long = logged(&"/é".repeat(LOGGED)).into_owned();
        assert_eq!((long.chars().count(), long.ends_with('…')), (LOGGED + 1, true));
    }

    #[test]
    fn only_harmless_ids_are_kept() {
        for id in ["a", "A-z_0.9:/", &"x".repeat(128)] {
            assert!(is_harmless(id), "{id}");
        }
        let key = key::ApiKey::generate().unwrap();
        for id in [key.reveal(), "", "a b", "é", "a\"b", "a,b", &"x".repeat(129)] {
            assert!(!is_harmless(id), "{id}");
        }
    }
}
