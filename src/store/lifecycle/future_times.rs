//! Resets times ahead of now, as a tracker with a wrong clock wrote them, and deletes snapshots of days to come.
//!
//! The values stay: they were observed, only at an unknown time before now. The next scrape of a target replaces them, so
//! the targets become due.

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::Client;
use clickhouse::query::Query;
use sqlx::PgPool;
use tokio::time::Instant;
use uuid::Uuid;

use super::purge::{delete_rows, fetch_all};
use crate::store::{Error, Write};

/// The tables from which [`delete_snapshots`] deletes.
pub const SNAPSHOT_TABLES: [&str; 2] = ["video_snapshots", "account_snapshots"];

/// Returns an organization's accounts with a time ahead of `now`.
pub async fn find_accounts(pg: &PgPool, organization: Uuid, now: DateTime<Utc>) -> Result<Vec<Uuid>, Error> {
    let ids = sqlx::query_scalar(
        "select id from accounts
         where organization_id = $1 and (greatest(observed_at, last_scrape_time, added_at, updated_at) > $2
            or tracked_since > ($2 at time zone 'UTC')::date)
         order by id",
    )
    .bind(organization)
    .bind(now)
    .fetch_all(pg)
    .await?;
    Ok(ids)
}

/// Returns an organization's videos with a time ahead of `now`.
pub async fn find_videos(pg: &PgPool, organization: Uuid, now: DateTime<Utc>) -> Result<Vec<Uuid>, Error> {
    let ids = sqlx::query_scalar(
        "select id from videos
         where organization_id = $1 and (greatest(observed_at, last_scrape_time, added_at, tracked_at, updated_at) > $2
            or tracked_since > ($2 at time zone 'UTC')::date)
         order by id",
    )
    .bind(organization)
    .bind(now)
    .fetch_all(pg)
    .await?;
    Ok(ids)
}

/// The assignments for accounts and videos. An entry of `known_at` that is removed has the time `observed_at`. Without a
/// first scrape and a tracking start, the next scrape is the first one.
macro_rules! reset_observations {
    () => {
        "observed_at = case when observed_at > $3 then $3 else observed_at end,
         known_at = (
            select jsonb_object_agg(key, value) from jsonb_each(known_at)
            where coalesce((value #>> '{}')::timestamptz <= $3, true)
         ),
         first_scrape_time = case when first_scrape_time <= $3 then first_scrape_time end,
         last_scrape_time = case when first_scrape_time <= $3 then least(last_scrape_time, $3) end,
         tracked_since = case when tracked_since <= ($3 at time zone 'UTC')::date then tracked_since end,
         added_at = least(added_at, $3), updated_at = least(updated_at, $3)"
    };
}

pub async fn reset_accounts(write: &mut Write, ids: &[Uuid], now: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query(concat!(
        "update accounts set ",
        reset_observations!(),
        ", category_observed_at = case when category_observed_at > $3 then $3 else category_observed_at end,
         profile_since = case when profile_since <= ($3 at time zone 'UTC')::date then profile_since end
         where organization_id = $1 and id = any($2)"
    ))
    .bind(write.organization())
    .bind(ids)
    .bind(now)
    .execute(write.connection())
    .await?;
    for id in ids {
        write.record_account_change(*id);
        write.record_target_change(*id);
    }
    Ok(())
}

pub async fn reset_videos(write: &mut Write, ids: &[Uuid], now: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query(concat!(
        "update videos set ",
        reset_observations!(),
        ", tracked_at = case when tracked_at > $3 then $3 else tracked_at end
         where organization_id = $1 and id = any($2)"
    ))
    .bind(write.organization())
    .bind(ids)
    .bind(now)
    .execute(write.connection())
    .await?;
    for id in ids {
        write.record_video_change(*id);
        write.record_target_change(*id);
    }
    Ok(())
}

/// Makes an organization's targets due whose attempts lie ahead of `now`, and repeats their deep reads. Returns their
/// number.
pub async fn reset_targets(pg: &PgPool, organization: Uuid, now: DateTime<Utc>) -> Result<u64, Error> {
    let reset: i64 = sqlx::query_scalar(
        "with reset as (
            update scrape_targets set next_attempt_at = $2,
                last_attempt_at = case when last_attempt_at <= $2 then last_attempt_at end,
                weekly_read_at = case when weekly_read_at <= $2 then weekly_read_at end,
                monthly_read_at = case when monthly_read_at <= $2 then monthly_read_at end
            where organization_id = $1 and (greatest(last_attempt_at, weekly_read_at, monthly_read_at) > $2
                or (last_attempt_at is null and next_attempt_at > $2))
            returning platform, kind
         ), woken as (
            insert into scrape_wakeups (organization_id, platform, kind, wake_at)
            select distinct $1, platform, kind, $2 from reset
         )
         select count(*) from reset",
    )
    .bind(organization)
    .bind(now)
    .fetch_one(pg)
    .await?;
    Ok(reset.unsigned_abs())
}

/// Ends pauses of sources that began ahead of `now`, and deletes request counts of days to come.
pub async fn reset_sources(pg: &PgPool, now: DateTime<Utc>) -> Result<(), Error> {
    sqlx::query("update source_pauses set until = $1, since = $1 where since > $1")
        .bind(now)
        .execute(pg)
        .await?;
    for delete in ["delete from source_requests where day > $1", "delete from source_pages where day > $1"] {
        sqlx::query(delete).bind(now.date_naive()).execute(pg).await?;
    }
    Ok(())
}

/// Returns an organization's subjects with history of days after `today`.
pub async fn find_subjects(client: &Client, organization: Uuid, today: NaiveDate) -> Result<Vec<i64>, Error> {
    let sql = "SELECT DISTINCT subject_id FROM
               (
                   SELECT subject_id FROM video_snapshots
                   WHERE org_id = {org:UUID} AND date > {today:Date} AND is_deleted = 0
                   UNION ALL
                   SELECT subject_id FROM account_snapshots
                   WHERE org_id = {org:UUID} AND date > {today:Date} AND is_deleted = 0
                   UNION ALL
                   SELECT subject_id FROM account_daily FINAL
                   WHERE org_id = {org:UUID} AND date > {today:Date}
                   UNION ALL
                   SELECT subject_id FROM video_daily FINAL
                   WHERE org_id = {org:UUID} AND date > {today:Date}
               )
               ORDER BY subject_id";
    let bind = |query: Query| query.param("org", organization).param("today", today);
    let ids: Vec<u64> = fetch_all(client, sql, bind).await?;
    Ok(ids.into_iter().map(u64::cast_signed).collect())
}

/// Deletes a table's snapshots of days after `today`, and returns their number. One mutation serves many organizations,
/// because ClickHouse rewrites whole parts for it. Keeps those of a day that has begun before ClickHouse executes it.
pub async fn delete_snapshots(
    client: &Client,
    table: &str,
    organizations: &[Uuid],
    today: NaiveDate,
    deadline: Instant,
) -> Result<u64, Error> {
    let condition = "org_id IN {orgs:Array(UUID)} AND date > {today:Date} AND date > toDate(now('UTC'))
                     AND is_deleted = 0";
    let bind = |query: Query| query.param("orgs", organizations).param("today", today);
    delete_rows(client, table, condition, bind, deadline).await
}
