//! Health checks of Postgres and of the tracker.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgPool;

use super::Error;
use super::migrate::SchemaCheck;
use super::postgres::Transaction;
use crate::model::platform::{Platform, names};

const POSTGRES_TIMEOUT: Duration = Duration::from_secs(2);
/// How late a scrape may be before the tracker counts as unhealthy.
const MAX_SCRAPE_DELAY: TimeDelta = TimeDelta::minutes(15);
/// How long an outbox row may wait for the relay before the tracker counts as unhealthy.
const MAX_DELIVERY_DELAY: TimeDelta = TimeDelta::minutes(2);

/// Fails unless Postgres has this version's schema and responds.
pub async fn check_postgres(pg: &PgPool, schema: &SchemaCheck) -> Result<(), Error> {
    schema.check(pg).await?;
    sqlx::query("select 1").execute(pg).await?;
    Ok(())
}

/// Fails if Postgres rejects writes: of more than fits into the free space of a table, and without a change.
pub async fn check_writes(pg: &PgPool) -> Result<(), Error> {
    let mut transaction = Transaction::begin(pg).await?;
    let insert = "insert into erased_organizations (id, deleted_at)
                  select gen_random_uuid(), now() from generate_series(1, 20000)";
    sqlx::query(insert).execute(&mut *transaction).await?;
    Ok(())
}

/// Like [`check_postgres`], with a timeout. The error names the cause.
pub async fn check_postgres_with_timeout(pg: &PgPool, schema: &SchemaCheck) -> Result<(), String> {
    match tokio::time::timeout(POSTGRES_TIMEOUT, check_postgres(pg, schema)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error @ (Error::Schema(_) | Error::SharedSession))) => Err(error.to_string()),
        Ok(Err(error)) => Err(format!("postgres does not answer: {error}")),
        Err(_) => Err("postgres does not answer in time".to_owned()),
    }
}

/// Whether scrapes of some platforms and the relay are on time, at `now` of the service clock. Scrapes of a platform with a
/// paused source do not count, nor those of deleted organizations.
pub async fn is_tracker_on_time(
    pg: &PgPool,
    platforms: &[Platform],
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let is_late: bool = sqlx::query_scalar(
        "select exists (
             select from unnest($3::text[]) as p(platform)
             cross join lateral (
                 select from scrape_targets t
                 where t.enabled and t.platform = p.platform and t.next_attempt_at < $1
                    and (t.lease_until is null or t.lease_until < now())
                    and t.organization_id <> all(array(select id from organizations where deleted_at is not null))
                 limit 1
             ) late
             where not exists (select from source_pauses s where s.platform = p.platform and s.until > $1)
         ) or exists (
             select from (select created_at from outbox where applied_at is null order by position limit 1) oldest
             where created_at < now() - $2
         )",
    )
    .bind(now - MAX_SCRAPE_DELAY)
    .bind(MAX_DELIVERY_DELAY)
    .bind(names(platforms))
    .fetch_one(pg)
    .await?;
    Ok(!is_late)
}
