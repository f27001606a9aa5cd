//! Shares of a collection: links to its report.

use salvo::{Depot, Request, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::CollectionPath;
use crate::app::App;
use crate::http::forwarded::base_url;
use crate::http::input::{FromBody, ListQuery, ListSort};
use crate::http::{
    Args, Body, Caller, Collection, Created, Data, IdempotencyKey, NoContent, Path, Result, in_transaction,
};
use crate::model::share::Share;
use crate::store::postgres::keyset::SortDirection;
use crate::store::records::collections::shares::{self, NewShare, ShareSort};

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct SharePath {
    /// Collection id.
    collection_id: Uuid,
    /// Share id.
    share_id: Uuid,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct SharesFilter {}

impl ListSort for ShareSort {
    const DEFAULT: (Self, SortDirection) = (ShareSort::AddedAt, SortDirection::Desc);
}

impl FromBody for NewShare {
    fn example() -> Value {
        json!({"name": "Summer campaign for Acme", "expires_at": null, "show": ["overview", "content", "accounts"]})
    }
}

/// List a collection's shares
///
/// By default, the latest comes first. Their tokens are not shown again.
#[endpoint(operation_id = "listCollectionShares")]
pub(super) async fn list(
    app: App,
    caller: Caller,
    args: Args<(Path<CollectionPath>, ListQuery<SharesFilter, ShareSort>)>,
) -> Result<Collection<Share>> {
    let Args((Path(CollectionPath { collection_id }), ListQuery { params, .. })) = args;
    let found = shares::list(&app.pg, caller.organization, collection_id, &params.page).await?;
    params.into_response(found)
}

/// Share a collection
///
/// Creates a link to a report of the collection that needs no API key. `token` and `url` are in this response only: a retry
/// with the same `Idempotency-Key` returns null for both. A collection has at most 100.
#[endpoint(operation_id = "createCollectionShare")]
pub(super) async fn create(
    app: App,
    caller: Caller,
    args: Args<(Path<CollectionPath>, Body<NewShare>, IdempotencyKey)>,
    req: &mut Request,
    depot: &mut Depot,
) -> Result<Created<Share>> {
    let Args((Path(CollectionPath { collection_id }), Body(new), idempotency)) = args;
    let (now, root) = (app.clock.now().await, base_url(req, depot));
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        if let Some(first) = idempotency.claim(&mut write).await? {
            return Ok(first);
        }
        let (mut share, token) = shares::create(&mut write, collection_id, &new, now).await?;
        let location = format!("/v2/collections/{collection_id}/shares/{}", share.id);
        let without_token: Created<Share> = Created::at(location.clone(), &share)?;
        idempotency.store(&mut write, &without_token).await?;
        write.commit().await?;
        share.token = Some(token.reveal().to_owned());
        share.url = Some(format!("{root}/shared#{}", token.reveal()));
        Created::at(location, &share)
    })
    .await
}

/// Get a share
///
/// Without its token.
#[endpoint(operation_id = "getCollectionShare")]
pub(super) async fn get(app: App, caller: Caller, path: Path<SharePath>) -> Result<Data<Share>> {
    let SharePath { collection_id, share_id } = path.0;
    let data = shares::get(&app.pg, caller.organization, collection_id, share_id).await?;
    Ok(Data { data })
}

/// Revoke a share
///
/// Its token is rejected at once.
#[endpoint(operation_id = "deleteCollectionShare")]
pub(super) async fn delete(app: App, caller: Caller, path: Path<SharePath>) -> Result<NoContent> {
    let SharePath { collection_id, share_id } = path.0;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        shares::delete(&mut write, collection_id, share_id).await?;
        write.commit().await?;
        Ok(NoContent)
    })
    .await
}
