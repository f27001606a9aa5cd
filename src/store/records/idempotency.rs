//! Responses under an `Idempotency-Key`, stored in the transaction of the request, so that a retry gets the same response
//! and never creates a second resource.

use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

use crate::store::{Error, Write};

/// Identifies a request. The same key on another path is another request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    pub method: &'static str,
    pub path: String,
    pub key: String,
    /// A hash over the canonical form of the body.
    pub body_hash: [u8; 32],
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredResponse {
    pub status: i16,
    pub location: Option<String>,
    pub body: Vec<u8>,
}

/// The state of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Not used within a day. This request owns it until the end of its transaction.
    New,
    /// An equal request has completed.
    Completed(StoredResponse),
    /// The key was used with another body.
    BodyMismatch,
    /// The first request with the key is still running.
    InFlight,
}

/// Claims a key for this transaction. Looks for a stored response first, so that only a first request takes the lock.
pub async fn claim(write: &mut Write, request: &IdempotentRequest) -> Result<Claim, Error> {
    let organization = write.organization();
    if let Some(claim) = find_claim(write.connection(), organization, request).await? {
        return Ok(claim);
    }
    let is_locked: bool = sqlx::query_scalar(
        "select pg_try_advisory_xact_lock(hashtextextended(concat_ws(' ', 'idempotency', $1, $2, $3, $4), 0))",
    )
    .bind(organization.to_string())
    .bind(request.method)
    .bind(&request.path)
    .bind(&request.key)
    .fetch_one(write.connection())
    .await?;
    // The first request may have completed between the two statements.
    match find_claim(write.connection(), organization, request).await? {
        Some(claim) => Ok(claim),
        None if is_locked => Ok(Claim::New),
        None => Ok(Claim::InFlight),
    }
}

/// Finds the response stored under a key within a day.
pub async fn find_claim(
    pg: impl PgExecutor<'_>,
    organization: Uuid,
    request: &IdempotentRequest,
) -> Result<Option<Claim>, Error> {
    #[derive(sqlx::FromRow)]
    struct Stored {
        body_hash: Vec<u8>,
        #[sqlx(flatten)]
        response: StoredResponse,
    }
    let stored: Option<Stored> = sqlx::query_as(
        "select body_hash, status, location, body from idempotency_keys
         where organization_id = $1 and method = $2 and path = $3 and key = $4
           and created_at > now() - interval '24 hours'",
    )
    .bind(organization)
    .bind(request.method)
    .bind(&request.path)
    .bind(&request.key)
    .fetch_optional(pg)
    .await?;
    Ok(stored.map(|stored| {
        if stored.body_hash == request.body_hash {
            Claim::Completed(stored.response)
        } else {
            Claim::BodyMismatch
        }
    }))
}

/// Stores a response in the transaction of its request.
pub async fn store_response(
    write: &mut Write,
    request: &IdempotentRequest,
    response: &StoredResponse,
) -> Result<(), Error> {
    sqlx::query(
        "insert into idempotency_keys (organization_id, method, path, key, body_hash, status, location, body)
         values ($1, $2, $3, $4, $5, $6, $7, $8)
         on conflict (organization_id, method, path, key) do update set
             body_hash = excluded.body_hash, status = excluded.status, location = excluded.location,
             body = excluded.body, created_at = now()",
    )
    .bind(write.organization())
    .bind(request.method)
    .bind(&request.path)
    .bind(&request.key)
    .bind(request.body_hash)
    .bind(response.status)
    .bind(&response.location)
    .bind(&response.body)
    .execute(write.connection())
    .await?;
    Ok(())
}

/// Deletes up to `limit` expired responses and returns their number.
pub async fn delete_expired(pg: &PgPool, limit: i64) -> Result<u64, Error> {
    let removed = sqlx::query(
        "delete from idempotency_keys where (organization_id, method, path, key) in (
             select organization_id, method, path, key from idempotency_keys
             where created_at <= now() - interval '24 hours'
             order by created_at limit $1 for update skip locked)",
    )
    .bind(limit)
    .execute(pg)
    .await?;
    Ok(removed.rows_affected())
}
