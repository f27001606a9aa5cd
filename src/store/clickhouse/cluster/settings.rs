//! The settings of a client for a cluster: its name, and those that statements on sharded, replicated tables need.

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
