//! What a create find_response, kept in the create's own transaction, so that a retry gets the same answer again and
//! never a second resource.

use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

use crate::store::{Error, Write};

/// What names a create: the same key on another path is another request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    pub method: &'static str,
    pub path: String,
    pub key: String,
    /// A hash over the canonical form of the body.
    pub body_hash: [u8; 32],
}

/// An answer that was kept.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredResponse {
    pub status: i16,
    pub location: Option<String>,
    pub body: Vec<u8>,
}

/// What a key turns out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Nobody has used it within a day; it is this request's now, until the unit of work ends.
    New,
    /// The same request was answered before.
    Completed(StoredResponse),
    /// Another body was sent with it.
    BodyMismatch,
    /// The first request with it has not ended yet.
    InFlight,
}

/// Claims a key for this unit of work. What was answered before is looked for first, so that only a first request
/// ever holds the key.
pub async fn claim(write: &mut Write, name: &IdempotentRequest) -> Result<Claim, Error> {
    let organization = write.organization();
    if let Some(claim) = find_response(write.connection(), organization, name).await? {
        return Ok(claim);
    }
    let free: bool = sqlx::query_scalar(
        "select pg_try_advisory_xact_lock(hashtextextended(concat_ws(' ', 'idempotency', $1, $2, $3, $4), 0))",
    )
    .bind(organization.to_string())
    .bind(name.method)
    .bind(&name.path)
    .bind(&name.key)
    .fetch_one(write.connection())
    .await?;
    // The first request may have ended between the two looks.
    match find_response(write.connection(), organization, name).await? {
        Some(claim) => Ok(claim),
        None if free => Ok(Claim::New),
        None => Ok(Claim::InFlight),
    }
}

/// What was answered under a key within a day.
pub async fn find_response(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    name: &IdempotentRequest,
) -> Result<Option<Claim>, Error> {
    #[derive(sqlx::FromRow)]
    struct Kept {
        body_hash: Vec<u8>,
        #[sqlx(flatten)]
        answer: StoredResponse,
    }
    let kept: Option<Kept> = sqlx::query_as(
        "select body_hash, status, location, body from idempotency_keys
         where organization_id = $1 and method = $2 and path = $3 and key = $4
           and created_at > now() - interval '24 hours'",
    )
    .bind(organization)
    .bind(name.method)
    .bind(&name.path)
    .bind(&name.key)
    .fetch_optional(pg)
    .await?;
    Ok(kept.map(|kept| {
        if kept.body_hash == name.body_hash { Claim::Completed(kept.answer) } else { Claim::BodyMismatch }
    }))
}

/// Keeps an answer, together with what it tells of.
pub async fn store_response(
    write: &mut Write,
    name: &IdempotentRequest,
    answer: &StoredResponse,
) -> Result<(), Error> {
    let organization = write.organization();
    sqlx::query(
        "insert into idempotency_keys (organization_id, method, path, key, body_hash, status, location, body)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (organization_id, method, path, key) do update set
             body_hash = excluded.body_hash, status = excluded.status, location = excluded.location,
             body = excluded.body, created_at = now()",
    )
    .bind(organization)
    .bind(name.method)
    .bind(&name.path)
    .bind(&name.key)
    .bind(name.body_hash)
    .bind(answer.status)
    .bind(&answer.location)
    .bind(&answer.body)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Removes up to `most` answers that are kept no longer, and says how many there were.
pub async fn delete_expired(pg: &PgPool, most: i64) -> Result<u64, Error> {
    let removed = sqlx::query(
        "delete from idempotency_keys where (organization_id, method, path, key) in (
             select organization_id, method, path, key from idempotency_keys
             where created_at <= now() - interval '24 hours'
             order by created_at limit $1 for update skip locked)",
    )
    .bind(most)
    .execute(pg)
    .await?;
    Ok(removed.rows_affected())
}
