//! Deletes history before an organization's retention limit without changing numbers of the remaining days.
//!
//! Requests see nothing before the cutoff (`history_since`). Snapshots before it are compacted to what later days need: of
//! each video and account the last day, the last day that reports each counter, from which later ones are interpolated, and
//! the first day, which marks the start of tracking. The others are deleted, and the rollups are recomputed. Each step is
//! idempotent and keeps the numbers of later days.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::{Client, Row, RowOwned, RowRead};
use serde::Deserialize;
use sqlx::{AssertSqlSafe, PgPool};
use tokio::time::Instant;
use uuid::Uuid;

use super::purge::{delete_rows, execute, fetch_all};
use super::subject_range::SubjectRange;
use crate::model::counters::{Counters, ProfileCounters};
use crate::store::Error;
use crate::store::postgres::Transaction;

/// How long requests may still use an earlier cutoff: a cached key lives for 3 s, a request for 5 s.
const CUTOFF_GRACE: Duration = Duration::from_secs(10);

const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Organizations that a transaction locks, which delays their commits for milliseconds.
const ADVANCED_ORGANIZATIONS: usize = 500;
/// Identifies the statements of a compaction (`log_comment`).
const LOG_COMMENT: &str = "retention";

/// The memory of a statement, and so of the mutation that follows. One that needs more fails, and is repeated in parts.
const MAX_STATEMENT_MEMORY: &str = "1000000000";

/// A client for the statements of a compaction.
pub fn client(clickhouse: &Client) -> Client {
    clickhouse
        .clone()
        .with_setting("log_comment", LOG_COMMENT)
        .with_setting("max_memory_usage", MAX_STATEMENT_MEMORY)
}

/// The first day of an organization's history.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Cutoff {
    pub organization: Uuid,
    pub since: NaiveDate,
    /// Whether history before `since` was compacted at the last attempt.
    pub is_compacted: bool,
    remaining_grace: f64,
}

impl Cutoff {
    /// How long requests may still use an earlier cutoff.
    pub fn remaining_grace(&self) -> Duration {
        Duration::try_from_secs_f64(self.remaining_grace).unwrap_or_default()
    }
}

/// A subject in ClickHouse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Row, Deserialize)]
pub struct RetainedSubject {
    #[serde(with = "clickhouse::serde::uuid")]
    pub org_id: Uuid,
    pub subject_id: u64,
}

/// Advances the cutoffs of organizations, or of one, to their retention limits: by whole months, because ClickHouse rewrites
/// files for it. Deletion is final, so `today` is limited to the clock of Postgres, except in a sandbox.
///
/// Organizations that another transaction has locked follow one at a time, so that no others are locked during the wait.
pub async fn advance_cutoffs(
    pg: &PgPool,
    organization: Option<Uuid>,
    today: NaiveDate,
    in_sandbox: bool,
) -> Result<(), Error> {
    for (limit, lock_option) in [(ADVANCED_ORGANIZATIONS, "skip locked"), (1, "")] {
        while advance_batch(pg, organization, today, in_sandbox, limit, lock_option).await? == limit {}
    }
    Ok(())
}

/// Advances the cutoffs of at most `limit` organizations, and returns their number.
///
/// They are locked as by a commit, which rejects snapshots before the cutoff, and all before the first changes: the time
/// between a change and its commit shortens the grace.
async fn advance_batch(
    pg: &PgPool,
    organization: Option<Uuid>,
    today: NaiveDate,
    in_sandbox: bool,
    limit: usize,
    lock_option: &str,
) -> Result<usize, Error> {
    let mut transaction = Transaction::begin(pg).await?;
    let select_due = format!(
        "select id, since
         from organizations
         cross join lateral (
             select date_trunc('month', (
                 case when $3 then $1 else least($1, (now() at time zone 'UTC')::date) end
             ) - retention_days)::date as since
         ) retained
         where retention_days is not null and deleted_at is null and ($2::uuid is null or id = $2)
             and (history_since is null or history_since < since)
         order by id limit $4 for no key update of organizations {lock_option}"
    );
    let due: Vec<(Uuid, NaiveDate)> = sqlx::query_as(AssertSqlSafe(select_due))
        .bind(today)
        .bind(organization)
        .bind(in_sandbox)
        .bind(limit as i64)
        .fetch_all(&mut *transaction)
        .await?;
    let (organizations, cutoffs): (Vec<_>, Vec<_>) = due.into_iter().unzip();
    sqlx::query(
        "update organizations o set history_since = due.since, history_since_set_at = clock_timestamp()
         from unnest($1::uuid[], $2::date[]) as due(id, since) where o.id = due.id",
    )
    .bind(&organizations)
    .bind(cutoffs)
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(organizations.len())
}

