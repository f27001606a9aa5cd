//! API keys: made and changed by command line, looked up at every request. Only a hash of a key is stored.

use std::fmt;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::model::key::ApiKey;
use crate::model::organization::{ApiKeyRecord, KeyStatus, Scope, Subscription};
use crate::store::Error;
use crate::store::postgres::Transaction;
use crate::store::records::organizations;

/// What `key create` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    pub name: String,
    pub scopes: Vec<Scope>,
    pub rate_limit: Option<i32>,
    pub expires_at: Option<DateTime<Utc>>,
}

impl NewKey {
    /// A key with every scope and no limits of its own.
    pub fn named(name: impl Into<String>) -> Self {
        NewKey { name: name.into(), scopes: Scope::ALL.to_vec(), rate_limit: None, expires_at: None }
    }
}

/// How a key is replaced by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// How much longer the former key works.
    pub overlap: TimeDelta,
    /// When the new key stops working; without, when the former one would have.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A key as it is shown once: with its secret.
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

/// A new key, and the one that it takes the place of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RotatedKey {
    #[serde(flatten)]
    pub created: CreatedKey,
    pub replaces: ApiKeyRecord,
}

/// What a key lets its holder do, as far as the database knows.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Grant {
    pub id: Uuid,
    pub organization_id: Uuid,
    pub name: String,
    pub scopes: Vec<String>,
    pub status: KeyStatus,
    pub subscription: Subscription,
    pub expires_at: Option<DateTime<Utc>>,
    /// The key's own limit, else its organization's.
    pub rate_limit: Option<i32>,
    /// The first day of which the organization's history is kept.
    pub history_since: Option<NaiveDate>,
}

/// The columns of a key's record.
macro_rules! record {
    ($before:literal, $after:literal) => {
        concat!(
            $before,
            " id, organization_id, name, scopes, status, rate_limit, expires_at, created_at ",
            $after
        )
    };
}

/// Makes a key of an organization. Nobody can read it again afterwards.
pub async fn create(pg: &PgPool, organization: Uuid, new: &NewKey) -> Result<CreatedKey, Error> {
    let key = ApiKey::generate()?;
    let mut scopes = new.scopes.clone();
    scopes.sort_unstable();
    scopes.dedup();
    let record = sqlx::query_as(record!(
        "insert into api_keys (id, organization_id, name, hash, scopes, rate_limit, expires_at)
         select $2, id, $3, $4, $5, $6, $7 from organizations where id = $1 and deleted_at is null
         returning",
        ""
    ))
    .bind(organization)
    .bind(Uuid::now_v7())
    .bind(&new.name)
    .bind(key.hash())
    .bind(scopes.into_iter().map(Scope::as_str).collect::<Vec<_>>())
    .bind(new.rate_limit)
    .bind(new.expires_at)
    .fetch_optional(pg)
    .await?
    .ok_or(Error::NotFound("organization"))?;
    Ok(CreatedKey { record, key: key.reveal().to_owned() })
}

/// Lists the keys of an organization, oldest first.
pub async fn list(pg: &PgPool, organization: Uuid) -> Result<Vec<ApiKeyRecord>, Error> {
    organizations::require(pg, organization).await?;
    Ok(sqlx::query_as(record!("select", "from api_keys where organization_id = $1 order by id"))
        .bind(organization)
        .fetch_all(pg)
        .await?)
}

/// Sets a key's status; running processes follow within seconds.
pub async fn set_status(pg: &PgPool, key: Uuid, status: KeyStatus) -> Result<ApiKeyRecord, Error> {
    sqlx::query_as(record!("update api_keys set status = $2 where id = $1 returning", ""))
        .bind(key)
        .bind(status)
        .fetch_optional(pg)
        .await?
        .ok_or(Error::NotFound("key"))
}

