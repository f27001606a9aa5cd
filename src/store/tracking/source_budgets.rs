//! Counts requests to sources with a daily limit, by UTC day, for all processes together.

use chrono::NaiveDate;
use sqlx::PgPool;

use crate::store::Error;

/// Takes one request from a source's day and returns whether one was left.
pub async fn try_spend(pg: &PgPool, source: &str, day: NaiveDate, limit: u32) -> Result<bool, Error> {
    if limit == 0 {
        return Ok(false);
    }
    let result = sqlx::query(
        "insert into source_requests as r (source, day, requests) values ($1, $2, 1)
         on conflict (source, day) do update set requests = r.requests + 1 where r.requests < $3",
    )
    .bind(source)
    .bind(day)
    .bind(i64::from(limit))
    .execute(pg)
    .await?;
    Ok(result.rows_affected() == 1)
}

/// Returns how many requests were made to a source on a day.
pub async fn count_requests(pg: &PgPool, source: &str, day: NaiveDate) -> Result<i64, Error> {
    let requests: Option<i32> =
        sqlx::query_scalar("select requests from source_requests where source = $1 and day = $2")
            .bind(source)
            .bind(day)
            .fetch_optional(pg)
            .await?;
    Ok(requests.unwrap_or_default().into())
}