/// Returns the cutoffs of all organizations, or of one.
pub async fn fetch_cutoffs(pg: &PgPool, organization: Option<Uuid>) -> Result<Vec<Cutoff>, Error> {
    let cutoffs = sqlx::query_as(
        "select id as organization, history_since as since, history_compacted_before is not distinct from history_since as is_compacted,
                extract(epoch from least($2, greatest(interval '0', history_since_set_at + $2 - now())))::float8 as remaining_grace
         from organizations
         where history_since is not null and deleted_at is null and ($1::uuid is null or id = $1)
         order by id",
    )
    .bind(organization)
    .bind(CUTOFF_GRACE)
    .fetch_all(pg)
    .await?;
    Ok(cutoffs)
}

/// An organization whose expired history is still stored long after its cutoff advanced.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct OverdueRetention {
    pub organization: Uuid,
    pub name: String,
    pub since: NaiveDate,
    pub set_at: DateTime<Utc>,
}

/// Returns organizations whose retention is overdue by an hour, in which it is tried four times.
pub async fn fetch_overdue(pg: &PgPool) -> Result<Vec<OverdueRetention>, Error> {
    let overdue = sqlx::query_as(
        "select id as organization, name, history_since as since, history_since_set_at as set_at
         from organizations
         where deleted_at is null and history_since_set_at < now() - interval '1 hour'
             and history_compacted_before is distinct from history_since
         order by history_since_set_at, id",
    );
    Ok(overdue.fetch_all(pg).await?)
}

