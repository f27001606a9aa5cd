//! Creators.

use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use serde_json::{Value, json};

use super::fields::CreatorPath;
use super::{daily, links, metrics, sparklines, timeseries, top_creators};
use crate::app::App;
use crate::http::input::{FromBody, ListQuery, ListSort};
use crate::http::route::{get_or_head, get_records, parameter_except};
use crate::http::{
    Args, Body, Caller, Collection, Created, Data, IdempotencyKey, NoContent, Path, Result, in_transaction,
};
use crate::model::creator::Creator;
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::creators::{self, CreatorChange, CreatorFilter, CreatorSort, NewCreator};

pub(super) fn router() -> Router {
    Router::with_path("creators")
        .push(get_records(list))
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
                .push(get_records(get))
                .patch(patch)
                .delete(delete)
                .push(
                    Router::with_path("accounts/{account_id}")
                        .push(get_records(links::get))
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

impl FromBody for NewCreator {
    fn example() -> Value {
        json!({"name": "Salt & Tide", "metadata": {"team": "north"}})
    }
}

impl FromBody for CreatorChange {
    fn example() -> Value {
        json!({"name": "Salt & Tide", "is_active": false})
    }
}

/// List creators
///
/// By default, sorted by name. `accounts_summary` is about the accounts that are linked now.
#[endpoint(operation_id = "listCreators")]
async fn list(
    app: App,
    caller: Caller,
    query: ListQuery<CreatorFilter, CreatorSort>,
) -> Result<Collection<Creator>> {
    let ListQuery { filter, params } = query;
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
    args: Args<(Body<NewCreator>, IdempotencyKey)>,
) -> Result<Created<Creator>> {
    let Args((Body(new), idempotency)) = args;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
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
    args: Args<(Path<CreatorPath>, Body<CreatorChange>)>,
) -> Result<Data<Creator>> {
    let Args((Path(path), Body(change))) = args;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
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
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        creators::delete(&mut write, path.0.creator_id).await?;
        write.commit().await?;
        Ok(NoContent)
    })
    .await
}
