//! The liveness and readiness probes, on the metrics port.

use std::sync::OnceLock;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use salvo::http::StatusCode;
use salvo::writing::Text;
use salvo::{Response, Router, handler};

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

pub(super) fn router() -> Router {
    Router::new()
        .push(Router::with_path("livez").get(get_liveness))
        .push(Router::with_path("readyz").get(get_readiness))
}

#[handler]
async fn get_liveness(res: &mut Response) {
    respond(res, Ok(()));
}

#[handler]
async fn get_readiness(res: &mut Response) {
    let result = match READINESS_CHECK.get() {
        Some(check) => check().await,
        None => Err("the process is starting".to_owned()),
    };
    respond(res, result);
}

fn respond(res: &mut Response, result: Result<(), Reason>) {
    let (status, text) = match result {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason),
    };
    res.status_code(status).render(Text::Plain(text + "\n"));
}
