//! What was removed in ClickHouse is covered at first, by tombstones that no read looks behind. Here it leaves the files:
//! parts that hold any of it are written anew without it (mutations), one table after the other.
//!
//! A mutation replaces one part after the other, and nothing may come to light meanwhile. So what is covered goes first,
//! and the tombstones go when nothing is left for them to cover. What there is to do is asked of ClickHouse each time:
//! a mutation outlives who ordered it, and a step that nobody took is still to be taken.

use std::time::Duration;

use clickhouse::query::Query;
use clickhouse::{Client, Row};
use serde::Deserialize;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::sum_results;
use crate::store::Error;
use crate::store::clickhouse::client;
use crate::store::clickhouse::cluster;

/// How long ClickHouse may take for one look, or to take an order; the rewriting itself takes as long as it takes.
const LONGEST: Duration = Duration::from_secs(300);
/// How many organizations one statement names; they travel in a field of the request, which may hold 128 KiB.
const NAMED: usize = 300;
/// How often it is asked how far it is.
const LOOK: Duration = Duration::from_millis(100);

/// A table whose rows are covered by tombstones.
struct Covered {
    table: &'static str,
    /// What a tombstone covers: everything with these columns.
    key: &'static str,
    /// The column of the greater of which is seen; None: a tombstone is final.
    version: Option<&'static str>,
}

/// Neither a subject nor a video in a subject is used again once it was removed (docs/storage.md), so one tombstone
/// there speaks for all days.
const COVERED: [Covered; 6] = [
    Covered { table: "video_snapshots", key: "org_id, subject_id, video_id", version: None },
    Covered { table: "account_snapshots", key: "org_id, subject_id", version: None },
    Covered { table: "account_daily", key: "org_id, date, subject_id", version: Some("version") },
    Covered { table: "accounts", key: "org_id, subject_id", version: Some("version") },
    Covered { table: "creators", key: "org_id, id", version: Some("version") },
    Covered { table: "videos", key: "org_id, video_id", version: Some("version") },
];

impl Covered {
    /// The rows that a tombstone covers.
    fn hidden(&self, scope: &str) -> String {
        let Covered { table, key, version } = self;
        match version {
            None => format!(
                "{scope} AND is_deleted = 0 AND ({key}) IN (SELECT {key} FROM {table} WHERE {scope} AND is_deleted = 1)"
            ),
            Some(version) => format!(
                "{scope} AND is_deleted = 0 AND ({key}) IN
                 (
                     SELECT {key} FROM {table}
                     WHERE {scope} AND ({key}) IN (SELECT {key} FROM {table} WHERE {scope} AND is_deleted = 1)
                     GROUP BY {key}
                     HAVING maxIf({version}, is_deleted = 1) > maxIf({version}, is_deleted = 0)
                 )"
            ),
        }
    }

    /// The tombstones that cover nothing.
    fn idle(&self, scope: &str) -> String {
        let Covered { table, key, .. } = self;
        format!(
            "{scope} AND is_deleted = 1 AND ({key}) NOT IN
             (
                 SELECT {key} FROM {table}
                 WHERE {scope} AND is_deleted = 0
                     AND ({key}) IN (SELECT {key} FROM {table} WHERE {scope} AND is_deleted = 1)
             )"
        )
    }
}

/// Takes what was removed out of the files, of one organization or of all, and says how many rows that were. Fails when
/// ClickHouse is not ready by a time; it goes on by itself, and the next look finds what is left. A table that fails keeps
/// no other waiting.
pub async fn purge_removed_rows(
    client: &Client,
    organization: Option<Uuid>,
    until: tokio::time::Instant,
) -> Result<u64, Error> {
    let mut rows = Ok(0);
    for covered in &COVERED {
        rows = sum_results(rows, purge_one(client, covered, organization, until).await);
    }
    rows
}

async fn purge_one(
    client: &Client,
    covered: &Covered,
    organization: Option<Uuid>,
    until: tokio::time::Instant,
) -> Result<u64, Error> {
    settle(client, covered.table, until).await?;
    // Bound into each statement; the constant true where all organizations are meant.
    let scope = if organization.is_some() { "org_id = {org:UUID}" } else { "1" };
    let bind = |query: Query| match organization {
        Some(organization) => query.param("org", organization),
        None => query,
    };
    let mut rows = 0;
    for condition in [covered.hidden(scope), covered.idle(scope)] {
        rows += remove(client, covered.table, &condition, bind, until).await?;
    }
    Ok(rows)
}

