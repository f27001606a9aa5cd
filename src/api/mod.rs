//! The endpoints, one file per group of the specification: parameters, bodies and handlers, no SQL.

mod account_videos;
mod accounts;
mod analytics;
mod creators;
mod fields;
mod links;
mod metrics;
mod search;
mod system;
mod v1;

use salvo::Router;

use crate::http;

/// Every route of the service.
pub fn routes() -> Router {
    Router::new().push(public()).push(private())
}

/// What needs no key and is not rate limited.
fn public() -> Router {
    http::public()
        .push(Router::with_path("v2").push(system::public()))
        .push(Router::with_path("v1").push(v1::public()))
}

/// What needs a key. Both versions know the same keys and count together.
fn private() -> Router {
    let v2 = Router::with_path("v2")
        .push(system::private())
        .push(accounts::router())
        .push(account_videos::router())
        .push(creators::router())
        .push(analytics::router())
        .push(search::router());
    http::private().push(v2).push(Router::with_path("v1").push(v1::private()))
}
