//! Creators.

use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use serde_json::{Value, json};

use super::fields::{CreatorPath, TAGS};
use super::{daily, links, metrics, sparklines, timeseries, top_creators};
use crate::app::App;
use crate::http::input::{BodyFields, FromBody, FromQuery, ListSort, QueryParams};
use crate::http::route::{get_or_head, parameter_except};
use crate::http::{
    Args, Body, Caller, Collection, Created, Data, IdempotencyKey, ListParams, NoContent, Path, Query,
    Result, in_transaction,
};
use crate::model::creator::Creator;
use crate::model::limits::MAX_NAME_CHARS;
use crate::store::Write;
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::creators::{self, CreatorChange, CreatorFilter, CreatorSort, NewCreator};

pub(super) fn router() -> Router {
    Router::with_path("creators")
        .push(get_or_head(list))
        .post(create)
        .push(Router::with_path("top").push(get_or_head(top_creators::list)))
        .push(Router::with_path("timeseries").push(get_or_head(sparklines::get_creators)))
        .push(
            Router::with_path("metrics")
                .push(get_or_head(metrics::get_creators))
                .post(metrics::post_creators),
        )
        .push(
            parameter_except("{creator_id}", &["top", "metrics", "timeseries"])
                .push(get_or_head(get))
                .patch(patch)
                .delete(delete)
                .push(
                    Router::with_path("accounts/{account_id}")
                        .push(get_or_head(links::get))
                        .put(links::put)
                        .delete(links::delete),
                )
                .push(
                    Router::with_path("analytics")
                        .push(get_or_head(daily::get_creator))
                        .push(Router::with_path("timeseries").push(get_or_head(timeseries::get_creator))),
                ),
        )
}

impl ListSort for CreatorSort {
    const DEFAULT: (Self, SortDirection) = (CreatorSort::Name, SortDirection::Asc);
}

/// Reads the filters of the list.
pub(super) fn read_filter(query: &mut QueryParams<'_>) -> CreatorFilter {
    CreatorFilter {
        q: query.describe("Filter by a substring of the name, ignoring case.").search_text("q"),
        is_active: query.describe("Filter by `is_active`.").boolean("is_active"),
    }
}

struct ListQuery {
    filter: CreatorFilter,
    params: ListParams<CreatorSort>,
}

impl FromQuery for ListQuery {
    fn read(query: &mut QueryParams<'_>) -> Self {
        let filter = read_filter(query);
        ListQuery { params: ListParams::read(query, &filter), filter }
    }
}

const NAME: &str = "Name; need not be unique.";
const IS_ACTIVE: &str = "`false` pauses tracking of all its accounts.";

struct CreateBody(NewCreator);

impl FromBody for CreateBody {
    fn example() -> Value {
        json!({"name": "Salt & Tide", "metadata": {"team": "north"}})
    }

    fn read(body: &mut BodyFields<'_>) -> Self {
        body.require("name");
        CreateBody(NewCreator {
            name: body.describe(NAME).text("name", &(1..=MAX_NAME_CHARS)).unwrap_or_default(),
            is_active: body.describe(IS_ACTIVE).boolean_or("is_active", true),
            metadata: body.describe(TAGS).metadata("metadata").unwrap_or_default(),
        })
    }
}

struct PatchBody(CreatorChange);

impl FromBody for PatchBody {
    fn example() -> Value {
        json!({"name": "Salt & Tide", "is_active": false})
    }

    fn read(body: &mut BodyFields<'_>) -> Self {
        PatchBody(CreatorChange {
            name: body.describe(NAME).text("name", &(1..=MAX_NAME_CHARS)),
            is_active: body.describe(IS_ACTIVE).boolean("is_active"),
            metadata: body.describe(TAGS).metadata("metadata"),
        })
    }
}

/// List creators
///
/// By default, sorted by name. `accounts_summary` is about the accounts that are linked now.
#[endpoint(operation_id = "listCreators")]
async fn list(app: App, caller: Caller, query: Query<ListQuery>) -> Result<Collection<Creator>> {
    let ListQuery { filter, params } = query.0;
    let found = creators::list(&app.pg, caller.organization, &filter, &params.page).await?;
    params.into_response(found)
}

/// Create a creator
///
/// Link accounts with `PUT /creators/{creator_id}/accounts/{account_id}`, or with the account field `creator_id`.
#[endpoint(operation_id = "createCreator")]
async fn create(
    app: App,
    caller: Caller,
    args: Args<(Body<CreateBody>, IdempotencyKey)>,
) -> Result<Created<Creator>> {
    let Args((Body(CreateBody(new)), idempotency)) = args;
    in_transaction(|| async {
        let mut write = Write::begin(&app.pg, caller.organization).await?;
        if let Some(first) = idempotency.claim(&mut write).await? {
            return Ok(first);
        }
        let id = creators::create(&mut write, &new).await?;
        let creator = creators::get(write.connection(), caller.organization, id).await?;
        let created = Created::at(format!("/v2/creators/{id}"), &creator)?;
        idempotency.store(&mut write, &created).await?;
        write.commit().await?;
        Ok(created)
    })
    .await
}

/// Get a creator
///
/// `accounts_summary` is about the accounts that are linked now.
#[endpoint(operation_id = "getCreator")]
async fn get(app: App, caller: Caller, path: Path<CreatorPath>) -> Result<Data<Creator>> {
    let data = creators::get(&app.pg, caller.organization, path.0.creator_id).await?;
    Ok(Data { data })
}

/// Update a creator
///
/// Changes only the fields that are sent. Pausing a creator pauses tracking of all its accounts; their own `is_active`
/// does not change.
#[endpoint(operation_id = "updateCreator")]
async fn patch(
    app: App,
    caller: Caller,
    args: Args<(Path<CreatorPath>, Body<PatchBody>)>,
) -> Result<Data<Creator>> {
    let Args((Path(path), Body(PatchBody(change)))) = args;
    in_transaction(|| async {
        let mut write = Write::begin(&app.pg, caller.organization).await?;
        creators::update(&mut write, path.creator_id, &change).await?;
        let data = creators::get(write.connection(), caller.organization, path.creator_id).await?;
        write.commit().await?;
        Ok(Data { data })
    })
    .await
}

/// Delete a creator
///
/// Its accounts remain, without a creator.
#[endpoint(operation_id = "deleteCreator")]
async fn delete(app: App, caller: Caller, path: Path<CreatorPath>) -> Result<NoContent> {
    in_transaction(|| async {
        let mut write = Write::begin(&app.pg, caller.organization).await?;
        creators::delete(&mut write, path.0.creator_id).await?;
        write.commit().await?;
        Ok(NoContent)
    })
    .await
}