/// Takes all that ClickHouse holds of an organization out of its files, in every table that has rows of organizations, and
/// says how many rows that were. A table that fails keeps no other waiting.
pub async fn purge_organization(
    client: &Client,
    organization: Uuid,
    until: tokio::time::Instant,
) -> Result<u64, Error> {
    let mut rows = Ok(0);
    for table in fetch_organization_tables(client).await? {
        rows = sum_results(rows, purge_organizations(client, &table, &[organization], until).await);
    }
    rows
}

/// Takes what a table holds of some organizations out of its files, and says how many rows that were.
pub async fn purge_organizations(
    client: &Client,
    table: &str,
    organizations: &[Uuid],
    until: tokio::time::Instant,
) -> Result<u64, Error> {
    settle(client, table, until).await?;
    let mut rows = 0;
    for some in organizations.chunks(NAMED) {
        let condition = "org_id IN {orgs:Array(UUID)}";
        rows += remove(client, table, condition, |query| query.param("orgs", some), until).await?;
    }
    Ok(rows)
}

/// The tables that have rows of organizations.
pub async fn fetch_organization_tables(client: &Client) -> Result<Vec<String>, Error> {
    ask(
        client,
        "SELECT name FROM system.tables
         WHERE database = currentDatabase() AND (engine LIKE '%MergeTree' OR engine = 'Distributed')
             AND NOT endsWith(name, '_local') AND name IN
             (SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'org_id')
         ORDER BY name",
        |query| query,
    )
    .await
}

/// Removes the rows of a condition from the files, if there are any, and says how many there were.
pub(super) async fn remove(
    client: &Client,
    table: &str,
    condition: &str,
    bind: impl Fn(Query) -> Query,
    until: tokio::time::Instant,
) -> Result<u64, Error> {
    let found: Vec<u64> =
        ask(client, &format!("SELECT count() FROM `{table}` WHERE {condition}"), &bind).await?;
    let rows = found.into_iter().sum();
    if rows > 0 {
        let delete = format!("ALTER TABLE `{table}` DELETE WHERE {condition}");
        order(client, &cluster::on_every_shard(client, &delete), |query| {
            bind(query)
                .with_setting("mutations_sync", "0")
                // On replicated tables a condition with subqueries is refused otherwise.
                .with_setting("allow_nondeterministic_mutations", "1")
        })
        .await?;
        settle(client, table, until).await?;
    }
    Ok(rows)
}

/// A mutation that is not finished.
#[derive(Row, Deserialize)]
struct Unfinished {
    mutation_id: String,
    latest_fail_reason: String,
}

/// Waits until ClickHouse has done what it was ordered to do to a table.
async fn settle(client: &Client, table: &str, until: tokio::time::Instant) -> Result<(), Error> {
    loop {
        let unfinished: Vec<Unfinished> = ask(
            client,
            "SELECT mutation_id, latest_fail_reason FROM system.mutations
             WHERE database = currentDatabase() AND table IN ({table:String}, concat({table:String}, '_local'))
                 AND NOT is_done AND NOT is_killed",
            |query| query.param("table", table),
        )
        .await?;
        if unfinished.is_empty() {
            return Ok(());
        }
        if tokio::time::Instant::now() >= until {
            for Unfinished { mutation_id, latest_fail_reason } in unfinished {
                tracing::warn!(
                    table,
                    mutation_id,
                    reason = latest_fail_reason,
                    "clickhouse has not yet written a table anew without what was deleted; it goes on"
                );
            }
            return Err(Error::Clickhouse(clickhouse::error::Error::TimedOut));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Has ClickHouse do something.
pub(super) async fn order(
    client: &Client,
    sql: &str,
    bind: impl FnOnce(Query) -> Query,
) -> Result<(), Error> {
    client::execute(client, AssertSqlSafe(sql), LONGEST, bind).await
}

/// The rows that a question is answered with.
pub(super) async fn ask<T: clickhouse::RowOwned + clickhouse::RowRead>(
    client: &Client,
    sql: &str,
    bind: impl FnOnce(Query) -> Query,
) -> Result<Vec<T>, Error> {
    // On a cluster a tombstone lies on the shard of what it covers.
    let bind = |query| bind(query).with_setting("distributed_product_mode", "local");
    client::fetch_all(client, AssertSqlSafe(sql), LONGEST, bind).await
}
