//! The liveness and readiness probes, on the metrics port.

use std::sync::OnceLock;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use salvo::http::HeaderValue;
use salvo::http::StatusCode;
use salvo::http::header::CONTENT_TYPE;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, async_trait};

/// Why a process is not ready.
type Reason = String;

type ReadinessCheck = Box<dyn Fn() -> BoxFuture<'static, Result<(), Reason>> + Send + Sync>;

static READINESS_CHECK: OnceLock<ReadinessCheck> = OnceLock::new();

/// Sets the readiness check; without one the process is starting. A second call changes nothing.
pub fn set_readiness_check<F>(check: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = Result<(), Reason>> + Send + 'static,
{
    if READINESS_CHECK.set(Box::new(move || check().boxed())).is_err() {
        tracing::debug!("the readiness check was already set");
    }
}

pub(super) fn routes() -> [Router; 2] {
    [Router::with_path("livez").get(Liveness), Router::with_path("readyz").get(Readiness)]
}

struct Liveness;
struct Readiness;

#[async_trait]
impl Handler for Liveness {
    async fn handle(&self, _req: &mut Request, _depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        respond(res, Ok(()));
    }
}

#[async_trait]
impl Handler for Readiness {
    async fn handle(&self, _req: &mut Request, _depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        let result = match READINESS_CHECK.get() {
            Some(check) => check().await,
            None => Err("the process is starting".to_owned()),
        };
        respond(res, result);
    }
}

fn respond(res: &mut Response, result: Result<(), Reason>) {
    let (status, text) = match result {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason),
    };
    res.status_code(status);
    res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if res.write_body(text + "\n").is_err() {
        res.status_code(StatusCode::INTERNAL_SERVER_ERROR);
    }
}
