//! The statements for a cluster, as far as one process can show them: all of them parse, replicated tables can be made, and
//! the relay, the reads and `verify` find over Distributed tables what they find over those of a single server. The cluster
//! here is the embedded engine itself, with ClickHouse's stores imitation of Keeper in its memory. It lets replicated tables
//! be made but not written, so the rows lie in plain ones; more shards, replicas and ON CLUSTER need servers, and have
//! not run.

mod running;
mod statements;

use chdb_http::{ChildOptions, ChildServer};
use clickhouse::Client;
use tempfile::TempDir;
use tidemark::config::ClickhouseArgs;
use tidemark::model::secret::Secret;
use tidemark::store::clickhouse::client;
use tidemark::store::clickhouse::cluster::Layout;
use tidemark::store::migrate::CREATE_SCHEMA_MIGRATIONS;

/// Clusters of the engine itself. `pair` has it as both of its shards, which shows who is asked, and answers nothing right;
/// `thrice` and `apart` nobody should have; nobody listens where `away` is.
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

/// An embedded ClickHouse that is a cluster by itself.
struct Node {
    spawned: ChildServer,
    _folder: TempDir,
}

impl Node {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir_all(data.join("engine.d")).unwrap();
        std::fs::write(data.join("engine.d/cluster.xml"), configuration()).unwrap();
        let mut options = ChildOptions::new(env!("CARGO_BIN_EXE_tidemark"), data);
        options.arguments = vec!["clickhouse".into()];
        Node { spawned: ChildServer::start(options).await.unwrap(), _folder: folder }
    }

    /// How one of its databases is reached, as that of a cluster or of a single server.
    fn args(&self, database: &str, cluster: &str) -> ClickhouseArgs {
        let known = &self.spawned.credentials;
        ClickhouseArgs {
            clickhouse_url: self.spawned.url.clone(),
            clickhouse_user: known.user.clone(),
            clickhouse_password: Secret::new(&known.password),
            clickhouse_database: database.to_owned(),
            clickhouse_cluster: cluster.to_owned(),
        }
    }

    /// A database with the tables of a cluster, those of the shard as the engine can write them.
    async fn database(&self, database: &str, cluster: &str) -> Client {
        self.database_of(database, cluster, |statement| {
            let Some((before, after)) = statement.split_once("Replicated") else { return statement };
            let (_, arguments) = after.split_once("'{replica}'").unwrap();
            format!("{before}ReplacingMergeTree({}", arguments.trim_start_matches(", "))
        })
        .await
    }

    async fn database_of(&self, database: &str, cluster: &str, form: fn(String) -> String) -> Client {
        let client = client::connect(&self.args(database, cluster));
        let server = client.clone().with_database("default");
        let layout = Layout::detect(&server, database).await.unwrap();
        for statement in layout.render(&format!("create database if not exists `{database}`")).unwrap() {
            server.query_raw(&here(&statement)).execute().await.unwrap();
        }
        for (_, file) in schemas() {
            for statement in layout.render(&file).unwrap() {
                client.query_raw(&form(here(&statement))).execute().await.unwrap();
            }
        }
        client
    }
}

/// A statement of the schema for this node alone: the queue of statements for all is something that only a server has.
fn here(statement: &str) -> String {
    let (before, after) = statement.split_once(" ON CLUSTER `").expect("it is for the cluster");
    let (_, after) = after.split_once('`').unwrap();
    format!("{before}{after}")
}

/// The files of `schemas/`, and the table in which they are recorded.
fn schemas() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sql"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files.push(("schema_migrations".to_owned(), CREATE_SCHEMA_MIGRATIONS.to_owned()));
    files
}
