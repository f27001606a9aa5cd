//! Requests by key in the clock minute that is running, counted for all API processes together. The database's
//! clock says which minute that is, so that processes whose own clocks differ still agree.

use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;

/// What a window holds after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct RateLimitWindow {
    /// The time, in Unix seconds.
    pub unix_seconds: i64,
    /// Requests that passed in this window, this one included; `None` when it did not pass.
    pub used: Option<i32>,
}

/// Takes one of `limit` from the key's window. The row's lock lets one request after the other through, whatever
/// process they came to.
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

/// Removes up to `most` windows that are over, and says how many there were.
pub async fn delete_expired(pg: &PgPool, most: i64) -> Result<u64, Error> {
    let removed = sqlx::query(
        "delete from rate_limit_windows where (minute, key_id) in (
             select minute, key_id from rate_limit_windows
             where minute < floor(extract(epoch from now()))::bigint / 60
             order by minute, key_id limit $1 for update skip locked)",
    )
    .bind(most)
    .execute(pg)
    .await?;
    Ok(removed.rows_affected())
}
