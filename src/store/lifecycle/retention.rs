//! History that is older than an organization keeps leaves the files, and no number of the days that stay changes with it.
//!
//! The organization's history begins on a day (`history_since`), before which requests see nothing any more. What came
//! before it is reduced to what later days count from: of each video and account the last day, which takes on what was last
//! known of each counter, and the first, which only says when tracking began. The rest is forgotten, and then the rollup
//! computed again. Each step leaves snapshots that mean the same for every later day, and may be repeated.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::NaiveDate;
use clickhouse::Client;
use clickhouse::query::Query;
use sqlx::PgPool;
use uuid::Uuid;

use super::purge::{ask, order, remove};
use crate::model::counters::Counters;
use crate::store::clickhouse::cluster;
use crate::store::{Error, Write};

/// How long after its history was cut short an organization is left alone: until then a request may still be answered that
/// knew of more (a key is taken for what it was for 3 s, an answer may take 5 s).
const SETTLES: Duration = Duration::from_secs(10);

/// How often it is looked whether a statement still runs.
const LOOK: Duration = Duration::from_millis(100);
/// What statements that reduce history are called in ClickHouse (`log_comment`).
const NAME: &str = "retention";

/// The connection on which history is reduced.
pub fn client(clickhouse: &Client) -> Client {
    clickhouse.clone().with_setting("log_comment", NAME)
}

/// An organization, and the first day of which its history is kept.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Cutoff {
    pub organization: Uuid,
    pub since: NaiveDate,
    /// Whether only what later days count from was left of earlier ones, when it was last looked at.
    pub is_compacted: bool,
    /// Seconds until nobody is answered any more who knew of more.
    settles_after: f64,
}

impl Cutoff {
    /// How long until nobody is answered any more who knew of more.
    pub fn settles_after(&self) -> Duration {
        Duration::try_from_secs_f64(self.settles_after).unwrap_or_default()
    }
}

/// Lets the history of organizations, or of one, begin where they want it as of a day: whole months go at a time, because
/// ClickHouse writes files anew for it. What is gone is gone, so Postgres has to agree that the day has come, unless a
/// sandbox says which day it is.
pub async fn advance_cutoffs(
    pg: &PgPool,
    organization: Option<Uuid>,
    today: NaiveDate,
    in_sandbox: bool,
) -> Result<(), Error> {
    let due: Vec<(Uuid, NaiveDate)> = sqlx::query_as(
        "select id, since
         from (
             select id, history_since, date_trunc('month', (
                 case when $3 then $1 else least($1, (now() at time zone 'UTC')::date) end
             ) - retention_days)::date as since
             from organizations
             where retention_days is not null and deleted_at is null and ($2::uuid is null or id = $2)
         ) o
         where history_since is null or history_since < since
         order by id",
    )
    .bind(today)
    .bind(organization)
    .bind(in_sandbox)
    .fetch_all(pg)
    .await?;
    for (organization, since) in due {
        let mut write = Write::begin(pg, organization).await?;
        sqlx::query(
            "update organizations set history_since = $2, history_since_set_at = clock_timestamp()
             where id = $1 and (history_since is null or history_since < $2)",
        )
        .bind(organization)
        .bind(since)
        .execute(write.connection())
        .await?;
        write.commit().await?;
    }
    Ok(())
}

/// The organizations whose history was cut short, or one of them.
pub async fn fetch_cutoffs(pg: &PgPool, organization: Option<Uuid>) -> Result<Vec<Cutoff>, Error> {
    let cuts = sqlx::query_as(
        "select id as organization, history_since as since, history_compacted_before is not distinct from history_since as is_compacted,
                greatest(0, extract(epoch from history_since_set_at + $2 - now()))::float8 as settles_after
         from organizations
         where history_since is not null and deleted_at is null and ($1::uuid is null or id = $1)
         order by id",
    )
    .bind(organization)
    .bind(SETTLES)
    .fetch_all(pg)
    .await?;
    Ok(cuts)
}

