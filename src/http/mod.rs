//! The conventions that every endpoint shares, in the order in which a request meets them. Nothing here knows a
//! resource.

pub mod connections;
pub mod forwarded;
pub mod input;
pub mod legacy;
pub mod middleware;
pub mod openapi;
pub mod output;
pub mod route;

use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Service, async_trait};

pub use input::idempotency::Idempotency;
pub use input::windowed::WindowedRequest;
pub use input::{Args, Body, Path, Query};
pub use middleware::authenticate::Caller;
pub use middleware::request_timeout::{Deadline, TooSlow};
use middleware::{
    accept, authenticate, cors, etag_and_compress, parse_request, rate_limit, record_metrics, request_id,
    request_timeout, shutdown,
};
pub use output::cached::{Cached, Records};
pub use output::envelope::{Created, Data, Ensured, NoContent, WithMeta};
pub use output::in_transaction::unit;
pub use output::page::{Collection, Listing};
pub use output::problem::Problem;

use crate::app::App;

/// What every request meets, whether a route answers it or not; each step wraps those below it.
pub fn service(routes: Router, app: &App) -> Service {
    let mut service = Service::new(routes)
        .hoop(record_metrics::Observe)
        .hoop(request_id::NameRequest)
        .hoop(parse_request::DrainRefused)
        .hoop(HandOver(app.clone()))
        .hoop(legacy::Retire)
        .hoop(route::CatchPanic);
    if let Some(cors) = cors::handler(&app.settings.cors_origins) {
        service = service.hoop(cors);
    }
    service
        .hoop(shutdown::RefuseLate(app.in_flight.clone()))
        .hoop(etag_and_compress::Represent)
        .hoop(route::CatchPanic)
        .hoop(route::Unrouted)
}

/// What requests to routes without a key meet.
pub fn public() -> Router {
    Router::new()
        .hoop(accept::RequireAccept) // 406
        .hoop(parse_request::Receive::default()) // 415, 413, 400
        .hoop(request_timeout::BoundTime) // 503
}

/// What requests to routes with a key meet; the order is the contract's.
pub fn private() -> Router {
    Router::new()
        .hoop(authenticate::Authenticate::new()) // 401, 403
        .hoop(rate_limit::LimitRate::default()) // 429
        .hoop(authenticate::RequireScope) // 403
        .hoop(accept::RequireAccept) // 406
        .hoop(parse_request::Receive::default()) // 415, 413, 400
        .hoop(request_timeout::BoundTime) // 503
}

/// Gives the request what its handlers stand on.
struct HandOver(App);

#[async_trait]
impl Handler for HandOver {
    async fn handle(&self, _req: &mut Request, depot: &mut Depot, _res: &mut Response, _ctrl: &mut FlowCtrl) {
        depot.insert_typed(self.0.clone());
    }
}
