//! ClickHouse's own state for `tidemark doctor`: version, disks, parts and privileges.

use chrono::{DateTime, Utc};
use clickhouse::Client;

/// ClickHouse's version, and its clock.
pub async fn version(client: &Client) -> Result<(String, DateTime<Utc>), clickhouse::error::Error> {
    let (version, micros) = client
        .query_raw("select version(), toUnixTimestamp64Micro(now64(6))")
        .fetch_one::<(String, i64)>()
        .await?;
    Ok((version, DateTime::from_timestamp_micros(micros).unwrap_or_default()))
}

/// ClickHouse's disks: name, bytes that are free, and all of them.
pub async fn disks(client: &Client) -> Result<Vec<(String, u64, u64)>, clickhouse::error::Error> {
    client
        .query_raw(
            "select name, free_space, total_space from system.disks where total_space > 0 order by name",
        )
        .fetch_all()
        .await
}

/// The most parts that a partition of our tables is in.
pub async fn max_parts_per_partition(client: &Client) -> Result<u64, clickhouse::error::Error> {
    let statement = "select max(parts) from (
        select count() as parts from system.parts where active and database = currentDatabase() group by table, partition_id
    )";
    client.query_raw(statement).fetch_one().await
}

/// The tables that the relay writes.
pub const WRITTEN_TABLES: [&str; 7] = [
    "accounts",
    "creators",
    "videos",
    "account_snapshots",
    "video_snapshots",
    "account_daily",
    "relay_position",
];

/// Tries whether the user may write a table as the relay does: inserts none of its rows.
pub async fn check_insert_privilege(client: &Client, table: &str) -> Result<(), clickhouse::error::Error> {
    client.query_raw(&format!("insert into {table} select * from {table} limit 0")).execute().await
}

/// Tries whether the user may look at statements that run, as the relay does before it begins.
pub async fn check_processes_privilege(client: &Client) -> Result<(), clickhouse::error::Error> {
    client.query_raw("select count() from system.processes").fetch_one::<u64>().await.map(drop)
}
