//! Links between creators and accounts. An account belongs to one creator at most, so the link lives in its row.

use sqlx::PgExecutor;
use uuid::Uuid;

use crate::model::creator::CreatorAccountLink;
use crate::store::records::accounts;
use crate::store::records::accounts::change::{self, AccountChange};
use crate::store::records::creators;
use crate::store::{Error, Write};

/// Reads the link of an account to this creator.
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

/// Links an account that belongs to nobody else; says whether the link is new.
pub async fn put(
    write: &mut Write,
    creator: Uuid,
    account: Uuid,
) -> Result<(CreatorAccountLink, bool), Error> {
    let organization = write.organization();
    creators::require(write.connection(), organization, creator).await?;
    accounts::require(write.connection(), organization, account).await?;
    let owner = change::owner(write, account, creator).await?;
    let new = match owner {
        Some(owner) if owner == creator => false,
        Some(owner) => {
            return Err(Error::Conflict(format!(
                "the account belongs to creator {owner}: unlink it there first, or set creator_id on the account"
            )));
        }
        None => {
            let link = AccountChange { creator_id: Some(Some(creator)), ..AccountChange::default() };
            change::update(write, account, &link).await?;
            true
        }
    };
    Ok((get(write.connection(), organization, creator, account).await?, new))
}

/// Takes an account from this creator.
pub async fn delete(write: &mut Write, creator: Uuid, account: Uuid) -> Result<(), Error> {
    let organization = write.organization();
    creators::require(write.connection(), organization, creator).await?;
    accounts::require(write.connection(), organization, account).await?;
    match change::owner(write, account, creator).await? {
        Some(owner) if owner == creator => {
            let unlink = AccountChange { creator_id: Some(None), ..AccountChange::default() };
            change::update(write, account, &unlink).await
        }
        _ => Err(Error::NotFound("link between this creator and this account")),
    }
}
