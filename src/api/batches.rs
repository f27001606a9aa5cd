//! Batches that create or update records: one transaction, and a result per item.

use std::marker::PhantomData;

use salvo::Writer;
use salvo::http::StatusCode;
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use super::mcp::tool::{Answer, Tool};
use super::new_records::{NewAccountBody, NewVideoBody};
use crate::app::{App, InFlightKey};
use crate::http::input::FromBody;
use crate::http::input::body::read_item;
use crate::http::{
    Args, BatchItemResult, BatchResponse, Body, Caller, IdempotencyKey, Problem, Result, in_transaction,
};
use crate::model::identifier::VideoIdentifier;
use crate::model::limits::MAX_WRITE_BATCH;
use crate::store::records::accounts::change::{self, AccountChange};
use crate::store::records::accounts::create;
use crate::store::records::videos::change::{self as video_change, NewVideo};
use crate::store::{self, Write};

const NOT_LINKABLE: &str = "The organization has no such creator.";

/// A body that creates one record.
trait CreateItem: FromBody {
    /// Valid bodies, for the OpenAPI document.
    fn examples() -> Value;
}

impl CreateItem for NewAccountBody {
    fn examples() -> Value {
        json!([{"platform": "tiktok", "username": "@low.tide"}, {"platform": "instagram", "username": "high.tide"}])
    }
}

impl CreateItem for NewVideoBody {
    fn examples() -> Value {
        let id = "7301234567890123789";
        json!([{"platform": "tiktok", "identifier": id}, {"platform": "instagram", "identifier": "DExample456"}])
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(bound = "")]
#[schemars(bound = "T: JsonSchema")]
struct CreateBatch<T> {
    /// Bodies of requests for one record. They apply in order.
    #[schemars(with = "Vec<T>", length(min = 1, max = MAX_WRITE_BATCH), extend("x-deferred" = true))]
    items: Vec<Value>,
    #[serde(skip)]
    body: PhantomData<T>,
}

impl<T: CreateItem> FromBody for CreateBatch<T> {
    fn example() -> Value {
        json!({"items": T::examples()})
    }
}

impl<T: CreateItem> CreateBatch<T> {
    /// Reads the items, each with its own violations.
    fn read<R>(&self, convert: impl Fn(T, &str) -> Result<R>) -> Vec<Result<R>> {
        let read = |(index, item): (usize, &Value)| {
            let path = format!("items[{index}]");
            convert(read_item(item, &path).map_err(Problem::invalid_item)?, &path)
        };
        self.items.iter().enumerate().map(read).collect()
    }
}

#[derive(Deserialize, JsonSchema)]
struct UpdateBatch {
    /// Accounts to update.
    #[schemars(length(min = 1, max = MAX_WRITE_BATCH), extend("x-repeatable" = true))]
    ids: Vec<Uuid>,
    /// Fields to change.
    #[serde(rename = "set")]
    change: AccountChange,
}

impl FromBody for UpdateBatch {
    fn example() -> Value {
        json!({"ids": ["0198f3c2-7a10-7cc0-9d5e-3f1b8a6e2d41"], "set": {"is_active": false}})
    }
}

pub(super) const ACCOUNTS_TOOL: Tool = Tool {
    name: "track_accounts",
    description: "Start tracking up to 50 accounts by platform and username or profile link; history begins with the \
        first scrape, within minutes. Each item has its own result: status 201 created, 409 tracked already \
        (with its id), 403 beyond the quota, 404 no such creator, 422 invalid. Repeating a call changes \
        nothing.",
    answer: Answer::Response("createAccounts"),
};

/// Track up to 500 accounts
///
/// In one transaction. Each item succeeds or fails alone, as a request for it would: `status` is 201, or 409 with the id of
/// the account that exists already, 403 beyond the account quota, 404 for an unknown creator, or 422.
#[endpoint(operation_id = "createAccounts")]
pub(super) async fn create_accounts(
    app: App,
    caller: Caller,
    args: Args<(Body<CreateBatch<NewAccountBody>>, IdempotencyKey)>,
) -> Result<BatchResponse> {
    let Args((Body(batch), idempotency)) = args;
    let items = batch.read(|body, _path| body.into_account());
    let now = app.clock.now().await;
    let _guards = match begin(&app, &caller, &idempotency).await? {
        BatchStart::First(guards) => guards,
        BatchStart::Retry(response) => return Ok(response),
    };
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        if let Some(first) = idempotency.claim(&mut write).await? {
            return Ok(first);
        }
        let created = create::create_all(&mut write, &valid(&items), now).await?;
        commit(write, &idempotency, created_items(&items, created)).await
    })
    .await
}