/// Waits until no statement is at work that reduces history: a process that was killed may have left one behind, whose rows
/// would come to what is deleted meanwhile.
pub async fn wait_for_compactions(client: &Client) -> Result<(), Error> {
    let sql = "SELECT count() FROM system.processes
               WHERE query_kind = 'Insert' AND current_database = currentDatabase() AND user = currentUser()
                   AND Settings['log_comment'] = {comment:String}";
    let sql = cluster::inserts_with_comment(client, sql);
    loop {
        let running: Vec<u64> = ask(client, &sql, |query| query.param("comment", NAME)).await?;
        if running.iter().all(|running| *running == 0) {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Notes whether only what later days count from is left of before an organization's history.
pub async fn record_compaction(pg: &PgPool, cut: &Cutoff, is_compacted: bool) -> Result<(), Error> {
    sqlx::query("update organizations set history_compacted_before = $2 where id = $1")
        .bind(cut.organization)
        .bind(is_compacted.then_some(cut.since))
        .execute(pg)
        .await?;
    Ok(())
}

/// A table of snapshots.
struct Snapshots {
    table: &'static str,
    /// Whose they are, beside the day.
    key: &'static str,
    counters: &'static [&'static str],
}

const SNAPSHOTS: [Snapshots; 2] = [
    Snapshots { table: "video_snapshots", key: "org_id, subject_id, video_id", counters: &Counters::NAMES },
    Snapshots {
        table: "account_snapshots",
        key: "org_id, subject_id",
        counters: &["follower_count", "following_count", "profile_post_count"],
    },
];

impl Snapshots {
    /// Whether an expression holds of any counter.
    fn any(&self, holds: impl Fn(&str) -> String) -> String {
        self.counters.iter().map(|counter| holds(counter)).collect::<Vec<_>>().join(" OR ")
    }

    /// Whether the last day lacks a counter that was known before it. No day is kept of 1970.
    fn last_lacks(&self) -> String {
        self.any(|counter| format!("maxIf(date, {counter} IS NOT NULL) NOT IN (toDate(0), max(date))"))
    }

    /// Whether the first day knows any counter.
    fn first_knows(&self) -> String {
        format!("argMin({}, date)", self.any(|counter| format!("{counter} IS NOT NULL")))
    }

    /// The subjects with more snapshots than later days count from.
    fn unreduced(&self, scope: &str) -> String {
        let Snapshots { table, key, .. } = self;
        format!(
            "SELECT DISTINCT subject_id FROM
             (
                 SELECT subject_id FROM {table} FINAL WHERE {scope}
                 GROUP BY {key}
                 HAVING count() > 2 OR (count() = 2 AND {})
             )",
            self.first_knows()
        )
    }

    /// When what is written for a day was observed: a microsecond after what it stands for, so that it replaces that
    /// whatever comes in which order, and still on that day.
    fn observed(day: &str, at: &str) -> String {
        format!("least(addMicroseconds({at}, 1), subtractMicroseconds(toDateTime64({day} + 1, 6, 'UTC'), 1))")
    }

    /// Has the last day take on what was last known.
    fn complete_last(&self, scope: &str) -> String {
        let Snapshots { table, key, counters } = self;
        let names = counters.join(", ");
        let known: Vec<_> =
            counters.iter().map(|counter| format!("argMax({counter}, date) AS known_{counter}")).collect();
        format!(
            "INSERT INTO {table} ({key}, date, observed_at, {names})
             SELECT {key}, max(date), {}, {}
             FROM {table} FINAL WHERE {scope}
             GROUP BY {key}
             HAVING {}",
            Self::observed("max(date)", "argMax(observed_at, date)"),
            known.join(", "),
            self.last_lacks()
        )
    }

    /// Has the first day say no more than that tracking began, once the last has taken on what was known: a merge of records
    /// may have brought a later last day meanwhile. What counts in full on a first day did so before history begins.
    fn empty_first(&self, scope: &str) -> String {
        let Snapshots { table, key, counters } = self;
        let names = counters.join(", ");
        // On a cluster every column of what a shard says has a name of its own.
        let unknown: Vec<_> = counters.iter().map(|counter| format!("NULL AS no_{counter}")).collect();
        format!(
            "INSERT INTO {table} ({key}, date, observed_at, {names})
             SELECT {key}, min(date), {}, {}
             FROM {table} FINAL WHERE {scope}
             GROUP BY {key}
             HAVING count() > 1 AND {} AND NOT ({})",
            Self::observed("min(date)", "argMin(observed_at, date)"),
            unknown.join(", "),
            self.first_knows(),
            self.last_lacks()
        )
    }

    /// The rows that no later day counts from: neither the first day nor the last, where that has taken on all there is.
    fn idle(&self, scope: &str) -> String {
        let Snapshots { table, key, .. } = self;
        format!(
            "{scope} AND is_deleted = 0
             AND ({key}) IN (SELECT {key} FROM {table} FINAL WHERE {scope} GROUP BY {key} HAVING NOT ({}))
             AND ({key}, date, observed_at) NOT IN
             (
                 SELECT {key}, kept.1, kept.2 FROM
                 (
                     SELECT {key}, arrayJoin(
                         [(min(date), argMin(observed_at, date)), (max(date), argMax(observed_at, date))]) AS kept
                     FROM {table} FINAL WHERE {scope}
                     GROUP BY {key}
                 )
             )",
            self.last_lacks()
        )
    }
}

/// What one organization has of before a day.
const BEFORE: &str = "org_id = {org:UUID} AND date < {since:Date}";

/// The subjects of an organization with more before its history than later days count from.
pub async fn find_uncompacted_subjects(client: &Client, cut: &Cutoff) -> Result<Vec<i64>, Error> {
    let mut found = BTreeSet::new();
    for snapshots in &SNAPSHOTS {
        found.extend(subjects(client, cut, &snapshots.unreduced(BEFORE)).await?);
    }
    Ok(found.into_iter().collect())
}

/// How many videos an organization has snapshots of before its history.
pub async fn count_videos(client: &Client, cut: &Cutoff) -> Result<u64, Error> {
    let sql = format!("SELECT uniq(subject_id, video_id) FROM video_snapshots WHERE {BEFORE}");
    let found: Vec<u64> =
        ask(client, &sql, |query| query.param("org", cut.organization).param("since", cut.since)).await?;
    Ok(found.into_iter().sum())
}

/// The subjects of an organization with days in the rollup before its history.
pub async fn find_rolled_up_subjects(client: &Client, cut: &Cutoff) -> Result<Vec<i64>, Error> {
    let sql = format!(
        "SELECT DISTINCT subject_id FROM account_daily WHERE {BEFORE} AND is_deleted = 0 ORDER BY subject_id"
    );
    subjects(client, cut, &sql).await
}

async fn subjects(client: &Client, cut: &Cutoff, sql: &str) -> Result<Vec<i64>, Error> {
    let found: Vec<u64> =
        ask(client, sql, |query| query.param("org", cut.organization).param("since", cut.since)).await?;
    Ok(found.into_iter().map(u64::cast_signed).collect())
}

/// Reduces what subjects have before a day: what is left means the same for every later day, with the rest or without it.
pub async fn compact(client: &Client, cut: &Cutoff, subjects: &[i64]) -> Result<(), Error> {
    let scope = "org_id = {org:UUID} AND subject_id IN {subjects:Array(UInt64)} AND date < {since:Date}";
    for snapshots in &SNAPSHOTS {
        for sql in [snapshots.complete_last(scope), snapshots.empty_first(scope)] {
            let sql = cluster::insert_on_each_shard(client, &sql);
            order(client, &sql, |query| {
                query.param("org", cut.organization).param("subjects", subjects).param("since", cut.since)
            })
            .await?;
        }
    }
    Ok(())
}

/// Takes what no later day counts from out of the files, of organizations whose history begins on one day; says how many
/// rows that were.
pub async fn purge_redundant_rows(
    client: &Client,
    organizations: &[Uuid],
    since: NaiveDate,
    until: tokio::time::Instant,
) -> Result<u64, Error> {
    let mut rows = 0;
    let bind = |query: Query| query.param("orgs", organizations).param("since", since);
    for snapshots in &SNAPSHOTS {
        let idle = snapshots.idle("org_id IN {orgs:Array(UUID)} AND date < {since:Date}");
        rows += remove(client, snapshots.table, &idle, bind, until).await?;
    }
    Ok(rows)
}
