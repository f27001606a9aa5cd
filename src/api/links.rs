//! Links between creators and accounts.

use salvo::Writer;
use salvo_oapi::endpoint;

use super::fields::LinkPath;
use crate::app::App;
use crate::http::{Caller, Data, FoundOrCreated, NoContent, Path, Result, in_transaction};
use crate::model::creator::CreatorAccountLink;
use crate::store::records::links;

/// Get a creator link
///
/// 404 if the account is not linked to this creator.
#[endpoint(operation_id = "getCreatorAccount")]
pub(super) async fn get(app: App, caller: Caller, path: Path<LinkPath>) -> Result<Data<CreatorAccountLink>> {
    let LinkPath { creator_id, account_id } = path.0;
    let data = links::get(&app.pg, caller.organization, creator_id, account_id).await?;
    Ok(Data { data })
}

/// Create a creator link
///
/// Links an account to a creator. An account has at most one creator; if it has another one, the response is 409.
#[endpoint(
    operation_id = "linkCreatorAccount",
    responses((status_code = 409, description = "The account is linked to another creator."))
)]
pub(super) async fn put(
    app: App,
    caller: Caller,
    path: Path<LinkPath>,
) -> Result<FoundOrCreated<CreatorAccountLink>> {
    let LinkPath { creator_id, account_id } = path.0;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        let (link, new) = links::put(&mut write, creator_id, account_id).await?;
        if !new {
            return FoundOrCreated::found(&link);
        }
        write.commit().await?;
        FoundOrCreated::created(format!("/v2/creators/{creator_id}/accounts/{account_id}"), &link)
    })
    .await
}

/// Delete a creator link
///
/// The account remains tracked. Its history no longer counts for the creator.
#[endpoint(operation_id = "unlinkCreatorAccount")]
pub(super) async fn delete(app: App, caller: Caller, path: Path<LinkPath>) -> Result<NoContent> {
    let LinkPath { creator_id, account_id } = path.0;
    in_transaction(&app, || async {
        let mut write = app.begin_write(caller.organization).await?;
        links::delete(&mut write, creator_id, account_id).await?;
        write.commit().await?;
        Ok(NoContent)
    })
    .await
}