/// Makes a key that may do what another one may, which stops working when both have been valid for a while. Neither
/// happens without the other.
pub async fn rotate(pg: &PgPool, key: Uuid, rotation: Rotation) -> Result<RotatedKey, Error> {
    let secret = ApiKey::generate()?;
    let mut transaction = Transaction::begin(pg).await?;
    let (Former { record: former, replaced_by }, now) = lock(&mut transaction, key).await?;
    if former.status != KeyStatus::Active || former.expires_at.is_some_and(|expires| expires <= now) {
        return Err(Error::Conflict(
            "only a key that works can be rotated, and this one is switched off or has expired: make another with key create"
                .to_owned(),
        ));
    }
    // What it has left is the overlap, which is no expiry for another key.
    if let Some(other) = replaced_by {
        return Err(Error::Conflict(format!(
            "this key was replaced by {other}: rotate that one, or make another with key create"
        )));
    }
    let next = Uuid::now_v7();
    let record = sqlx::query_as(record!(
        "insert into api_keys (id, organization_id, name, hash, scopes, rate_limit, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         returning",
        ""
    ))
    .bind(next)
    .bind(former.organization_id)
    .bind(&former.name)
    .bind(secret.hash())
    .bind(&former.scopes)
    .bind(former.rate_limit)
    .bind(rotation.expires_at.or(former.expires_at))
    .fetch_one(&mut *transaction)
    .await?;
    let replaces = sqlx::query_as(record!(
        "update api_keys set expires_at = least(expires_at, $2), replaced_by = $3 where id = $1 returning",
        ""
    ))
    .bind(key)
    .bind(now + rotation.overlap)
    .bind(next)
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(RotatedKey { created: CreatedKey { record, key: secret.reveal().to_owned() }, replaces })
}

/// A key that is to be replaced.
#[derive(sqlx::FromRow)]
struct Former {
    #[sqlx(flatten)]
    record: ApiKeyRecord,
    /// The key that already took its place, which may be gone.
    replaced_by: Option<Uuid>,
}

/// Locks a key of an organization that is not deleted, and says what time it is.
async fn lock(connection: &mut PgConnection, key: Uuid) -> Result<(Former, DateTime<Utc>), Error> {
    let former: Former =
        sqlx::query_as(record!("select replaced_by,", "from api_keys where id = $1 for update"))
            .bind(key)
            .fetch_optional(&mut *connection)
            .await?
            .ok_or(Error::NotFound("key"))?;
    let now: Option<DateTime<Utc>> = sqlx::query_scalar(
        "select now() from organizations where id = $1 and deleted_at is null for key share",
    )
    .bind(former.record.organization_id)
    .fetch_optional(connection)
    .await?;
    Ok((former, now.ok_or(Error::NotFound("key"))?))
}

/// Deletes a key for good, and says how many its organization has left. Running processes follow within seconds.
pub async fn delete(pg: &PgPool, key: Uuid) -> Result<(ApiKeyRecord, i64), Error> {
    let deleted: ApiKeyRecord = sqlx::query_as(record!("delete from api_keys where id = $1 returning", ""))
        .bind(key)
        .fetch_optional(pg)
        .await?
        .ok_or(Error::NotFound("key"))?;
    let left = sqlx::query_scalar("select count(*) from api_keys where organization_id = $1")
        .bind(deleted.organization_id)
        .fetch_one(pg)
        .await?;
    Ok((deleted, left))
}

/// A row that the index found under a key's hash.
#[derive(sqlx::FromRow)]
struct Found {
    hash: Vec<u8>,
    #[sqlx(flatten)]
    grant: Grant,
}

/// Finds what a key grants: the index leads to the row, and that its hash is the key's is said in constant time.
pub async fn find_grant(pg: &PgPool, key: &ApiKey) -> Result<Option<Grant>, Error> {
    let found: Option<Found> = sqlx::query_as(
        "select k.hash, k.id, k.organization_id, k.name, k.scopes, k.status, o.subscription, k.expires_at,
                coalesce(k.rate_limit, o.rate_limit) as rate_limit, o.history_since
         from api_keys k join organizations o on o.id = k.organization_id
         where k.hash = $1 and o.deleted_at is null",
    )
    .bind(key.hash())
    .fetch_optional(pg)
    .await?;
    Ok(found.filter(|found| key.matches(&found.hash)).map(|found| found.grant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::organization::{ApiKeyRecord, KeyStatus};

    #[test]
    fn a_made_key_is_not_shown_by_accident() {
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
        let shown = format!("{:?}", CreatedKey { record, key: key.reveal().to_owned() });
        assert!(shown.contains("reports") && !shown.contains(key.reveal()), "{shown}");
    }
}