/// Waits until no compaction statement is running: a killed process may have left one, whose rows would bring back deleted
/// history.
pub async fn wait_for_compactions(client: &Client) -> Result<(), Error> {
    // As in count_pending_writes.sql.
    let sql = "SELECT count() FROM /*cluster:clusterAllReplicas('{cluster}', */system.processes/*cluster:)*/
               WHERE query_kind = 'Insert' AND initial_user = (SELECT currentUser())
                   AND (current_database = (SELECT currentDatabase())
                       /*cluster:OR match(query, '^INSERT INTO `?{database}`?[.]')*/)
                   AND Settings['log_comment'] = {comment:String}";
    loop {
        let running: Vec<u64> = fetch_all(client, sql, |query| query.param("comment", LOG_COMMENT)).await?;
        if running.iter().all(|running| *running == 0) {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Records whether history of organizations before their cutoff is compacted.
pub async fn record_compaction(
    pg: &PgPool,
    organizations: &[Uuid],
    since: NaiveDate,
    is_compacted: bool,
) -> Result<(), Error> {
    sqlx::query("update organizations set history_compacted_before = $2 where id = any($1)")
        .bind(organizations)
        .bind(is_compacted.then_some(since))
        .execute(pg)
        .await?;
    Ok(())
}

struct SnapshotTable {
    table: &'static str,
    /// The sort key without the day.
    key: &'static str,
    counters: &'static [&'static str],
}

const SNAPSHOT_TABLES: [SnapshotTable; 2] = [
    SnapshotTable {
        table: "video_snapshots",
        key: "org_id, subject_id, video_id",
        counters: &Counters::NAMES,
    },
    SnapshotTable {
        table: "account_snapshots",
        key: "org_id, subject_id",
        counters: &ProfileCounters::NAMES,
    },
];

impl SnapshotTable {
    /// Formats each counter, and joins the results.
    fn each_counter(&self, separator: &str, format: impl Fn(&str) -> String) -> String {
        self.counters.iter().map(|counter| format(counter)).collect::<Vec<_>>().join(separator)
    }

    /// The days that later days need, with their times of observation: the first and the last day, and of each counter the
    /// last day that reports it. Of a counter that no day reports, 1970-01-01, which is not a day of history.
    fn needed_days(&self) -> String {
        let last_reports = self.each_counter(", ", |counter| {
            format!(
                "(maxIf(date, {counter} IS NOT NULL), argMaxIf(observed_at, date, {counter} IS NOT NULL))"
            )
        });
        format!(
            "[(min(date), argMin(observed_at, date)), (max(date), argMax(observed_at, date)), {last_reports}]"
        )
    }

    /// The condition that the first day has a counter that a later day reports, too.
    fn first_day_has_superseded_counter(&self) -> String {
        self.each_counter(" OR ", |counter| {
            format!(
                "(argMin({counter} IS NOT NULL, date) AND maxIf(date, {counter} IS NOT NULL) > min(date))"
            )
        })
    }

    /// The query for subjects with more snapshots than later days need.
    fn uncompacted_subjects_query(&self, scope: &str) -> String {
        let SnapshotTable { table, key, .. } = self;
        format!(
            "SELECT DISTINCT org_id, subject_id FROM
             (
                 SELECT org_id, subject_id FROM {table} FINAL WHERE {scope}
                 GROUP BY {key}
                 HAVING count() > arrayUniq(arrayFilter(day -> day.1 > toDate(0), {})) OR {}
             )",
            self.needed_days(),
            self.first_day_has_superseded_counter()
        )
    }

    /// The statement that clears the counters of the first day that a later day reports, too. Gains of the first day itself
    /// are before the cutoff. `observed_at` is a microsecond later on the same day, so that a new row replaces the original
    /// in any insertion order.
    fn clear_first_day_statement(&self, scope: &str) -> String {
        let SnapshotTable { table, key, counters } = self;
        // On a cluster every column of a shard's result needs its own name.
        let remaining = self.each_counter(", ", |counter| {
            format!("if(maxIf(date, {counter} IS NOT NULL) > min(date), NULL, argMin({counter}, date)) AS first_{counter}")
        });
        format!(
            "INSERT INTO {table} ({key}, date, observed_at, {})
             /*cluster:SELECT * FROM cluster('{{cluster}}', view(*/
             SELECT {key}, min(date), least(
                 addMicroseconds(argMin(observed_at, date), 1),
                 subtractMicroseconds(toDateTime64(min(date) + 1, 6, 'UTC'), 1)
             ), {remaining}
             FROM {table}/*_local*/ FINAL WHERE {scope}
             GROUP BY {key}
             HAVING {}
             /*cluster:))*/",
            counters.join(", "),
            self.first_day_has_superseded_counter()
        )
    }

    /// The condition of rows that no later day needs.
    fn redundant_rows_condition(&self, scope: &str) -> String {
        let SnapshotTable { table, key, .. } = self;
        format!(
            "{scope} AND is_deleted = 0 AND ({key}, date, observed_at) NOT IN
             (
                 SELECT {key}, needed.1, needed.2 FROM
                 (
                     SELECT {key}, arrayJoin({}) AS needed FROM {table}/*_local*/ FINAL WHERE {scope} GROUP BY {key}
                 )
             )",
            self.needed_days()
        )
    }
}

/// Returns subjects with history before a day to compact.
pub async fn find_uncompacted_subjects(
    client: &Client,
    since: NaiveDate,
    range: &SubjectRange,
) -> Result<Vec<RetainedSubject>, Error> {
    let mut found = BTreeSet::new();
    for table in &SNAPSHOT_TABLES {
        let sql = table.uncompacted_subjects_query(SubjectRange::BEFORE_CUTOFF);
        found.extend(fetch_before::<RetainedSubject>(client, since, range, &sql).await?);
    }
    Ok(found.into_iter().collect())
}

/// Counts the videos of organizations with snapshots before a day.
pub async fn count_videos(
    client: &Client,
    since: NaiveDate,
    range: &SubjectRange,
) -> Result<HashMap<Uuid, u64>, Error> {
    #[derive(Row, Deserialize)]
    struct VideoCount {
        #[serde(with = "clickhouse::serde::uuid")]
        org_id: Uuid,
        videos: u64,
    }
    let sql = format!(
        "SELECT org_id, uniq(subject_id, video_id) AS videos FROM video_snapshots WHERE {} GROUP BY org_id",
        SubjectRange::BEFORE_CUTOFF
    );
    let counts: Vec<VideoCount> = fetch_before(client, since, range, &sql).await?;
    Ok(counts.into_iter().map(|count| (count.org_id, count.videos)).collect())
}

/// Returns subjects with days in the rollup before a day.
pub async fn find_rolled_up_subjects(
    client: &Client,
    since: NaiveDate,
    range: &SubjectRange,
) -> Result<Vec<RetainedSubject>, Error> {
    let sql = format!(
        "SELECT DISTINCT org_id, subject_id FROM account_daily WHERE {} AND is_deleted = 0
         ORDER BY org_id, subject_id",
        SubjectRange::BEFORE_CUTOFF
    );
    fetch_before(client, since, range, &sql).await
}

async fn fetch_before<T: RowOwned + RowRead>(
    client: &Client,
    since: NaiveDate,
    range: &SubjectRange,
    sql: &str,
) -> Result<Vec<T>, Error> {
    fetch_all(client, sql, |query| range.bind(query, since)).await
}

/// Rewrites the first day of subjects before a day. Later days have the same numbers with and without the days that
/// [`purge_redundant_rows`] deletes.
pub async fn compact(client: &Client, since: NaiveDate, subjects: &[RetainedSubject]) -> Result<(), Error> {
    let keys: Vec<(Uuid, u64)> =
        subjects.iter().map(|subject| (subject.org_id, subject.subject_id)).collect();
    let scope = "(org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND date < {since:Date}";
    for table in &SNAPSHOT_TABLES {
        let sql = table.clear_first_day_statement(scope);
        execute(client, &sql, |query| query.param("subjects", &keys).param("since", since)).await?;
    }
    Ok(())
}

/// Deletes rows that no later day needs, of organizations with the same cutoff. Returns their number.
pub async fn purge_redundant_rows(
    client: &Client,
    since: NaiveDate,
    range: &SubjectRange,
    deadline: Instant,
) -> Result<u64, Error> {
    let mut rows = 0;
    for table in &SNAPSHOT_TABLES {
        let redundant = table.redundant_rows_condition(SubjectRange::BEFORE_CUTOFF);
        rows +=
            delete_rows(client, table.table, &redundant, |query| range.bind(query, since), deadline).await?;
    }
    Ok(rows)
}
