//! Whether the process lives, and whether it may be given work, as orchestrators ask on the port for metrics. One that
//! does not live is started again; one that is not ready gets no requests for a while.

use std::sync::OnceLock;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use salvo::http::HeaderValue;
use salvo::http::StatusCode;
use salvo::http::header::CONTENT_TYPE;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, async_trait};

/// Why a process is not ready.
type Reason = String;

/// How it is found out whether the process is ready.
type Look = Box<dyn Fn() -> BoxFuture<'static, Result<(), Reason>> + Send + Sync>;

static READY: OnceLock<Look> = OnceLock::new();

/// Says how to find out whether the process is ready; until then it is starting. A second one changes nothing.
pub fn ready_when<F>(look: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = Result<(), Reason>> + Send + 'static,
{
    if READY.set(Box::new(move || look().boxed())).is_err() {
        tracing::debug!("how to tell readiness was said before");
    }
}

pub(super) fn routes() -> [Router; 2] {
    [Router::with_path("livez").get(Live), Router::with_path("readyz").get(Ready)]
}

struct Live;
struct Ready;

#[async_trait]
impl Handler for Live {
    async fn handle(&self, _req: &mut Request, _depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        tell(res, Ok(()));
    }
}

#[async_trait]
impl Handler for Ready {
    async fn handle(&self, _req: &mut Request, _depot: &mut Depot, res: &mut Response, _ctrl: &mut FlowCtrl) {
        let found = match READY.get() {
            Some(look) => look().await,
            None => Err("the process is starting".to_owned()),
        };
        tell(res, found);
    }
}

fn tell(res: &mut Response, found: Result<(), Reason>) {
    let (status, text) = match found {
        Ok(()) => (StatusCode::OK, "ok".to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason),
    };
    res.status_code(status);
    res.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if res.write_body(text + "\n").is_err() {
        res.status_code(StatusCode::INTERNAL_SERVER_ERROR);
    }
}
