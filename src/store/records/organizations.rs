//! Organizations, written by the command line only. `store::lifecycle` erases deleted ones.

use chrono::NaiveDate;
use serde::Serialize;
use sqlx::PgPool;
use uuid::Uuid;

use crate::model::organization::{AccountUsage, Organization, Subscription};
use crate::store::postgres::Transaction;
use crate::store::{Error, Write};

/// A partial update of an organization, or the options of a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrganizationChange {
    pub name: Option<String>,
    pub subscription: Option<Subscription>,
    /// `Some(None)` lifts the cap.
    pub account_cap: Option<Option<i32>>,
    /// `Some(None)` restores the service's limit.
    pub rate_limit: Option<Option<i32>>,
    pub default_max_recent_posts: Option<i32>,
    pub default_post_lookback_days: Option<i32>,
    /// `Some(None)` ends the retention limit.
    pub retention_days: Option<Option<i32>>,
}

/// An organization and how many records it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, sqlx::FromRow)]
pub struct OrganizationUsage {
    pub id: Uuid,
    pub name: String,
    pub keys: i64,
    pub creators: i64,
    pub accounts: i64,
    pub videos: i64,
}

/// Creates an organization.
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

/// Lists all organizations that are not deleted, oldest first.
pub async fn list(pg: &PgPool) -> Result<Vec<Organization>, Error> {
    Ok(sqlx::query_as("select * from organizations where deleted_at is null order by created_at, id")
        .fetch_all(pg)
        .await?)
}

/// Returns the given organization, which has to exist, or all.
pub async fn list_ids(pg: &PgPool, organization: Option<Uuid>) -> Result<Vec<Uuid>, Error> {
    match organization {
        Some(organization) => {
            require(pg, organization).await?;
            Ok(vec![organization])
        }
        None => Ok(list(pg).await?.iter().map(|listed| listed.id).collect()),
    }
}

/// Fails if there is no such organization, or if it is deleted.
pub async fn require(pg: &PgPool, organization: Uuid) -> Result<(), Error> {
    fetch_history_since(pg, organization).await.map(drop)
}

/// Updates an organization. Running processes apply it within seconds.
pub async fn update(
    pg: &PgPool,
    organization: Uuid,
    change: &OrganizationChange,
) -> Result<Organization, Error> {
    let mut write = Write::begin(pg, organization).await?;
    let updated = sqlx::query_as(
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
    Ok(updated)
}

/// Returns the first day of an organization's history; `None` without a limit.
pub async fn fetch_history_since(pg: &PgPool, organization: Uuid) -> Result<Option<NaiveDate>, Error> {
    sqlx::query_scalar("select history_since from organizations where id = $1 and deleted_at is null")
        .bind(organization)
        .fetch_optional(pg)
        .await?
        .ok_or(Error::NotFound("organization"))
}

/// Reads the name of an organization and what it uses of its quota; `None` if it is deleted.
pub async fn fetch_account_usage(
    pg: &PgPool,
    organization: Uuid,
) -> Result<Option<(String, AccountUsage)>, Error> {
    #[derive(sqlx::FromRow)]
    struct Named {
        name: String,
        #[sqlx(flatten)]
        usage: AccountUsage,
    }
    let named: Option<Named> = sqlx::query_as(
        "select name, account_cap, (select count(*) from accounts where organization_id = o.id) as accounts
         from organizations o where id = $1 and deleted_at is null",
    )
    .bind(organization)
    .fetch_optional(pg)
    .await?;
    Ok(named.map(|named| (named.name, named.usage)))
}

/// Counts the records of an organization, even if it is deleted.
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

/// Marks an organization as deleted and deletes its keys: it is not scraped or written any more. Its data is erased later.
/// Idempotent.
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

/// Counts the accounts of each organization that has any.
pub async fn count_accounts(pg: &PgPool) -> Result<Vec<(Uuid, i64)>, Error> {
    Ok(sqlx::query_as("select organization_id, count(*) from accounts group by organization_id")
        .fetch_all(pg)
        .await?)
}
