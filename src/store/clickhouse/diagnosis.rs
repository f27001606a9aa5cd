//! ClickHouse's own state for `tidemark doctor`: version, disks, parts and privileges.

use chrono::{DateTime, Utc};
use clickhouse::Client;
use clickhouse::error::Result;

use super::client::read;

/// The tables that the relay writes.
pub const WRITTEN_TABLES: [&str; 10] = [
    "accounts",
    "creators",
    "videos",
    "collections",
    "account_snapshots",
    "video_snapshots",
    "account_daily",
    "video_daily",
    "video_ages",
    "relay_position",
];

pub async fn fetch_version(client: &Client) -> Result<String> {
    read(client, "select version()").fetch_one().await
}

/// The time of the server's clock.
pub async fn fetch_time(client: &Client) -> Result<DateTime<Utc>> {
    let micros: i64 = read(client, "select toUnixTimestamp64Micro(now64(6))").fetch_one().await?;
    Ok(DateTime::from_timestamp_micros(micros).unwrap_or_default())
}

/// Name, free bytes and total bytes of each disk.
pub async fn list_disks(client: &Client) -> Result<Vec<(String, u64, u64)>> {
    let sql = "select name, free_space, total_space from system.disks where total_space > 0 order by name";
    read(client, sql).fetch_all().await
}

/// The largest number of active parts in a partition.
pub async fn max_parts_per_partition(client: &Client) -> Result<u64> {
    let sql = "select max(parts) from (
        select count() as parts from system.parts where active and database = currentDatabase() group by table, partition_id
    )";
    read(client, sql).fetch_one().await
}

/// Fails without the privilege to insert into a table. Inserts nothing.
pub async fn check_insert_privilege(client: &Client, table: &str) -> Result<()> {
    client.query_raw(&format!("insert into {table} select * from {table} limit 0")).execute().await
}

/// Fails without the privilege to list running statements, which the relay does before it starts.
pub async fn check_processes_privilege(client: &Client) -> Result<()> {
    read(client, "select count() from system.processes").fetch_one::<u64>().await.map(drop)
}