pub(super) const VIDEOS_TOOL: Tool = Tool {
    name: "track_videos",
    description: "Start tracking up to 50 single posts by platform and link or id, for posts of accounts that are not \
        tracked. Each item has its own result: status 201 created, 409 tracked already (with its id), 422 \
        invalid. Short links are 422: use the links they lead to. Repeating a call changes nothing.",
    answer: Answer::Response("createVideos"),
};

/// Track up to 500 videos
///
/// In one transaction. Each item succeeds or fails alone, as a request for it would: `status` is 201, or 409 with the id of
/// the video that is tracked already, or 422. Short links are 422: send them one at a time, or the URLs they lead to.
#[endpoint(operation_id = "createVideos")]
pub(super) async fn create_videos(
    app: App,
    caller: Caller,
    args: Args<(Body<CreateBatch<NewVideoBody>>, IdempotencyKey)>,
) -> Result<BatchResponse> {
    let Args((Body(batch), idempotency)) = args;
    let items = batch.read(|body, path| to_new_video(&app, body, &format!("{path}.identifier")));
    let now = app.clock.now().await;
    let _guards = match begin(&app, &caller, &idempotency).await? {
        BatchStart::First(guards) => guards,
        BatchStart::Retry(response) => return Ok(response),
    };
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        if let Some(first) = idempotency.claim(&mut write).await? {
            return Ok(first);
        }
        let created = video_change::create_all(&mut write, &valid(&items), now).await?;
        commit(write, &idempotency, created_items(&items, created)).await
    })
    .await
}

/// Update up to 500 accounts
///
/// Makes the same change to all in one transaction. An account that does not exist is 404 for its item alone.
#[endpoint(operation_id = "updateAccounts", responses((status_code = 404, description = NOT_LINKABLE)))]
pub(super) async fn update_accounts(
    app: App,
    caller: Caller,
    args: Args<(Body<UpdateBatch>, IdempotencyKey)>,
) -> Result<BatchResponse> {
    let Args((Body(UpdateBatch { ids, change }), idempotency)) = args;
    let _guards = match begin(&app, &caller, &idempotency).await? {
        BatchStart::First(guards) => guards,
        BatchStart::Retry(response) => return Ok(response),
    };
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        if let Some(first) = idempotency.claim(&mut write).await? {
            return Ok(first);
        }
        let updated = change::update_all(&mut write, &ids, &change).await?;
        let items = ids.iter().zip(updated).enumerate().map(|(index, (id, updated))| match updated {
            Ok(()) => BatchItemResult::success(index, StatusCode::OK, *id),
            Err(error) => BatchItemResult::failure(index, Some(*id), &error.into()),
        });
        commit(write, &idempotency, items.collect()).await
    })
    .await
}

enum BatchStart {
    /// Holds the key and the turn until these are dropped.
    First((Option<InFlightKey>, OwnedMutexGuard<()>)),
    Retry(BatchResponse),
}

/// Waits for the organization's batches before this one. A retry waits for none of them.
async fn begin(app: &App, caller: &Caller, idempotency: &IdempotencyKey) -> Result<BatchStart> {
    let organization = caller.organization;
    if let Some(first) = idempotency.stored_response(app, organization).await? {
        return Ok(BatchStart::Retry(first));
    }
    let in_flight = idempotency.begin(app, organization)?;
    let permit = app.batches.wait(organization).await.ok_or_else(Problem::too_many_batches)?;
    Ok(BatchStart::First((in_flight, permit)))
}

fn to_new_video(app: &App, body: NewVideoBody, path: &str) -> Result<NewVideo> {
    match body.identifier(app, path)? {
        VideoIdentifier::Video(video) => {
            Ok(NewVideo { platform: body.platform, video, tracking: body.tracking })
        }
        VideoIdentifier::ShortLink(_) => {
            let message = "is a short link, which a batch does not resolve: send it by POST /videos";
            Err(Problem::invalid_field(path, message))
        }
    }
}

fn valid<T>(items: &[Result<T>]) -> Vec<&T> {
    items.iter().flatten().collect()
}

/// Returns the results of all items from those of the valid ones.
fn created_items<T>(items: &[Result<T>], created: Vec<Result<Uuid, store::Error>>) -> Vec<BatchItemResult> {
    let mut created = created.into_iter();
    let results = items.iter().enumerate().filter_map(|(index, item)| match item {
        Ok(_) => created.next().map(|result| BatchItemResult::created(index, result)),
        Err(problem) => Some(BatchItemResult::failure(index, None, problem)),
    });
    results.collect()
}

async fn commit(
    mut write: Write,
    idempotency: &IdempotencyKey,
    items: Vec<BatchItemResult>,
) -> Result<BatchResponse> {
    let response = BatchResponse::new(items)?;
    idempotency.store(&mut write, &response).await?;
    write.commit().await?;
    Ok(response)
}
