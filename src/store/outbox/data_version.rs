//! The version of an organization's data, under which analytics responses are cached.
//!
//! The version is read before the response is computed, and everything in it is visible by then: record versions are
//! committed with their change, and the relay writes delivery numbers after ClickHouse shows the delivery. So a cached
//! response is never older than its version.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use crate::store::Error;

/// The version of the data that a response about an organization depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct DataVersion {
    #[sqlx(flatten)]
    pub history: HistoryVersion,
    /// Incremented by changes of accounts, creators and their links.
    accounts: i64,
    /// Incremented by changes of videos, if the response depends on them.
    videos: Option<i64>,
    /// The first day of history, as the request knows it.
    history_since: Option<NaiveDate>,
}

/// The version of an organization's history in ClickHouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct HistoryVersion {
    /// When Postgres started: a restored one may reuse numbers.
    started: DateTime<Utc>,
    /// The oid of `organizations`: restoring a dump changes it without a restart.
    relation: i64,
    /// Incremented when ClickHouse's data is replaced, and before tombstones are purged.
    clickhouse_generation: i64,
    /// The last delivery that changed a number of the requested days.
    pub delivery: i64,
}

impl HistoryVersion {
    /// Whether the delivery numbers of both count the same deliveries.
    pub fn is_comparable(&self, other: &HistoryVersion) -> bool {
        *self == HistoryVersion { delivery: self.delivery, ..*other }
    }
}

#[cfg(test)]
impl DataVersion {
    pub fn example(delivery: i64) -> Self {
        let history =
            HistoryVersion { started: DateTime::UNIX_EPOCH, relation: 0, clickhouse_generation: 0, delivery };
        DataVersion { history, accounts: 0, videos: None, history_since: None }
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

/// Returns the current version for a request that knows the first day of history.
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

/// Returns the versions of organizations, for all days.
pub async fn fetch_history_versions(
    pg: &PgPool,
    organizations: &[Uuid],
) -> Result<Vec<(Uuid, HistoryVersion)>, Error> {
    #[derive(sqlx::FromRow)]
    struct Versioned {
        id: Uuid,
        #[sqlx(flatten)]
        version: HistoryVersion,
    }
    let versions: Vec<Versioned> = sqlx::query_as(
        "select o.id, pg_postmaster_start_time() as started, o.tableoid::bigint as relation,
                c.generation as clickhouse_generation,
                coalesce((
                    select delivery from history_versions
                    where organization_id = o.id order by day desc limit 1
                ), 0) as delivery
         from organizations o cross join clickhouse_generation c where o.id = any($1)",
    )
    .bind(organizations)
    .fetch_all(pg)
    .await?;
    Ok(versions.into_iter().map(|row| (row.id, row.version)).collect())
}

/// Records the days whose numbers a delivery changed, after it is visible.
pub(in crate::store) async fn record_delivery(
    transaction: &mut PgConnection,
    delivery: i64,
) -> Result<(), Error> {
    sqlx::query(
        "with changed as (
            select organization_id, min(since) as day from outbox
            where delivery = $1 and since < 'infinity' group by organization_id
         ), superseded as (
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
