//! Links between creators and accounts: a column of the account, because it has at most one creator.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::model::creator::CreatorAccountLink;
use crate::store::records::accounts::change::{self, AccountChange};
use crate::store::{Error, Write};

/// Reads the link between a creator and an account.
pub async fn get(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    creator: Uuid,
    account: Uuid,
) -> Result<CreatorAccountLink, Error> {
    sqlx::query_as(
        "select creator_id, id as account_id, coalesce(linked_at, updated_at) as linked_at
         from accounts where organization_id = $1 and creator_id = $2 and id = $3",
    )
    .bind(organization)
    .bind(creator)
    .bind(account)
    .fetch_optional(pg)
    .await?
    .ok_or(Error::NotFound("link between this creator and this account"))
}

/// Links an account without a creator. Returns whether the link is new.
pub async fn put(
    write: &mut Write,
    creator: Uuid,
    account: Uuid,
) -> Result<(CreatorAccountLink, bool), Error> {
    let is_new = match change::lock_with_creator(write, account, creator).await? {
        Some(other) if other == creator => false,
        Some(other) => {
            return Err(Error::Conflict(format!(
                "the account is linked to creator {other}: unlink it there first, or set creator_id on the account"
            )));
        }
        None => {
            let link = AccountChange { creator_id: Some(Some(creator)), ..AccountChange::default() };
            change::update(write, account, &link).await?;
            true
        }
    };
    let organization = write.organization();
    Ok((get(write.connection(), organization, creator, account).await?, is_new))
}

/// Unlinks an account from a creator.
pub async fn delete(write: &mut Write, creator: Uuid, account: Uuid) -> Result<(), Error> {
    match change::lock_with_creator(write, account, creator).await? {
        Some(other) if other == creator => {
            let unlink = AccountChange { creator_id: Some(None), ..AccountChange::default() };
            change::update(write, account, &unlink).await
        }
        _ => Err(Error::NotFound("link between this creator and this account")),
    }
}
