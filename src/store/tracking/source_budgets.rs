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

/// Takes one request for a refresh from a source's day and returns whether one was left, in the budget and in the share of
/// refreshes.
pub async fn try_spend_on_refresh(
    pg: &PgPool,
    source: &str,
    day: NaiveDate,
    limit: u32,
) -> Result<bool, Error> {
    let share = refresh_share(limit);
    if share == 0 {
        return Ok(false);
    }
    let result = sqlx::query(
        "insert into source_requests as r (source, day, requests, refresh_requests) values ($1, $2, 1, 1)
         on conflict (source, day) do update set requests = r.requests + 1, refresh_requests = r.refresh_requests + 1
         where r.requests < $3 and r.refresh_requests < $4",
    )
    .bind(source)
    .bind(day)
    .bind(i64::from(limit))
    .bind(i64::from(share))
    .execute(pg)
    .await?;
    Ok(result.rows_affected() == 1)
}

/// How many of a day's requests refreshes may take: 20 %.
pub const fn refresh_share(limit: u32) -> u32 {
    limit / 5
}

/// The requests to a source on a day.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DailyUsage {
    pub source: String,
    requests: i32,
    refresh_requests: i32,
}

impl DailyUsage {
    /// Returns how many requests refreshes may still make to a source with this limit.
    pub fn refreshes_left(usage: &[DailyUsage], source: &str, limit: u32) -> i64 {
        let used = usage.iter().find(|usage| usage.source == source);
        let (requests, refreshes) = used.map_or((0, 0), |used| (used.requests, used.refresh_requests));
        let left = i64::from(limit) - i64::from(requests);
        left.min(i64::from(refresh_share(limit)) - i64::from(refreshes)).max(0)
    }
}

/// Returns the requests of a day, of the sources that had any.
pub async fn fetch_usage(pg: &PgPool, day: NaiveDate) -> Result<Vec<DailyUsage>, Error> {
    let query =
        sqlx::query_as("select source, requests, refresh_requests from source_requests where day = $1");
    Ok(query.bind(day).fetch_all(pg).await?)
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
