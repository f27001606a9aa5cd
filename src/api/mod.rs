//! The endpoints, one file per group of the specification: parameters, bodies and handlers, no SQL.

mod account_videos;
mod accounts;
mod creators;
mod daily;
mod deltas;
mod fields;
mod links;
mod metrics;
mod overview;
mod search;
mod system;
mod timeseries;
mod top_creators;
mod videos;

use salvo::Router;

use crate::http;

/// Every route of the service.
pub fn routes() -> Router {
    Router::new().push(Router::with_path("v2").push(public()).push(private()))
}

/// What needs no key and is not rate limited.
fn public() -> Router {
    http::public().push(system::public())
}

fn private() -> Router {
    http::private()
        .push(system::private())
        .push(accounts::router())
        .push(account_videos::router())
        .push(videos::router())
        .push(creators::router())
        .push(timeseries::router())
        .push(overview::router())
        .push(search::router())
}
