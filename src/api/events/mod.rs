//! Events: what happened to accounts, posts and imports.

mod stream;

use salvo::{Router, Writer};
use salvo_oapi::endpoint;

use crate::app::App;
use crate::http::input::{ListQuery, ListSort};
use crate::http::route::{get_or_head, get_records};
use crate::http::{Caller, Collection, Result};
use crate::model::event::Event;
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::events::{self, EventFilter, EventSort};

pub(super) fn router() -> Router {
    Router::with_path("events").push(get_records(list))
}

/// The route of the stream, whose responses are no JSON.
pub(super) fn stream() -> Router {
    Router::with_path("events/stream").push(get_or_head(stream::open))
}

impl ListSort for EventSort {
    const DEFAULT: (Self, SortDirection) = (EventSort::CreatedAt, SortDirection::Desc);
}

/// List events
///
/// What happened to accounts, posts and imports, once each, the latest first. Events are kept for 30 days. Imports and the first
/// scrape of an account report no posts, thresholds and breakouts.
#[endpoint(operation_id = "listEvents")]
async fn list(
    app: App,
    caller: Caller,
    query: ListQuery<EventFilter, EventSort>,
) -> Result<Collection<Event>> {
    let ListQuery { filter, params } = query;
    let found = events::list(&app.pg, caller.organization, &filter, &params.page).await?;
    params.into_response(found)
}
