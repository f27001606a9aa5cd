//! Collections: named sets of posts, by rule, by hand, or both. Their figures are in the files below.

mod figures;
mod marks;
mod payouts;
mod rankings;
mod shares;

pub(super) use figures::{CollectionOverview, CollectionRow, CollectionSeriesQuery, overview, timeseries};
pub(super) use payouts::{PayoutGroupBy, PayoutRow, PayoutsMeta, PayoutsQuery, rows};
pub(super) use rankings::{
    CollectionAccount, CollectionCreator, CollectionMembersMeta, MembersQuery, REPORT_TOOL, accounts,
    creators,
};
use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::api::mcp::tool::{Answer, Tool};
use crate::app::App;
use crate::http::input::body::read_item;
use crate::http::input::violations::Violations;
use crate::http::input::{FromBody, ListQuery, ListSort};
use crate::http::route::{get_or_head, get_records, put_with_body};
use crate::http::{
    Args, Body, Caller, Collection, Created, Data, IdempotencyKey, NoContent, Path, Result, in_transaction,
};
use crate::model::collection::CollectionRecord;
use crate::model::payout::{Bonus, Payout};
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::collections::{
    self, CollectionChange, CollectionFilter, CollectionSort, NewCollection,
};

pub(super) fn router() -> Router {
    Router::with_path("collections").push(get_records(list)).post(create).push(
        Router::with_path("{collection_id}")
            .push(get_records(get))
            .patch(patch)
            .delete(delete)
            .push(
                Router::with_path("videos").push(get_records(marks::list)).post(marks::post).push(
                    Router::with_path("{video_id}")
                        .push(get_records(marks::get))
                        .push(put_with_body(marks::put))
                        .delete(marks::delete),
                ),
            )
            .push(
                Router::with_path("shares").push(get_records(shares::list)).post(shares::create).push(
                    Router::with_path("{share_id}").push(get_records(shares::get)).delete(shares::delete),
                ),
            )
            .push(Router::with_path("overview").push(get_or_head(figures::get_overview)))
            .push(Router::with_path("timeseries").push(get_or_head(figures::get_timeseries)))
            .push(Router::with_path("accounts").push(get_or_head(rankings::list_accounts)))
            .push(Router::with_path("creators").push(get_or_head(rankings::list_creators)))
            .push(
                Router::with_path("payouts")
                    .push(get_or_head(payouts::list))
                    .push(Router::with_path("videos").push(get_or_head(payouts::list_videos))),
            ),
    )
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct CollectionPath {
    /// Collection id.
    pub(super) collection_id: Uuid,
}

impl ListSort for CollectionSort {
    const DEFAULT: (Self, SortDirection) = (CollectionSort::Name, SortDirection::Asc);
}

impl FromBody for NewCollection {
    fn example() -> Value {
        json!({
            "name": "Summer campaign", "description": null,
            "rule": {"hashtags": ["surf"], "posted_after": "2026-02-01"},
            "payout": {"currency": "EUR", "per_thousand_views": "4.50", "bonuses": [{"views": 100_000, "amount": "50"}]},
        })
    }

    fn check(fields: &Map<String, Value>, violations: &mut Violations) {
        check_payout(fields, violations);
    }
}

impl FromBody for CollectionChange {
    fn example() -> Value {
        json!({"name": "Autumn campaign", "rule": {"hashtags": ["surf", "firstlight"]}, "payout": null})
    }

    fn check(fields: &Map<String, Value>, violations: &mut Violations) {
        check_payout(fields, violations);
    }
}

impl FromBody for Bonus {
    fn example() -> Value {
        json!({"views": 100_000, "amount": "50"})
    }
}

/// Checks amounts, and the bonuses one by one.
fn check_payout(fields: &Map<String, Value>, violations: &mut Violations) {
    let Some(Value::Object(payout)) = fields.get("payout") else { return };
    let mut valid = payout.clone();
    if let Some(Value::Array(bonuses)) = payout.get("bonuses") {
        let mut read = Vec::new();
        for (number, bonus) in bonuses.iter().enumerate() {
            let path = format!("payout.bonuses[{number}]");
            match read_item::<Bonus>(bonus, &path) {
                Ok(bonus) => read.push(json!(bonus)),
                Err(invalid) => violations.extend(invalid),
            }
        }
        // Of some alone, the positions would be others.
        let is_complete = read.len() == bonuses.len();
        valid.insert("bonuses".to_owned(), if is_complete { read.into() } else { json!([]) });
    }
    valid.entry("currency").or_insert_with(|| "".into());
    if let Ok(terms) = serde_json::from_value::<Payout>(valid.into()) {
        for (field, message) in terms.violations() {
            let field = format!("payout.{field}");
            if !violations.contains_field(&field) {
                violations.add(field, message);
            }
        }
    }
}

pub(in crate::api) const LIST_TOOL: Tool = Tool {
    name: "list_collections",
    description: "List collections by name: named sets of posts, such as campaigns or clients, with the rule by which \
        posts are in them, how many posts are included or excluded by hand, and how posts are paid. For \
        figures of one use get_collection_report; for its posts use rank_content or list_content with \
        collection_id.",
    answer: Answer::Response("listCollections"),
};

/// List collections
///
/// By default, sorted by name.
#[endpoint(operation_id = "listCollections")]
async fn list(
    app: App,
    caller: Caller,
    query: ListQuery<CollectionFilter, CollectionSort>,
) -> Result<Collection<CollectionRecord>> {
    let ListQuery { filter, params } = query;
    let found = collections::list(&app.pg, caller.organization, &filter, &params.page).await?;
    params.into_response(found)
}

pub(in crate::api) const CREATE_TOOL: Tool = Tool {
    name: "create_collection",
    description: "Create a collection, a named set of posts, such as a campaign. With a rule all posts that fulfil its \
        conditions are in it, also later ones: hashtags, accounts, creators, tags, platform, posting date, \
        min_views. The name must not be taken; a second call with it changes nothing and returns an error \
        with the id of the existing collection.",
    answer: Answer::Response("createCollection"),
};

/// Create a collection
///
/// Posts are in it by its rule, by hand, or both. If the name is taken, whatever its case, the response is 409 and `detail`
/// names the other collection. An organization has at most 1,000.
#[endpoint(
    operation_id = "createCollection",
    responses((status_code = 404, description = "The rule has the id of an account or creator that does not exist."))
)]
async fn create(
    app: App,
    caller: Caller,
    args: Args<(Body<NewCollection>, IdempotencyKey)>,
) -> Result<Created<CollectionRecord>> {
    let Args((Body(new), idempotency)) = args;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        if let Some(first) = idempotency.claim(&mut write).await? {
            return Ok(first);
        }
        let id = collections::create(&mut write, &new).await?;
        let collection = collections::get(write.connection(), caller.organization, id).await?;
        let created = Created::at(format!("/v2/collections/{id}"), &collection)?;
        idempotency.store(&mut write, &created).await?;
        write.commit().await?;
        Ok(created)
    })
    .await
}

