//! The endpoints, one file per resource: parameters, handlers and responses. No SQL.

mod account_list;
mod account_videos;
mod accounts;
mod ages;
mod batches;
mod breakouts;
mod collections;
mod content;
mod creators;
mod daily;
mod dashboard;
mod deltas;
mod events;
mod export;
mod fields;
mod hashtags;
mod health;
mod links;
mod mcp;
mod media;
mod metrics;
mod new_records;
mod openapi;
mod overview;
mod rankings;
mod refreshes;
mod search;
mod shared;
mod sparklines;
mod system;
mod timeseries;
mod top_accounts;
mod top_content;
mod top_creators;
mod tracking;
mod uploads;
mod v1;
mod videos;
mod webhooks;

use salvo::Router;
use salvo_oapi::RouterExt;

pub use v1::DeprecationHeaders;

use crate::http::route::{get_or_head, get_records};
use crate::http::{self, RequireAccept};

/// All routes of the service.
pub fn routes() -> Router {
    let public = http::responding(RequireAccept::Json)
        .push(Router::with_path("v2").push(public()))
        .push(Router::with_path("v1").push(v1::public()));
    let json = http::responding(RequireAccept::Json)
        .push(Router::with_path("v2").push(private()))
        .push(Router::with_path("v1").push(v1::private()));
    let csv = http::responding(RequireAccept::Csv).push(export::csv_router());
    let parquet = http::responding(RequireAccept::Parquet).push(export::parquet_router());
    let streams = http::responding(RequireAccept::EventStream).push(Router::with_path("v2").push(streams()));
    let files = http::receiving_files().push(uploads::receiver());
    // All share keys and rate limits.
    let rest = http::requiring_write_scope().push(json).push(csv).push(parquet).push(streams).push(files);
    let private = http::authenticated().push(rest).push(mcp::route());
    let report = http::responding(RequireAccept::Json).push(Router::with_path("v2").push(shared_report()));
    let shared = http::authenticated_by_share().push(report);
    Router::new()
        .push(public)
        .push(private)
        .push(shared)
        .push(openapi::docs())
        .push(dashboard::routes())
        .push(media::route())
}

/// Routes without authentication and rate limit.
fn public() -> Router {
    Router::new()
        .oapi_tag("System")
        .push(Router::with_path("health").push(get_or_head(health::get)))
        .push(Router::with_path("meta").push(get_or_head(system::get_meta)))
        .push(Router::with_path("openapi.json").push(get_or_head(openapi::get_openapi)))
}

/// Routes for the bearers of shares.
fn shared_report() -> Router {
    shared::router().oapi_tag("Shared reports")
}

/// Routes whose responses do not end.
fn streams() -> Router {
    events::stream().oapi_tag("Events")
}

fn private() -> Router {
    Router::new()
        .push(Router::with_path("whoami").push(get_records(system::get_identity)).oapi_tag("System"))
        .push(accounts::router().oapi_tag("Accounts"))
        .push(account_videos::router().oapi_tag("Account videos"))
        .push(videos::router().oapi_tag("Videos"))
        .push(content::router().oapi_tag("Content"))
        .push(creators::router().oapi_tag("Creators"))
        .push(collections::router().oapi_tag("Collections"))
        .push(
            Router::with_path("analytics/timeseries")
                .push(get_or_head(timeseries::get))
                .oapi_tag("Analytics"),
        )
        .push(Router::with_path("overview").push(get_or_head(overview::get)).oapi_tag("Analytics"))
        .push(tracking::router().oapi_tag("Tracking"))
        .push(uploads::router().oapi_tag("Imports"))
        .push(events::router().oapi_tag("Events"))
        .push(webhooks::router().oapi_tag("Webhooks"))
        .push(Router::with_path("search").push(get_records(search::search)).oapi_tag("Search"))
}

#[cfg(test)]
mod tests {
    use salvo_oapi::EndpointRegistry;

    use super::*;

    fn undocumented(routes: &Router, path: &str, found: &mut Vec<String>) {
        let path = format!("{path}/{:?}", routes.filters());
        if let Some(goal) = &routes.goal
            && EndpointRegistry::find(&goal.type_id()).is_none()
        {
            found.push(path.clone());
        }
        for route in routes.routers() {
            undocumented(route, &path, found);
        }
    }

    #[test]
    fn every_route_is_in_the_document() {
        let mut found = Vec::new();
        undocumented(&public(), "", &mut found);
        undocumented(&private(), "", &mut found);
        undocumented(&streams(), "", &mut found);
        undocumented(&shared_report(), "", &mut found);
        undocumented(&export::csv_router(), "", &mut found);
        undocumented(&export::parquet_router(), "", &mut found);
        undocumented(&uploads::receiver(), "", &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
