//! Whether the stores answer, and whether somebody is collecting.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;

use super::Error;
use super::migrate::SchemaCheck;
use crate::model::platform::Platform;

/// How late an account may be looked at before something is wrong with the tracker.
const LATE: TimeDelta = TimeDelta::minutes(15);

/// How long Postgres may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks Postgres for nothing, once it is seen to have the tables of this version.
pub async fn check_postgres(pg: &PgPool, schema: &SchemaCheck) -> Result<(), Error> {
    schema.check(pg).await?;
    sqlx::query("select 1").execute(pg).await?;
    Ok(())
}

/// Why nothing can be done with Postgres now, if there is a reason.
pub async fn check_postgres_with_timeout(pg: &PgPool, schema: &SchemaCheck) -> Result<(), String> {
    match tokio::time::timeout(PATIENCE, check_postgres(pg, schema)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error @ Error::Schema(_))) => Err(error.to_string()),
        Ok(Err(error)) => Err(format!("postgres does not answer: {error}")),
        Err(_) => Err("postgres does not answer in time".to_owned()),
    }
}

/// How long a committed change may wait for the relay before something is wrong with it.
const UNDELIVERED: TimeDelta = TimeDelta::minutes(2);

/// Whether everything that is due is being looked at in time, at `now` of the service's clock, and what was learned
/// reaches ClickHouse. What a platform's resting source makes late is not the tracker's fault, until a while after.
pub async fn is_tracker_on_time(pg: &PgPool, now: DateTime<Utc>) -> Result<bool, Error> {
    let late: bool = sqlx::query_scalar(
        "select exists (
             select from unnest($4::text[]) as p(platform)
             cross join lateral (
                 select from scrape_targets t
                 where t.enabled and t.platform = p.platform and t.next_attempt_at < $1
                    and (t.lease_until is null or t.lease_until < now())
                 limit 1
             ) late
             where not exists (select from source_pauses s where s.platform = p.platform and s.until > $1)
         ) or exists (
             select from (select created_at from outbox where applied_at is null order by position limit 1) oldest
             where created_at < $2 - $3
         )",
    )
    .bind(now - LATE)
    .bind(Utc::now())
    .bind(UNDELIVERED)
    .bind(Platform::ALL.map(Platform::as_str))
    .fetch_one(pg)
    .await?;
    Ok(!late)
}
