//! Accounts for analytics: which of them are meant, by the ids under which history knows them.

use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;
use crate::store::records::accounts;
use crate::store::records::creators;

/// An account as its history is found.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct AccountSubject {
    pub id: Uuid,
    pub internal_id: i64,
}

/// Accounts of the organization among ids.
pub async fn find(pg: &PgPool, organization: Uuid, ids: &[Uuid]) -> Result<Vec<AccountSubject>, Error> {
    let accounts =
        sqlx::query_as("select id, internal_id from accounts where organization_id = $1 and id = any($2)")
            .bind(organization)
            .bind(ids)
            .fetch_all(pg)
            .await?;
    Ok(accounts)
}

/// The internal ids of one account, of a creator's accounts, or of what is both. Fails unless the account and the
/// creator are the organization's.
pub async fn fetch_subject_ids(
    pg: &PgPool,
    organization: Uuid,
    account: Option<Uuid>,
    creator: Option<Uuid>,
) -> Result<Vec<i64>, Error> {
    let subjects: Vec<_> = sqlx::query_scalar(
        "select internal_id from accounts
         where organization_id = $1 and ($2::uuid is null or id = $2) and ($3::uuid is null or creator_id = $3)",
    )
    .bind(organization)
    .bind(account)
    .bind(creator)
    .fetch_all(pg)
    .await?;
    // Whoever has accounts is there.
    if subjects.is_empty() {
        if let Some(account) = account {
            accounts::require(pg, organization, account).await?;
        }
        if let Some(creator) = creator {
            creators::require(pg, organization, creator).await?;
        }
    }
    Ok(subjects)
}
