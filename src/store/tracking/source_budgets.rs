//! What was spent of the sources that allow only so many requests in a UTC day, by all processes together.

use chrono::NaiveDate;
use sqlx::PgPool;

use crate::store::Error;

/// Takes one request from a source's day, if there is one left.
pub async fn try_spend(pg: &PgPool, source: &str, day: NaiveDate, limit: u32) -> Result<bool, Error> {
    if limit == 0 {
        return Ok(false);
    }
    let spent = sqlx::query(
        "insert into source_requests as r (source, day, requests) values ($1, $2, 1)
         on conflict (source, day) do update set requests = r.requests + 1 where r.requests < $3",
    )
    .bind(source)
    .bind(day)
    .bind(i64::from(limit))
    .execute(pg)
    .await?;
    Ok(spent.rows_affected() == 1)
}

/// How many requests were made of a source on a day.
pub async fn count_requests(pg: &PgPool, source: &str, day: NaiveDate) -> Result<i64, Error> {
    let spent: Option<i32> =
        sqlx::query_scalar("select requests from source_requests where source = $1 and day = $2")
            .bind(source)
            .bind(day)
            .fetch_optional(pg)
            .await?;
    Ok(spent.unwrap_or_default().into())
}
