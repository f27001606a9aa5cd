//! Tenants: made, changed and deleted by command line alone. How a deleted one goes for good is `store::erasure`'s matter.

use chrono::NaiveDate;
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::organization::{Organization, Subscription};
use crate::store::postgres::Transaction;
use crate::store::{Error, Write};

/// What `org create` and `org set` say; what is left out keeps its value or takes its default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrganizationChange {
    pub name: Option<String>,
    pub subscription: Option<Subscription>,
    /// `Some(None)` lifts the cap.
    pub account_cap: Option<Option<i32>>,
    /// `Some(None)` goes back to the service's own limit.
    pub rate_limit: Option<Option<i32>>,
    pub default_max_recent_posts: Option<i32>,
    pub default_post_lookback_days: Option<i32>,
    /// `Some(None)` keeps all history from now on.
    pub retention_days: Option<Option<i32>>,
}

/// What goes with an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub struct OrganizationUsage {
    pub id: Uuid,
    pub name: String,
    pub keys: i64,
    pub creators: i64,
    pub accounts: i64,
    pub videos: i64,
}

/// Makes an organization.
pub async fn create(pg: &PgPool, name: &str, options: &OrganizationChange) -> Result<Organization, Error> {
    Ok(sqlx::query_as(
        "insert into organizations
             (id, name, subscription, account_cap, rate_limit, default_max_recent_posts, default_post_lookback_days,
              retention_days)
         values ($1, $2, coalesce($3, 'active'), $4, $5, coalesce($6, 500), coalesce($7, 365), $8)
         returning *",
    )
    .bind(Uuid::now_v7())
    .bind(name)
    .bind(options.subscription)
    .bind(options.account_cap.flatten())
    .bind(options.rate_limit.flatten())
    .bind(options.default_max_recent_posts)
    .bind(options.default_post_lookback_days)
    .bind(options.retention_days.flatten())
    .fetch_one(pg)
    .await?)
}

/// Lists every organization that is not deleted, oldest first.
pub async fn list(pg: &PgPool) -> Result<Vec<Organization>, Error> {
    Ok(sqlx::query_as("select * from organizations where deleted_at is null order by created_at, id")
        .fetch_all(pg)
        .await?)
}

/// Fails where an organization is not there; one that is deleted is not.
pub async fn require(pg: &PgPool, organization: Uuid) -> Result<(), Error> {
    let exists =
        sqlx::query_scalar("select exists (select from organizations where id = $1 and deleted_at is null)")
            .bind(organization)
            .fetch_one(pg)
            .await?;
    if exists { Ok(()) } else { Err(Error::NotFound("organization")) }
}

/// Changes an organization; running processes follow within seconds.
pub async fn update(
    pg: &PgPool,
    organization: Uuid,
    change: &OrganizationChange,
) -> Result<Organization, Error> {
    let mut write = Write::begin(pg, organization).await?;
    let changed = sqlx::query_as(
        "update organizations set
             name = coalesce($2, name),
             subscription = coalesce($3, subscription),
             account_cap = case when $4 then $5 else account_cap end,
             rate_limit = case when $6 then $7 else rate_limit end,
             default_max_recent_posts = coalesce($8, default_max_recent_posts),
             default_post_lookback_days = coalesce($9, default_post_lookback_days),
             retention_days = case when $10 then $11 else retention_days end
         where id = $1
         returning *",
    )
    .bind(organization)
    .bind(&change.name)
    .bind(change.subscription)
    .bind(change.account_cap.is_some())
    .bind(change.account_cap.flatten())
    .bind(change.rate_limit.is_some())
    .bind(change.rate_limit.flatten())
    .bind(change.default_max_recent_posts)
    .bind(change.default_post_lookback_days)
    .bind(change.retention_days.is_some())
    .bind(change.retention_days.flatten())
    .fetch_optional(write.connection())
    .await?
    .ok_or(Error::NotFound("organization"))?;
    write.commit().await?;
    Ok(changed)
}

/// The first day of which an organization's history is kept; none where all of it is.
pub async fn history_since(pg: &PgPool, organization: Uuid) -> Result<Option<NaiveDate>, Error> {
    sqlx::query_scalar("select history_since from organizations where id = $1 and deleted_at is null")
        .bind(organization)
        .fetch_optional(pg)
        .await?
        .ok_or(Error::NotFound("organization"))
}

/// Counts what an organization has, whether it is deleted already or not.
pub async fn fetch_usage(pg: &PgPool, organization: Uuid) -> Result<OrganizationUsage, Error> {
    sqlx::query_as(
        "select id, name,
                (select count(*) from api_keys where organization_id = o.id) as keys,
                (select count(*) from creators where organization_id = o.id) as creators,
                (select count(*) from accounts where organization_id = o.id) as accounts,
                (select count(*) from videos where organization_id = o.id) as videos
         from organizations o where id = $1",
    )
    .bind(organization)
    .fetch_optional(pg)
    .await?
    .ok_or(Error::NotFound("organization"))
}

/// Deletes an organization: its keys are gone, nothing of it is read from the platforms or written any more, and it cannot
/// come back. What it had is removed afterwards. Doing so again changes nothing.
pub async fn delete(pg: &PgPool, organization: Uuid) -> Result<(), Error> {
    let mut transaction = Transaction::begin(pg).await?;
    let marked =
        sqlx::query("update organizations set deleted_at = coalesce(deleted_at, now()) where id = $1")
            .bind(organization)
            .execute(&mut *transaction)
            .await?;
    if marked.rows_affected() == 0 {
        return Err(Error::NotFound("organization"));
    }
    sqlx::query("delete from api_keys where organization_id = $1")
        .bind(organization)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(())
}

/// Counts the accounts of every organization that has any.
pub async fn count_accounts(pg: &PgPool) -> Result<Vec<(Uuid, i64)>, Error> {
    let sizes = sqlx::query_as("select organization_id, count(*) from accounts group by organization_id")
        .fetch_all(pg)
        .await?;
    Ok(sizes)
}
