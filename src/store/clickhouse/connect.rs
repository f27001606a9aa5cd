//! How ClickHouse is reached. Nothing is asked of it here, so one that is down is no error yet.

use crate::config::ClickhouseArgs;
use crate::store::clickhouse::cluster;

/// A client of ClickHouse's HTTP interface.
pub fn clickhouse(args: &ClickhouseArgs) -> clickhouse::Client {
    let client = clickhouse::Client::default()
        .with_url(&args.clickhouse_url)
        .with_user(&args.clickhouse_user)
        .with_password(args.clickhouse_password.reveal())
        .with_database(&args.clickhouse_database);
    cluster::connected(client, &args.clickhouse_cluster)
}
