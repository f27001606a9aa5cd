//! The cluster of a client: its settings, and how the tables of `schemas/` are named and sharded.

use clickhouse::Client;

/// ClickHouse's own setting for the name of a cluster.
const CLUSTER_NAME_SETTING: &str = "cluster_for_parallel_replicas";

const CLUSTER_SETTINGS: [(&str, &str); 9] = [
    // An insert returns when every replica of every shard has its rows, because any of them may serve the next query.
    ("distributed_foreground_insert", "1"),
    ("insert_quorum", "auto"),
    ("insert_quorum_timeout", "60000"),
    // Queries do not see rows that are buffered.
    ("async_insert", "0"),
    // Repeated rows replace each other. Deduplication of blocks would drop rows that are inserted again after a loss.
    ("deduplicate_insert", "disable"),
    ("deduplicate_insert_select", "disable"),
    // Rows go to the shard of their key, also when the statement reads them on another.
    ("parallel_distributed_insert_select", "0"),
    // A total without one of the shards would be wrong.
    ("skip_unavailable_shards", "0"),
    // A query about a few subjects is sent to their shards only.
    ("optimize_skip_unused_shards", "1"),
];

/// Configures a client for the servers of a cluster. Without a cluster's name the client is unchanged.
pub fn configure(client: Client, cluster: &str) -> Client {
    if cluster.is_empty() {
        return client;
    }
    let client = client.with_setting(CLUSTER_NAME_SETTING, cluster);
    CLUSTER_SETTINGS.iter().fold(client, |client, (name, value)| client.with_setting(*name, *value))
}

/// The cluster and database of a client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cluster<'c> {
    pub name: &'c str,
    pub database: &'c str,
}

impl<'c> Cluster<'c> {
    /// None for a client of a single server.
    pub fn from_client(client: &'c Client) -> Option<Self> {
        let name = client.get_setting(CLUSTER_NAME_SETTING)?;
        Some(Cluster { name, database: client.database().unwrap_or("default") })
    }

    /// A table over all shards.
    pub fn distributed(&self, table: &str) -> String {
        format!("`{}`.`{table}`", self.database)
    }

    /// A table on the shard that runs the statement.
    pub fn local(&self, table: &str) -> String {
        format!("`{}`.`{table}_local`", self.database)
    }

    pub fn on_cluster(&self) -> String {
        format!("ON CLUSTER `{}`", self.name)
    }
}

/// A table, and the expression that selects a row's shard: over columns that rows which replace each other share.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    pub name: &'static str,
    pub sharding_key: &'static str,
}

/// Keeps the rows of one subject together, and with them everything that is computed from them.
pub(super) const BY_SUBJECT: &str = "cityHash64(org_id, subject_id)";

/// All tables. `tidemark migrate` refuses to create one that is missing here on a cluster.
pub const TABLES: [Table; 10] = [
    Table { name: "video_snapshots", sharding_key: BY_SUBJECT },
    Table { name: "account_snapshots", sharding_key: BY_SUBJECT },
    Table { name: "account_daily", sharding_key: BY_SUBJECT },
    Table { name: "video_daily", sharding_key: BY_SUBJECT },
    Table { name: "video_ages", sharding_key: BY_SUBJECT },
    Table { name: "accounts", sharding_key: BY_SUBJECT },
    Table { name: "creators", sharding_key: "cityHash64(org_id, id)" },
    // Not by subject: a video that moves to another subject replaces its row.
    Table { name: "videos", sharding_key: "cityHash64(org_id, video_id)" },
    Table { name: "relay_position", sharding_key: "cityHash64(relay)" },
    Table { name: "schema_migrations", sharding_key: "cityHash64(version)" },
];

/// Finds a table by its name, quoted or not.
pub(super) fn find_table(name: &str) -> Option<&'static Table> {
    TABLES.iter().find(|table| table.name == name.trim_matches('`'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_server_gets_no_cluster_settings() {
        let client = configure(Client::default(), "");
        for (name, _) in CLUSTER_SETTINGS.iter().chain(&[(CLUSTER_NAME_SETTING, "")]) {
            assert_eq!(client.get_setting(name), None, "{name}");
        }
        assert!(Cluster::from_client(&client).is_none());
    }
}
