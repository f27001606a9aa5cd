//! Statements for a cluster, as far as one process can test them: all parse, replicated tables can be created, and the relay,
//! the reads and `verify` have the same results on Distributed tables as on a single server.
//!
//! The cluster is the embedded engine with ClickHouse's in-memory Keeper. It creates replicated tables but cannot write them,
//! so rows are in plain tables. Several shards, replicas and ON CLUSTER need servers and are not tested.

mod running;
mod statements;

use chdb_http::Credentials;
use clickhouse::Client;
use harness::Process;
use tempfile::TempDir;
use tidemark::config::ClickhouseArgs;
use tidemark::model::secret::Secret;
use tidemark::store::clickhouse::client;
use tidemark::store::clickhouse::cluster::Layout;
use tidemark::store::migrate::CREATE_SCHEMA_MIGRATIONS;

/// Clusters of the engine itself. `pair` has it as both of its shards, which shows which shards are queried; `thrice` and
/// `apart` are unsupported; `away` is unreachable.
fn configuration() -> String {
    let replica = "<replica><host>127.0.0.1</host><port>9000</port></replica>";
    let shard = |replicas| {
        let replicas = replica.repeat(replicas);
        format!("<shard><internal_replication>true</internal_replication>{replicas}</shard>")
    };
    format!(
        "<clickhouse>
            <tcp_port>9000</tcp_port>
            <remote_servers>
                <one>{one}</one>
                <pair>{one}{one}</pair>
                <thrice>{thrice}</thrice>
                <apart><shard>{replica}</shard></apart>
                <away>{away}</away>
            </remote_servers>
            <macros><shard>1</shard><replica>first</replica></macros>
            <zookeeper><implementation>testkeeper</implementation></zookeeper>
        </clickhouse>",
        one = shard(1),
        thrice = shard(3),
        away = shard(1).replace("9000", "9"),
    )
}

/// An embedded ClickHouse that is configured as a cluster.
struct Node {
    process: Process,
    url: String,
    credentials: Credentials,
    _folder: TempDir,
}

impl Node {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir_all(data.join("engine.d")).unwrap();
        std::fs::write(data.join("engine.d/cluster.xml"), configuration()).unwrap();
        let mut process = Process::clickhouse(&data);
        let url = process.listening_url();
        Node { process, url, credentials: Credentials::read(&data).unwrap(), _folder: folder }
    }

    async fn stop(mut self) {
        assert_eq!(self.process.stop().await, Some(0));
    }

    /// The options for a database, on a cluster or on a single server.
    fn args(&self, database: &str, cluster: &str) -> ClickhouseArgs {
        ClickhouseArgs {
            clickhouse_url: self.url.clone(),
            clickhouse_user: self.credentials.user.clone(),
            clickhouse_password: Secret::new(&self.credentials.password),
            clickhouse_database: database.to_owned(),
            clickhouse_cluster: cluster.to_owned(),
        }
    }

    /// Creates a database with the tables of a cluster. The shard's tables are not replicated, so that they can be written.
    async fn database(&self, database: &str, cluster: &str) -> Client {
        self.database_with(database, cluster, |statement| {
            let Some((before, after)) = statement.split_once("Replicated") else { return statement };
            let (_, arguments) = after.split_once("'{replica}'").unwrap();
            format!("{before}ReplacingMergeTree({}", arguments.trim_start_matches(", "))
        })
        .await
    }

    async fn database_with(&self, database: &str, cluster: &str, adapt: fn(String) -> String) -> Client {
        let client = client::connect(&self.args(database, cluster));
        let server = client.clone().with_database("default");
        let layout = Layout::detect(&server, database).await.unwrap();
        server.query_raw(&format!("create database if not exists `{database}`")).execute().await.unwrap();
        for statement in schemas().iter().flat_map(|file| layout.statements(file)) {
            client.query_raw(&adapt(without_on_cluster(&statement))).execute().await.unwrap();
        }
        client
    }
}

/// A schema statement without ON CLUSTER, which only a server supports.
fn without_on_cluster(statement: &str) -> String {
    let (before, after) = statement.split_once(" ON CLUSTER `").expect("the statement is for the cluster");
    let (_, after) = after.split_once('`').unwrap();
    format!("{before}{after}")
}

/// The files of `schemas/`, and the table of applied migrations.
fn schemas() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    let files = paths.iter().map(|path| std::fs::read_to_string(path).unwrap());
    files.chain([CREATE_SCHEMA_MIGRATIONS.to_owned()]).collect()
}
