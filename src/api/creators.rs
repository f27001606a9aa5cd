//! Creators.

use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use serde_json::{Value, json};

use super::fields::{CreatorPath, TAGS};
use super::{daily, links, timeseries, top_creators};
use crate::app::App;
use crate::http::input::fields::{Object, Params, Word};
use crate::http::input::{FromBody, FromQuery, Parts};
use crate::http::output::page::ListSort;
use crate::http::route::{parameter, read};
use crate::http::{
    Args, Body, Caller, Collection, Created, Data, Idempotency, Listing, NoContent, Path, Problem, Query,
    unit,
};
use crate::model::creator::Creator;
use crate::model::limits::MAX_NAME_CHARS;
use crate::store::Write;
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::creators::{self, CreatorChange, CreatorFilter, CreatorSort, NewCreator};

/// Segments beside `{creator_id}` that are no creators.
const LITERALS: &[&str] = &["top"];

pub(super) fn router() -> Router {
    Router::with_path("creators")
        .push(read(list))
        .push(Router::new().post(create))
        .push(Router::with_path("top").push(read(top_creators::list)))
        .push(
            parameter("{creator_id}", LITERALS)
                .push(read(get))
                .push(Router::new().patch(patch))
                .push(Router::new().delete(delete))
                .push(links::router())
                .push(
                    Router::with_path("analytics")
                        .push(read(daily::get_creator))
                        .push(Router::with_path("timeseries").push(read(timeseries::get_creator))),
                ),
        )
}

impl Word for CreatorSort {
    const WORDS: &'static [(&'static str, Self)] =
        &[("name", CreatorSort::Name), ("added_at", CreatorSort::AddedAt)];
}

impl ListSort for CreatorSort {
    const DEFAULT: (Self, SortDirection) = (CreatorSort::Name, SortDirection::Asc);
}

struct ListQuery {
    filter: CreatorFilter,
    listing: Listing<CreatorSort>,
}

impl FromQuery for ListQuery {
    fn read(query: &mut Params<'_>, parts: &Parts<'_>) -> Self {
        let filter = CreatorFilter {
            q: query.about("A part of the name, in any case.").search_text("q"),
            is_active: query.about("Only active creators, or only paused ones.").boolean("is_active"),
        };
        ListQuery { listing: Listing::read(query, parts, &filter), filter }
    }
}

const NAME: &str = "What the creator is called; names need not be unique.";
const IS_ACTIVE: &str = "False pauses the collecting of all its accounts.";

struct CreateBody(NewCreator);

impl FromBody for CreateBody {
    fn example() -> Value {
        json!({"name": "Salt & Tide", "metadata": {"team": "north"}})
    }

    fn read(body: &mut Object<'_>) -> Self {
        body.require("name");
        CreateBody(NewCreator {
            name: body.about(NAME).text("name", &(1..=MAX_NAME_CHARS)).unwrap_or_default(),
            is_active: body.about(IS_ACTIVE).boolean_or("is_active", true),
            metadata: body.about(TAGS).metadata("metadata").unwrap_or_default(),
        })
    }
}

struct PatchBody(CreatorChange);

impl FromBody for PatchBody {
    fn example() -> Value {
        json!({"name": "Salt & Tide", "is_active": false})
    }

    fn read(body: &mut Object<'_>) -> Self {
        PatchBody(CreatorChange {
            name: body.about(NAME).text("name", &(1..=MAX_NAME_CHARS)),
            is_active: body.about(IS_ACTIVE).boolean("is_active"),
            metadata: body.about(TAGS).metadata("metadata"),
        })
    }
}

/// Lists the creators.
///
/// By name, unless asked otherwise. `accounts_summary` tells what is linked to each of them now.
#[endpoint(operation_id = "listCreators")]
async fn list(app: App, caller: Caller, query: Query<ListQuery>) -> Result<Collection<Creator>, Problem> {
    let ListQuery { filter, listing } = query.0;
    let found = creators::list(&app.pg, caller.organization, &filter, &listing.page).await?;
    listing.answer(found)
}

/// Makes a creator.
///
/// Accounts come to it by `PUT /creators/{creator_id}/accounts/{account_id}`, or by their own `creator_id`.
#[endpoint(operation_id = "createCreator")]
async fn create(
    app: App,
    caller: Caller,
    args: Args<(Body<CreateBody>, Idempotency)>,
) -> Result<Created<Creator>, Problem> {
    let Args((Body(CreateBody(new)), idempotency)) = args;
    unit(|| async {
        let mut write = Write::begin(&app.pg, caller.organization).await?;
        if let Some(first) = idempotency.replay(&mut write).await? {
            return Ok(first);
        }
        let id = creators::create(&mut write, &new).await?;
        let creator = creators::get(write.connection(), caller.organization, id).await?;
        let created = Created::at(format!("/v2/creators/{id}"), &creator)?;
        idempotency.keep(&mut write, &created).await?;
        write.commit().await?;
        Ok(created)
    })
    .await
}

/// Reads one creator.
///
/// With a summary of the accounts that are linked to it now.
#[endpoint(operation_id = "getCreator")]
async fn get(app: App, caller: Caller, path: Path<CreatorPath>) -> Result<Data<Creator>, Problem> {
    let data = creators::get(&app.pg, caller.organization, path.0.creator_id).await?;
    Ok(Data { data })
}

/// Changes a creator: only the fields that are sent.
///
/// Pausing it pauses the collecting of all its accounts; their own `is_active` stays as it is.
#[endpoint(operation_id = "updateCreator")]
async fn patch(
    app: App,
    caller: Caller,
    args: Args<(Path<CreatorPath>, Body<PatchBody>)>,
) -> Result<Data<Creator>, Problem> {
    let Args((Path(path), Body(PatchBody(change)))) = args;
    unit(|| async {
        let mut write = Write::begin(&app.pg, caller.organization).await?;
        creators::update(&mut write, path.creator_id, &change).await?;
        let data = creators::get(write.connection(), caller.organization, path.creator_id).await?;
        write.commit().await?;
        Ok(Data { data })
    })
    .await
}

/// Deletes a creator.
///
/// Its accounts stay and are linked to nobody.
#[endpoint(operation_id = "deleteCreator")]
async fn delete(app: App, caller: Caller, path: Path<CreatorPath>) -> Result<NoContent, Problem> {
    unit(|| async {
        let mut write = Write::begin(&app.pg, caller.organization).await?;
        creators::delete(&mut write, path.0.creator_id).await?;
        write.commit().await?;
        Ok(NoContent)
    })
    .await
}
