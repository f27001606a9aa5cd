//! Marks a client as connected to a cluster, and sets what makes its statements correct on sharded, replicated tables.

use clickhouse::Client;

/// The setting that carries the cluster's name: the one in which ClickHouse itself takes it.
const CLUSTER_NAME: &str = "cluster_for_parallel_replicas";

const SETTINGS: [(&str, &str); 9] = [
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
    let client = client.with_setting(CLUSTER_NAME, cluster);
    SETTINGS.iter().fold(client, |client, (name, value)| client.with_setting(*name, *value))
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
        let name = client.get_setting(CLUSTER_NAME)?;
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
        for (name, _) in SETTINGS.iter().chain(&[(CLUSTER_NAME, "")]) {
            assert_eq!(client.get_setting(name), None, "{name}");
        }
        assert!(Cluster::from_client(&client).is_none());
    }
}
