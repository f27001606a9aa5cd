//! Counts requests per key and minute for all API processes, by the clock of the database.

use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;

/// The current window after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct RateLimitWindow {
    pub unix_seconds: i64,
    /// Accepted requests in this window, including this one; `None` if it exceeds the limit.
    pub used: Option<i32>,
}

/// Counts a request unless the key's window has reached `limit`.
pub async fn count_request(pg: &PgPool, key: Uuid, limit: u32) -> Result<RateLimitWindow, Error> {
    Ok(sqlx::query_as(
        "with clock as (select floor(extract(epoch from now()))::bigint as second),
              counted as (
                  insert into rate_limit_windows as w (minute, key_id, requests)
                  select second / 60, $1, 1 from clock
                  on conflict (minute, key_id) do update set requests = w.requests + 1 where w.requests < $2
                  returning requests)
         select second as unix_seconds, (select requests from counted) as used from clock",
    )
    .bind(key)
    .bind(i64::from(limit))
    .fetch_one(pg)
    .await?)
}

/// Deletes up to `limit` ended windows and returns their number.
pub async fn delete_expired(pg: &PgPool, limit: i64) -> Result<u64, Error> {
    let removed = sqlx::query(
        "delete from rate_limit_windows where (minute, key_id) in (
             select minute, key_id from rate_limit_windows
             where minute < floor(extract(epoch from now()))::bigint / 60
             order by minute, key_id limit $1 for update skip locked)",
    )
    .bind(limit)
    .execute(pg)
    .await?;
    Ok(removed.rows_affected())
}
