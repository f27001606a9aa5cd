//! Physically deletes rows that tombstones hide in ClickHouse, by mutations (`ALTER … DELETE`).
//!
//! A mutation rewrites one part after the other, and must not make a hidden row visible meanwhile. So hidden rows are deleted
//! first, and tombstones when they hide nothing. Remaining work is read from ClickHouse: a mutation outlives its client.

use std::collections::BTreeSet;
use std::time::Duration;

use clickhouse::Client;
use clickhouse::query::Query;
use sqlx::AssertSqlSafe;
use tokio::time::Instant;
use uuid::Uuid;

use super::sum_results;
use crate::store::Error;
use crate::store::clickhouse::client;

/// How long a caller waits for mutations, which continue afterwards.
pub const PURGE_TIMEOUT: Duration = Duration::from_secs(900);
/// The timeout of a query, or of the submission of a mutation, which runs on afterwards.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(300);
/// Organizations per statement: their ids are a field of the HTTP request, which is limited to 128 KiB.
pub const MAX_STATEMENT_ORGANIZATIONS: usize = 300;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A table with tombstones.
struct TombstoneTable {
    table: &'static str,
    /// A tombstone hides all rows with the same values of these columns.
    key: &'static str,
    /// The row with the greatest version, the number of a delivery, wins; `None`: a tombstone always wins.
    version: Option<&'static str>,
}

/// The condition of tombstones that always win whose delivery is applied: its number is in the microseconds of
/// `observed_at`, except in those of 0.1.0.
const IS_FINAL_DELIVERED: &str =
    "(dateDiff('microsecond', toDateTime64('2299-01-01 00:00:00', 6, 'UTC'), observed_at) <= {delivered:UInt64}
      OR observed_at = toDateTime64('2299-12-31 23:59:59.999999', 6, 'UTC'))";

/// A removed subject, or video of a subject, is never reused (docs/storage.md), so one tombstone hides all days of its
/// snapshots.
const TABLES: [TombstoneTable; 9] = [
    TombstoneTable { table: "video_snapshots", key: "org_id, subject_id, video_id", version: None },
    TombstoneTable { table: "account_snapshots", key: "org_id, subject_id", version: None },
    TombstoneTable { table: "account_daily", key: "org_id, date, subject_id", version: Some("version") },
    TombstoneTable {
        table: "video_daily",
        key: "org_id, date, subject_id, video_id",
        version: Some("version"),
    },
    TombstoneTable { table: "video_ages", key: "org_id, subject_id, video_id", version: Some("version") },
    TombstoneTable { table: "accounts", key: "org_id, subject_id", version: Some("version") },
    TombstoneTable { table: "creators", key: "org_id, id", version: Some("version") },
    TombstoneTable { table: "videos", key: "org_id, video_id", version: Some("version") },
    TombstoneTable { table: "collections", key: "org_id, id", version: Some("version") },
];

impl TombstoneTable {
    /// The condition of rows that a tombstone hides.
    fn hidden_rows_condition(&self, scope: &str) -> String {
        let TombstoneTable { table, key, version } = self;
        match version {
            None => format!(
                "{scope} AND is_deleted = 0 AND ({key}) IN
                 (SELECT {key} FROM {table}/*_local*/ WHERE {scope} AND is_deleted = 1)"
            ),
            Some(version) => format!(
                "{scope} AND is_deleted = 0 AND ({key}) IN
                 (
                     SELECT {key} FROM {table}/*_local*/
                     WHERE {scope} AND ({key}) IN (SELECT {key} FROM {table}/*_local*/ WHERE {scope} AND is_deleted = 1)
                     GROUP BY {key}
                     HAVING maxIf({version}, is_deleted = 1) > maxIf({version}, is_deleted = 0)
                 )"
            ),
        }
    }

    /// The condition of tombstones that hide no row, up to a delivery.
    fn unused_tombstones_condition(&self, scope: &str) -> String {
        let TombstoneTable { table, key, version } = self;
        let delivered = version.map(|version| format!("{version} <= {{delivered:UInt64}}"));
        let is_delivered = delivered.as_deref().unwrap_or(IS_FINAL_DELIVERED);
        format!(
            "{scope} AND is_deleted = 1 AND {is_delivered} AND ({key}) NOT IN
             (
                 SELECT {key} FROM {table}/*_local*/
                 WHERE {scope} AND is_deleted = 0
                     AND ({key}) IN (SELECT {key} FROM {table}/*_local*/ WHERE {scope} AND is_deleted = 1)
             )"
        )
    }
}

/// Which rows a purge deletes.
#[derive(Debug, Clone, Copy)]
pub struct PurgeScope {
    /// Those of one organization or of all.
    pub organization: Option<Uuid>,
    /// The last delivery whose tombstones are deleted. Rollups in memory may need those of later ones, and so may the relay,
    /// which recomputes rollups after it has written tombstones of snapshots.
    pub delivered: i64,
}

impl PurgeScope {
    const fn condition(&self) -> &'static str {
        if self.organization.is_some() { "org_id = {org:UUID}" } else { "1" }
    }

    fn bind(&self, query: Query) -> Query {
        let query = query.param("delivered", self.delivered);
        match self.organization {
            Some(organization) => query.param("org", organization),
            None => query,
        }
    }
}

