//! API keys: written by the command line, read by every request. Only the hash of a key is stored.

use std::collections::HashSet;
use std::fmt;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;
use sqlx::{PgConnection, PgExecutor, PgPool};
use uuid::Uuid;

use crate::model::key::ApiKey;
use crate::model::organization::{ApiKeyRecord, KeyStatus, Scope, Subscription};
use crate::store::Error;
use crate::store::postgres::Transaction;
use crate::store::records::organizations;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    pub name: String,
    pub scopes: Vec<Scope>,
    pub rate_limit: Option<i32>,
    pub expires_at: Option<DateTime<Utc>>,
}

impl NewKey {
    /// A key with every scope, no expiry and no rate limit of its own.
    pub fn named(name: impl Into<String>) -> Self {
        NewKey { name: name.into(), scopes: Scope::ALL.to_vec(), rate_limit: None, expires_at: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// How long the old key still works.
    pub overlap: TimeDelta,
    /// When the new key expires; `None` keeps the old key's expiry.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A new key with its secret, which is shown once.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct CreatedKey {
    #[serde(flatten)]
    pub record: ApiKeyRecord,
    pub key: String,
}

impl fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedKey").field("record", &self.record).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RotatedKey {
    #[serde(flatten)]
    pub created: CreatedKey,
    pub replaces: ApiKeyRecord,
}

/// The permissions and limits of a key.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Grant {
    pub id: Uuid,
    pub organization_id: Uuid,
    pub name: String,
    pub scopes: Vec<String>,
    pub status: KeyStatus,
    pub subscription: Subscription,
    pub expires_at: Option<DateTime<Utc>>,
    /// The key's limit, or else its organization's.
    pub rate_limit: Option<i32>,
    /// The first day of the organization's history.
    pub history_since: Option<NaiveDate>,
}

/// A statement that returns the columns of [`ApiKeyRecord`].
macro_rules! api_key_sql {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            " id, organization_id, name, scopes, status, rate_limit, expires_at, created_at ",
            $after
        )
    };
}

/// Creates a key for an organization.
pub async fn create(pg: &PgPool, organization: Uuid, new: &NewKey) -> Result<CreatedKey, Error> {
    let mut scopes = new.scopes.clone();
    scopes.sort_unstable();
    scopes.dedup();
    let scopes: Vec<_> = scopes.into_iter().map(|scope| scope.as_str().to_owned()).collect();
    insert(pg, organization, &new.name, &scopes, new.rate_limit, new.expires_at).await
}

async fn insert(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    name: &str,
    scopes: &[String],
    rate_limit: Option<i32>,
    expires_at: Option<DateTime<Utc>>,
) -> Result<CreatedKey, Error> {
    let key = ApiKey::generate()?;
    let record = sqlx::query_as(api_key_sql!(
        "insert into api_keys (id, organization_id, name, hash, scopes, rate_limit, expires_at)
         select $2, id, $3, $4, $5, $6, $7 from organizations where id = $1 and deleted_at is null
         returning",
        ""
    ))
    .bind(organization)
    .bind(Uuid::now_v7())
    .bind(name)
    .bind(key.hash())
    .bind(scopes)
    .bind(rate_limit)
    .bind(expires_at)
    .fetch_optional(pg)
    .await?
    .ok_or(Error::NotFound("organization"))?;
    Ok(CreatedKey { record, key: key.reveal().to_owned() })
}

/// Lists the keys of an organization, oldest first.
pub async fn list(pg: &PgPool, organization: Uuid) -> Result<Vec<ApiKeyRecord>, Error> {
    organizations::require(pg, organization).await?;
    Ok(sqlx::query_as(api_key_sql!("select", "from api_keys where organization_id = $1 order by id"))
        .bind(organization)
        .fetch_all(pg)
        .await?)
}

/// Sets a key's status. Running processes apply it within seconds.
pub async fn set_status(pg: &PgPool, key: Uuid, status: KeyStatus) -> Result<ApiKeyRecord, Error> {
    sqlx::query_as(api_key_sql!("update api_keys set status = $2 where id = $1 returning", ""))
        .bind(key)
        .bind(status)
        .fetch_optional(pg)
        .await?
        .ok_or(Error::NotFound("key"))
}

/// Replaces a key: creates one with the same permissions, and lets the old one expire after the overlap.
pub async fn rotate(pg: &PgPool, key: Uuid, rotation: Rotation) -> Result<RotatedKey, Error> {
    let mut transaction = Transaction::begin(pg).await?;
    let (LockedKey { record: old, replaced_by }, now) = lock(&mut transaction, key).await?;
    if old.status != KeyStatus::Active || old.expires_at.is_some_and(|expires| expires <= now) {
        return Err(Error::Conflict(
            "this key is disabled or expired and cannot be rotated: create another with key create"
                .to_owned(),
        ));
    }
    // Its remaining time is the overlap, which is not an expiry to pass on.
    if let Some(other) = replaced_by {
        return Err(Error::Conflict(format!(
            "this key was replaced by {other}: rotate that one, or create another with key create"
        )));
    }
    let expires_at = rotation.expires_at.or(old.expires_at);
    let created =
        insert(&mut *transaction, old.organization_id, &old.name, &old.scopes, old.rate_limit, expires_at)
            .await?;
    let replaces = sqlx::query_as(api_key_sql!(
        "update api_keys set expires_at = least(expires_at, $2), replaced_by = $3 where id = $1 returning",
        ""
    ))
    .bind(key)
    .bind(now + rotation.overlap)
    .bind(created.record.id)
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(RotatedKey { created, replaces })
}

