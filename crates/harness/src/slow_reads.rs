//! Queries that run long enough to be found in ClickHouse's list of running ones.

use clickhouse::Client;
use uuid::Uuid;

/// A client whose queries take half a second for each row of a table.
pub fn slow_reads(clickhouse: &Client, table: &str) -> Client {
    clickhouse
        .clone()
        .with_setting("additional_table_filters", format!("{{'{table}': 'sleepEachRow(0.5) = 0'}}"))
        // A block may sleep for 2^32 microseconds at most, and a granule has up to 8,192 rows of any organization.
        .with_setting("max_block_size", "1000")
        .with_setting("function_sleep_max_microseconds_per_block", "4294967295")
}

/// How long the query whose `log_comment` begins with an id has been running.
pub async fn query_seconds(clickhouse: &Client, log_comment: Uuid) -> Option<f64> {
    let sql =
        "select elapsed from system.processes where startsWith(Settings['log_comment'], {comment:String})";
    let query = clickhouse.query_raw(sql).param("comment", log_comment.to_string());
    query.fetch_all().await.expect("the running queries are listed").pop()
}