/// Whether the rollup has tombstones that a purge deletes.
pub async fn has_rollup_tombstones(client: &Client, scope: PurgeScope) -> Result<bool, Error> {
    let sql = format!(
        "SELECT count() FROM account_daily WHERE {} AND is_deleted = 1 AND version <= {{delivered:UInt64}}",
        scope.condition()
    );
    let counts: Vec<u64> = fetch_all(client, &sql, |query| scope.bind(query)).await?;
    Ok(counts.iter().any(|count| *count > 0))
}

/// Deletes hidden rows and returns their number. Fails if ClickHouse has not finished by the deadline; its mutations go on,
/// and the next purge finds the rest. Tries all tables, even if one fails.
pub async fn purge_removed_rows(client: &Client, scope: PurgeScope, deadline: Instant) -> Result<u64, Error> {
    let mut rows = Ok(0);
    for table in &TABLES {
        rows = sum_results(rows, purge_table(client, table, scope, deadline).await);
    }
    rows
}

async fn purge_table(
    client: &Client,
    table: &TombstoneTable,
    scope: PurgeScope,
    deadline: Instant,
) -> Result<u64, Error> {
    wait_for_mutations(client, table.table, deadline).await?;
    let (bind, in_scope) = (|query: Query| scope.bind(query), scope.condition());
    let mut rows = 0;
    for condition in [table.hidden_rows_condition(in_scope), table.unused_tombstones_condition(in_scope)] {
        rows += delete_rows(client, table.table, &condition, bind, deadline).await?;
    }
    Ok(rows)
}

/// Deletes all rows of an organization and returns their number. Tries all tables, even if one fails.
pub async fn purge_organization(
    client: &Client,
    organization: Uuid,
    deadline: Instant,
) -> Result<u64, Error> {
    let mut rows = Ok(0);
    for table in fetch_organization_tables(client).await? {
        rows = sum_results(rows, purge_organizations(client, &table, &[organization], deadline).await);
    }
    rows
}

/// Deletes a table's rows of some organizations and returns their number.
pub async fn purge_organizations(
    client: &Client,
    table: &str,
    organizations: &[Uuid],
    deadline: Instant,
) -> Result<u64, Error> {
    wait_for_mutations(client, table, deadline).await?;
    let mut rows = 0;
    for batch in organizations.chunks(MAX_STATEMENT_ORGANIZATIONS) {
        let condition = "org_id IN {orgs:Array(UUID)}";
        rows += delete_rows(client, table, condition, |query| query.param("orgs", batch), deadline).await?;
    }
    Ok(rows)
}

/// Returns the tables with rows of organizations.
pub async fn fetch_organization_tables(client: &Client) -> Result<Vec<String>, Error> {
    fetch_all(
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

/// Deletes the rows that match a condition, if there are any, and returns their number. On a cluster each shard deletes its
/// own, so subqueries of the condition read `table/*_local*/`.
pub(super) async fn delete_rows(
    client: &Client,
    table: &str,
    condition: &str,
    bind: impl Fn(Query) -> Query,
    deadline: Instant,
) -> Result<u64, Error> {
    let counts: Vec<u64> =
        fetch_all(client, &format!("SELECT count() FROM `{table}` WHERE {condition}"), &bind).await?;
    let rows = counts.into_iter().sum();
    if rows > 0 {
        let delete = format!(
            "ALTER TABLE `{table}`/*_local*/ /*cluster:ON CLUSTER `{{cluster}}`*/ DELETE WHERE {condition}"
        );
        execute(client, &delete, |query| {
            bind(query)
                .with_setting("mutations_sync", "0")
                // Required for conditions with subqueries on replicated tables.
                .with_setting("allow_nondeterministic_mutations", "1")
        })
        .await?;
        wait_for_mutations(client, table, deadline).await?;
    }
    Ok(rows)
}

/// Waits until the present mutations of a table are finished. Later ones are not waited for, so that erasure does not wait
/// for a whole retention sweep.
async fn wait_for_mutations(client: &Client, table: &str, deadline: Instant) -> Result<(), Error> {
    let mut awaited: Option<BTreeSet<String>> = None;
    loop {
        let mut unfinished: Vec<(String, String)> = fetch_all(
            client,
            "SELECT mutation_id, latest_fail_reason FROM system.mutations
             WHERE database = currentDatabase() AND table IN ({table:String}, concat({table:String}, '_local'))
                 AND NOT is_done AND NOT is_killed",
            |query| query.param("table", table),
        )
        .await?;
        let awaited = awaited.get_or_insert_with(|| unfinished.iter().map(|(id, _)| id.clone()).collect());
        unfinished.retain(|(id, _)| awaited.contains(id));
        if unfinished.is_empty() {
            return Ok(());
        }
        if Instant::now() >= deadline {
            for (mutation_id, reason) in unfinished {
                tracing::warn!(
                    table,
                    mutation_id,
                    reason,
                    "deletion from a clickhouse table is not finished in time, it continues"
                );
            }
            return Err(Error::Clickhouse(clickhouse::error::Error::TimedOut));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

pub(super) async fn execute(
    client: &Client,
    sql: &str,
    bind: impl FnOnce(Query) -> Query,
) -> Result<(), Error> {
    client::execute(client, AssertSqlSafe(sql), STATEMENT_TIMEOUT, bind).await
}

pub(super) async fn fetch_all<T: clickhouse::RowOwned + clickhouse::RowRead>(
    client: &Client,
    sql: &str,
    bind: impl FnOnce(Query) -> Query,
) -> Result<Vec<T>, Error> {
    client::fetch_all(client, AssertSqlSafe(sql), STATEMENT_TIMEOUT, bind).await
}
