//! Of what an answer of analytics is a function: versions of the records it reads and of the history it reads. As long
//! as they stay, so does the answer.
//!
//! A version is read before the answer is computed. Everything it says is visible by then, in Postgres because it is
//! committed with the change, in ClickHouse because the relay writes it after the change is visible; so an answer is
//! never older than the version it is kept under.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::store::Error;

/// The version of the data that a response about an organization depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct DataVersion {
    /// When this Postgres started: one that was restored may count differently from the same number on.
    started: DateTime<Utc>,
    /// Which table of organizations it is: a dump that is restored makes another one, without a start.
    relation: i64,
    /// Grows when ClickHouse has other files than before.
    clickhouse_generation: i64,
    /// Grows with accounts, creators and who belongs to whom.
    accounts: i64,
    /// Grows with videos, where the answer reads their records.
    videos: Option<i64>,
    /// The delivery that last changed a number of the days asked about.
    delivery: i64,
    /// The first day of which history is looked at, as whoever asks knows it.
    history_since: Option<NaiveDate>,
}

#[cfg(test)]
impl DataVersion {
    /// One of several, by number.
    pub fn example(delivery: i64) -> Self {
        DataVersion {
            started: DateTime::UNIX_EPOCH,
            relation: 0,
            clickhouse_generation: 0,
            accounts: 0,
            videos: None,
            delivery,
            history_since: None,
        }
    }
}

/// The data that a response depends on besides accounts and creators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheDependencies {
    /// The last day of history it reads.
    pub until: NaiveDate,
    /// Whether it reads records of videos.
    pub videos: bool,
}

/// Reads the version that answers about an organization have now, for who knows its history to begin on a day.
pub async fn fetch(
    pg: &PgPool,
    organization: Uuid,
    dependencies: CacheDependencies,
    history_since: Option<NaiveDate>,
) -> Result<DataVersion, Error> {
    sqlx::query_as(
        "select pg_postmaster_start_time() as started, o.tableoid::bigint as relation,
                c.generation as clickhouse_generation, o.accounts_version as accounts,
                case when $3 then o.videos_version end as videos,
                coalesce((
                    select delivery from history_versions
                    where organization_id = $1 and day <= $2 order by day desc limit 1
                ), 0) as delivery,
                $4::date as history_since
         from organizations o cross join clickhouse_generation c where o.id = $1",
    )
    .bind(organization)
    .bind(dependencies.until)
    .bind(dependencies.videos)
    .bind(history_since)
    .fetch_optional(pg)
    .await?
    .ok_or(Error::NotFound("organization"))
}

/// Notes of which days a delivery changed numbers, once it is visible.
pub(in crate::store) async fn record_delivery(
    transaction: &mut PgConnection,
    delivery: i64,
) -> Result<(), Error> {
    sqlx::query(
        "with changed as (
            select organization_id, min(since) as day from outbox
            where delivery = $1 and since < 'infinity' group by organization_id
         ), told_by_an_earlier_day as (
            delete from history_versions h using changed c
            where h.organization_id = c.organization_id and h.day > c.day and h.delivery < $1
         )
         insert into history_versions as h (organization_id, day, delivery)
         select organization_id, day, $1 from changed
         on conflict (organization_id, day) do update set delivery = greatest(h.delivery, excluded.delivery)",
    )
    .bind(delivery)
    .execute(transaction)
    .await?;
    Ok(())
}

/// Notes that ClickHouse stands elsewhere than at the last delivery that was marked: answers of every organization may
/// have been made from files that are gone, or were missing.
pub(in crate::store) async fn increment_clickhouse_generation(
    transaction: &mut PgConnection,
) -> Result<(), Error> {
    sqlx::query("update clickhouse_generation set generation = generation + 1").execute(transaction).await?;
    Ok(())
}
