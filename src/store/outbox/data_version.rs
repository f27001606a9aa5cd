//! The version of an organization's data, under which analytics responses are cached.
//!
//! The version is read in one statement with the records that the response is computed from, before its history, and
//! everything in it is visible by then: record versions are committed with their change, and the relay writes delivery
//! numbers after ClickHouse shows the delivery. So a cached response is never older than its version.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, PgPool, Postgres, QueryBuilder, Row};
use uuid::Uuid;

use crate::store::Error;
use crate::store::postgres::RecordsQuery;
use crate::store::postgres::records_query::RecordsQueryParts;

/// The version of the data that a response about an organization depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct DataVersion {
    #[sqlx(flatten)]
    pub history: HistoryVersion,
    /// Incremented by changes of accounts, creators and their links.
    #[sqlx(rename = "version_accounts")]
    accounts: i64,
    /// Incremented by changes of videos, if the response depends on them.
    #[sqlx(rename = "version_videos")]
    videos: Option<i64>,
    /// The first day of history, as the request knows it.
    #[sqlx(rename = "version_history_since")]
    history_since: Option<NaiveDate>,
}

/// The version of an organization's history in ClickHouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromRow)]
pub struct HistoryVersion {
    /// When Postgres started: a restored one may reuse numbers.
    #[sqlx(rename = "version_started")]
    started: DateTime<Utc>,
    /// The oid of `organizations`: restoring a dump changes it without a restart.
    #[sqlx(rename = "version_relation")]
    relation: i64,
    /// Incremented when ClickHouse's data is replaced, and before tombstones are purged, of all organizations or of this one.
    #[sqlx(rename = "version_generation")]
    generation: i64,
    /// The last delivery that changed a number of the requested days.
    #[sqlx(rename = "version_delivery")]
    pub delivery: i64,
}

impl DataVersion {
    /// Whether what is read after this version was is at least as new as another version.
    pub fn is_at_least(&self, other: &DataVersion) -> bool {
        self.history.is_at_least(&other.history)
            && self.accounts >= other.accounts
            && self.videos >= other.videos
            && self.history_since == other.history_since
    }
}

impl HistoryVersion {
    fn is_at_least(&self, other: &HistoryVersion) -> bool {
        (self.started, self.relation) == (other.started, other.relation)
            && self.generation >= other.generation
            && self.delivery >= other.delivery
    }

    /// Whether the delivery numbers of both count the same deliveries.
    pub fn is_comparable(&self, other: &HistoryVersion) -> bool {
        *self == HistoryVersion { delivery: self.delivery, ..*other }
    }
}

#[cfg(test)]
impl DataVersion {
    pub fn example(delivery: i64) -> Self {
        let history = HistoryVersion { started: DateTime::UNIX_EPOCH, relation: 0, generation: 0, delivery };
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

/// The records and versions that a request reads before it computes its response.
#[derive(Debug)]
pub enum VersionedRecords<T> {
    /// The version of the cached response is current.
    Unchanged,
    /// The current version, and the records of the same time.
    Changed(DataVersion, T),
}

/// Reads the current version and, unless that is `cached`, records, in one statement.
pub async fn fetch<T: 'static>(
    pg: &PgPool,
    organization: Uuid,
    dependencies: CacheDependencies,
    history_since: Option<NaiveDate>,
    cached: Option<DataVersion>,
    query: RecordsQuery<T>,
) -> Result<VersionedRecords<T>, Error> {
    let RecordsQueryParts { sql, arguments, read } = query.into_parts()?;
    // One row is the version, the others are records. Postgres evaluates the condition on the version before it reads any.
    let mut statement = QueryBuilder::with_arguments("with version as materialized (", arguments);
    push_version(&mut statement, organization, dependencies, history_since);
    statement.push(") select * from version full join (select true as is_record, record.* from (");
    statement.push(sql);
    statement.push(
        ") record where exists (
            select from version where (version_started, version_relation, version_generation, version_accounts,
                                       version_videos, version_delivery) is distinct from (",
    );
    let cached = cached.filter(|version| version.history_since == history_since);
    statement.push_bind(cached.map(|version| version.history.started)).push("::timestamptz, ");
    statement.push_bind(cached.map(|version| version.history.relation)).push("::bigint, ");
    statement.push_bind(cached.map(|version| version.history.generation)).push("::bigint, ");
    statement.push_bind(cached.map(|version| version.accounts)).push("::bigint, ");
    statement.push_bind(cached.and_then(|version| version.videos)).push("::bigint, ");
    statement.push_bind(cached.map(|version| version.history.delivery)).push("::bigint))) records on false");
    let rows = statement.build().fetch_all(pg).await?;
    let is_record = |row: &PgRow| matches!(row.try_get("is_record"), Ok(Some(true)));
    let (records, version): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_record);
    let version = DataVersion::from_row(version.first().ok_or(Error::NotFound("organization"))?)?;
    if Some(version) == cached {
        return Ok(VersionedRecords::Unchanged);
    }
    Ok(VersionedRecords::Changed(version, read(&records)?))
}

fn push_version(
    statement: &mut QueryBuilder<Postgres>,
    organization: Uuid,
    dependencies: CacheDependencies,
    history_since: Option<NaiveDate>,
) {
    statement.push(
        "select pg_postmaster_start_time() as version_started, o.tableoid::bigint as version_relation,
                c.generation + o.history_generation as version_generation, o.accounts_version as version_accounts, case when ",
    );
    statement.push_bind(dependencies.videos).push(
        " then o.videos_version end as version_videos, coalesce((
             select delivery from history_versions where organization_id = o.id and day <= ",
    );
    statement.push_bind(dependencies.until).push(" order by day desc limit 1), 0) as version_delivery, ");
    statement.push_bind(history_since).push(
        "::date as version_history_since
         from organizations o cross join clickhouse_generation c where o.id = ",
    );
    statement.push_bind(organization);
}

/// Returns the versions of organizations, for all days.
pub async fn fetch_history_versions(
    pg: &PgPool,
    organizations: &[Uuid],
) -> Result<Vec<(Uuid, HistoryVersion)>, Error> {
    #[derive(FromRow)]
    struct Versioned {
        id: Uuid,
        #[sqlx(flatten)]
        version: HistoryVersion,
    }
    let versions: Vec<Versioned> = sqlx::query_as(
        "select o.id, pg_postmaster_start_time() as version_started, o.tableoid::bigint as version_relation,
                c.generation + o.history_generation as version_generation,
                coalesce((
                    select delivery from history_versions
                    where organization_id = o.id order by day desc limit 1
                ), 0) as version_delivery
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
