//! Whether the stores answer, and whether somebody is collecting.

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;

use super::Error;

/// How late an account may be looked at before something is wrong with the tracker.
const LATE: TimeDelta = TimeDelta::minutes(15);

/// Asks Postgres for nothing.
pub async fn postgres(pg: &PgPool) -> Result<(), Error> {
    sqlx::query("select 1").execute(pg).await?;
    Ok(())
}

/// Asks ClickHouse for nothing.
pub async fn clickhouse(client: &clickhouse::Client) -> Result<(), Error> {
    client.query("select 1").fetch_one::<u8>().await?;
    Ok(())
}

/// Whether everything that is due is being looked at in time, at `now` of the service's clock.
pub async fn tracker(pg: &PgPool, now: DateTime<Utc>) -> Result<bool, Error> {
    let late: bool = sqlx::query_scalar(
        "select exists (
             select from scrape_targets where enabled and next_attempt_at < $1 and (lease_until is null or lease_until < $2)
         )",
    )
    .bind(now - LATE)
    .bind(Utc::now())
    .fetch_one(pg)
    .await?;
    Ok(!late)
}
