//! Code that all endpoints share. It names no resource.

pub mod analytics;
mod caller;
pub mod connections;
pub mod deadline;
pub mod forwarded;
pub mod input;
pub mod middleware;
pub mod openapi;
pub mod output;
pub mod request_id;
pub mod route;

use std::sync::atomic::Ordering;

use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Service, async_trait};

pub use analytics::{Analytics, Cached, CachedPage, RecordDependency, WindowArgs};
pub use caller::Caller;
pub use deadline::{Deadline, ExternalTimeout};
use forwarded::base_url;
pub use input::{Args, Body, FileBody, IdempotencyKey, ListParams, Path, Query};
pub use middleware::RequireAccept;
use middleware::{
    AssignRequestId, Authenticate, AuthenticateShare, CatchPanic, DrainRejectedBody, EtagAndCompress,
    LimitUnread, ParseFileRequest, ParseRequest, RateLimit, RecordMetrics, RejectDuringShutdown,
    RequestTimeout, RequireWriteScope, UnmatchedRoute, cors_handler,
};
pub use output::{
    Accepted, AcceptedAt, BatchItemResult, BatchResponse, Collection, Created, CsvFile, Data, EventSource,
    FoundOrCreated, NoContent, ParquetFile, Problem, Ranking, RowSource, ServerSentEvents, StaticFile,
    Uncompressed, WithMeta,
};

use crate::app::App;
use crate::model::picture::with_copies_at;
use crate::store::retry_request_on_conflict;

/// A result whose error is by default a problem.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

/// Adds the middleware of every request, matched by a route or not. Each one wraps those below it.
///
/// `legacy` adapts the responses of older API versions.
pub fn service(routes: Router, legacy: impl Handler, app: &App) -> Service {
    let mut service = Service::new(routes)
        .hoop(LimitUnread::new(app.settings.max_unread_bytes))
        .hoop(RecordMetrics)
        .hoop(AssignRequestId)
        .hoop(DrainRejectedBody)
        .hoop(InjectState(app.clone()))
        .hoop(PictureUrls)
        .hoop(legacy)
        .hoop(CatchPanic);
    if let Some(cors) = cors_handler(&app.settings.cors_origins) {
        service = service.hoop(cors);
    }
    service
        .hoop(RejectDuringShutdown(app.in_flight.clone()))
        .hoop(EtagAndCompress)
        .hoop(CatchPanic)
        .hoop(UnmatchedRoute)
}

/// The middleware of authentication, which comes first. Its instances count requests.
pub fn authenticated() -> Router {
    Router::new()
        .hoop(Authenticate::default()) // 401, 403
        .hoop(RateLimit::default()) // 429
}

/// The middleware of routes whose methods say whether they write, after authentication.
pub fn requiring_write_scope() -> Router {
    Router::with_hoop(RequireWriteScope) // 403
}

/// The middleware of authentication by the token of a share.
pub fn authenticated_by_share() -> Router {
    Router::new()
        .hoop(AuthenticateShare::default()) // 401, 403
        .hoop(RateLimit::default()) // 429
}

/// The middleware of routes with responses of a content type, in the order that the specification requires.
pub fn responding(accept: RequireAccept) -> Router {
    Router::new()
        .hoop(accept) // 406
        .hoop(ParseRequest::default()) // 415, 413, 400
        .hoop(RequestTimeout) // 503
}

/// As [`responding`] with JSON, for routes whose body is a file.
pub fn receiving_files() -> Router {
    Router::new()
        .hoop(RequireAccept::Json) // 406
        .hoop(ParseFileRequest) // 415, 400
        .hoop(RequestTimeout) // 503
}

/// Runs a whole transaction, from its begin to its commit, and repeats it while it conflicts with a concurrent one.
/// Everything with an effect, such as storing the response under an idempotency key, must be part of the transaction.
pub async fn in_transaction<T, F>(app: &App, transaction: impl FnMut() -> F) -> Result<T, Problem>
where
    F: Future<Output = Result<T, Problem>>,
{
    let result = retry_request_on_conflict(transaction).await;
    if result.as_ref().is_err_and(Problem::rejects_writes) {
        app.rejects_writes.store(true, Ordering::Relaxed);
    }
    result
}

/// Makes the pictures in responses URLs of their copies while the media folder is there.
struct PictureUrls;

#[async_trait]
impl Handler for PictureUrls {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let media = depot.get_typed::<App>().ok().and_then(|app| app.media.as_ref());
        let url = media.filter(|media| media.is_present()).map(|_| base_url(req, depot).into());
        with_copies_at(url, ctrl.call_next(req, depot, res)).await;
    }
}

struct InjectState(App);

#[async_trait]
impl Handler for InjectState {
    async fn handle(&self, _req: &mut Request, depot: &mut Depot, _res: &mut Response, _ctrl: &mut FlowCtrl) {
        depot.insert_typed(self.0.clone());
    }
}