/// Get a collection
///
/// `included_count` and `excluded_count` are the posts that are marked by hand.
#[endpoint(operation_id = "getCollection")]
async fn get(app: App, caller: Caller, path: Path<CollectionPath>) -> Result<Data<CollectionRecord>> {
    let data = collections::get(&app.pg, caller.organization, path.0.collection_id).await?;
    Ok(Data { data })
}

/// Update a collection
///
/// Changes only the fields that are sent. A rule replaces the existing one as a whole; it may keep ids of accounts and
/// creators that were deleted.
#[endpoint(
    operation_id = "updateCollection",
    responses((status_code = 409, description = "The name is that of another collection."))
)]
async fn patch(
    app: App,
    caller: Caller,
    args: Args<(Path<CollectionPath>, Body<CollectionChange>)>,
) -> Result<Data<CollectionRecord>> {
    let Args((Path(path), Body(change))) = args;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        collections::update(&mut write, path.collection_id, &change).await?;
        let data = collections::get(write.connection(), caller.organization, path.collection_id).await?;
        write.commit().await?;
        Ok(Data { data })
    })
    .await
}

/// Delete a collection
///
/// Its posts stay. Its shares end.
#[endpoint(operation_id = "deleteCollection")]
async fn delete(app: App, caller: Caller, path: Path<CollectionPath>) -> Result<NoContent> {
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        collections::delete(&mut write, path.0.collection_id).await?;
        write.commit().await?;
        Ok(NoContent)
    })
    .await
}