#[derive(sqlx::FromRow)]
struct LockedKey {
    #[sqlx(flatten)]
    record: ApiKeyRecord,
    /// May refer to a deleted key.
    replaced_by: Option<Uuid>,
}

/// Locks a key of an organization that is not deleted. Also returns the time of the database.
async fn lock(connection: &mut PgConnection, key: Uuid) -> Result<(LockedKey, DateTime<Utc>), Error> {
    let key: LockedKey =
        sqlx::query_as(api_key_sql!("select replaced_by,", "from api_keys where id = $1 for update"))
            .bind(key)
            .fetch_optional(&mut *connection)
            .await?
            .ok_or(Error::NotFound("key"))?;
    let now: Option<DateTime<Utc>> = sqlx::query_scalar(
        "select now() from organizations where id = $1 and deleted_at is null for key share",
    )
    .bind(key.record.organization_id)
    .fetch_optional(connection)
    .await?;
    Ok((key, now.ok_or(Error::NotFound("key"))?))
}

/// Deletes a key. Also returns how many keys its organization has left.
pub async fn delete(pg: &PgPool, key: Uuid) -> Result<(ApiKeyRecord, i64), Error> {
    let deleted: ApiKeyRecord =
        sqlx::query_as(api_key_sql!("delete from api_keys where id = $1 returning", ""))
            .bind(key)
            .fetch_optional(pg)
            .await?
            .ok_or(Error::NotFound("key"))?;
    let remaining = sqlx::query_scalar("select count(*) from api_keys where organization_id = $1")
        .bind(deleted.organization_id)
        .fetch_one(pg)
        .await?;
    Ok((deleted, remaining))
}

/// Finds a key by its hash, which is then compared in constant time.
pub async fn find_grant(pg: &PgPool, key: &ApiKey) -> Result<Option<Grant>, Error> {
    #[derive(sqlx::FromRow)]
    struct StoredKey {
        hash: Vec<u8>,
        #[sqlx(flatten)]
        grant: Grant,
    }
    let stored: Option<StoredKey> = sqlx::query_as(
        "select k.hash, k.id, k.organization_id, k.name, k.scopes, k.status, o.subscription, k.expires_at,
                coalesce(k.rate_limit, o.rate_limit) as rate_limit, o.history_since
         from api_keys k join organizations o on o.id = k.organization_id
         where k.hash = $1 and o.deleted_at is null",
    )
    .bind(key.hash())
    .fetch_optional(pg)
    .await?;
    Ok(stored.filter(|stored| key.matches(&stored.hash)).map(|stored| stored.grant))
}

/// Whether a request with a key that was found before would be accepted now.
pub async fn is_accepted(pg: &PgPool, organization: Uuid, key: Uuid) -> Result<bool, Error> {
    let is_accepted = sqlx::query_scalar(
        "select exists (
             select from api_keys k join organizations o on o.id = k.organization_id
             where k.id = $1 and k.organization_id = $2 and k.status = $3 and o.subscription = $4
                and o.deleted_at is null and coalesce(k.expires_at > $5, true)
         )",
    )
    .bind(key)
    .bind(organization)
    .bind(KeyStatus::Active)
    .bind(Subscription::Active)
    .bind(Utc::now())
    .fetch_one(pg)
    .await?;
    Ok(is_accepted)
}

/// Returns those of some keys that are accepted.
pub async fn find_accepted(pg: &PgPool, keys: &[Uuid]) -> Result<HashSet<Uuid>, Error> {
    let accepted: Vec<Uuid> = sqlx::query_scalar(
        "select k.id from api_keys k join organizations o on o.id = k.organization_id
         where k.id = any($1) and k.status = $2 and o.subscription = $3
           and o.deleted_at is null and coalesce(k.expires_at > $4, true)",
    )
    .bind(keys)
    .bind(KeyStatus::Active)
    .bind(Subscription::Active)
    .bind(Utc::now())
    .fetch_all(pg)
    .await?;
    Ok(accepted.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_the_key() {
        let key = ApiKey::generate().unwrap();
        let record = ApiKeyRecord {
            id: Uuid::nil(),
            organization_id: Uuid::nil(),
            name: "reports".to_owned(),
            scopes: Vec::new(),
            status: KeyStatus::Active,
            rate_limit: None,
            expires_at: None,
            created_at: DateTime::UNIX_EPOCH,
        };
        let debug = format!("{:?}", CreatedKey { record, key: key.reveal().to_owned() });
        assert!(debug.contains("reports") && !debug.contains(key.reveal()), "{debug}");
    }
}
