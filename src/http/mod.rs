//! The conventions that every endpoint shares, in the order in which a request meets them. Nothing here knows a
//! resource.

pub mod accept;
pub mod auth;
pub mod batch;
pub mod connections;
mod cors;
pub mod cursor;
pub mod envelope;
pub mod extract;
pub mod fields;
pub mod idempotency;
mod json;
pub mod kept;
pub mod legacy;
mod observe;
pub mod openapi;
pub mod page;
pub mod peer;
pub mod problem;
pub mod rate_limit;
pub mod receive;
pub mod representation;
pub mod request_id;
pub mod route;
mod stopping;
mod time_left;
mod unit;
pub mod window;

use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Service, async_trait};

pub use auth::Caller;
pub use envelope::{Created, Data, Ensured, NoContent, WithMeta};
pub use extract::{Args, Body, Path, Query};
pub use idempotency::Idempotency;
pub use kept::{Kept, kept};
pub use page::{Collection, Listing};
pub use problem::Problem;
pub use time_left::{Deadline, TooSlow};
pub use unit::unit;

use crate::app::App;

/// What every request meets, whether a route answers it or not; each step wraps those below it.
pub fn service(routes: Router, app: &App) -> Service {
    let mut service = Service::new(routes)
        .hoop(observe::Observe)
        .hoop(request_id::NameRequest)
        .hoop(receive::DrainRefused)
        .hoop(HandOver(app.clone()))
        .hoop(legacy::Retire)
        .hoop(route::CatchPanic);
    if let Some(cors) = cors::handler(&app.settings.cors_origins) {
        service = service.hoop(cors);
    }
    service
        .hoop(stopping::RefuseLate(app.running.clone()))
        .hoop(representation::Represent)
        .hoop(route::CatchPanic)
        .hoop(route::Unrouted)
}

/// What requests to routes without a key meet.
pub fn public() -> Router {
    Router::new()
        .hoop(accept::RequireAccept) // 406
        .hoop(receive::Receive::default()) // 415, 413, 400
        .hoop(time_left::BoundTime) // 503
}

/// What requests to routes with a key meet; the order is the contract's.
pub fn private() -> Router {
    Router::new()
        .hoop(auth::Authenticate::new()) // 401, 403
        .hoop(rate_limit::LimitRate::default()) // 429
        .hoop(auth::RequireScope) // 403
        .hoop(accept::RequireAccept) // 406
        .hoop(receive::Receive::default()) // 415, 413, 400
        .hoop(time_left::BoundTime) // 503
}

/// Gives the request what its handlers stand on.
struct HandOver(App);

#[async_trait]
impl Handler for HandOver {
    async fn handle(&self, _req: &mut Request, depot: &mut Depot, _res: &mut Response, _ctrl: &mut FlowCtrl) {
        depot.insert_typed(self.0.clone());
    }
}
