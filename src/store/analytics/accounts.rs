//! The accounts of a query, with the subject ids of their history.

use sqlx::PgPool;
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::records::{accounts, creators};

/// An account, and the subject of its history.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct AccountSubject {
    pub id: Uuid,
    pub internal_id: i64,
}

/// Finds the accounts of the organization among ids.
pub async fn find(pg: &PgPool, organization: Uuid, ids: &[Uuid]) -> Result<Vec<AccountSubject>, Error> {
    let accounts =
        sqlx::query_as("select id, internal_id from accounts where organization_id = $1 and id = any($2)")
            .bind(organization)
            .bind(ids)
            .fetch_all(pg)
            .await?;
    Ok(accounts)
}

/// The internal ids of the accounts that match every filter. Fails if the organization lacks the account or the creator.
pub async fn fetch_subject_ids(
    pg: &PgPool,
    organization: Uuid,
    account: Option<Uuid>,
    creator: Option<Uuid>,
    platform: Option<Platform>,
) -> Result<Vec<i64>, Error> {
    let subjects: Vec<_> = sqlx::query_scalar(
        "select internal_id from accounts
         where organization_id = $1 and ($2::uuid is null or id = $2) and ($3::uuid is null or creator_id = $3)
             and ($4::text is null or platform = $4)",
    )
    .bind(organization)
    .bind(account)
    .bind(creator)
    .bind(platform)
    .fetch_all(pg)
    .await?;
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
