//! The statements for a cluster, as far as one process can show them: all of them parse, replicated tables can be made, and
//! the relay, the reads and `verify` find over Distributed tables what they find over those of a single server. The cluster
//! here is the embedded engine itself, with ClickHouse's own imitation of Keeper in its memory. It lets replicated tables
//! be made but not written, so the rows lie in plain ones; more shards, replicas and ON CLUSTER need servers, and have
//! not run.

use std::collections::BTreeSet;

use chrono::{TimeDelta, Utc};
use clickhouse::Client;
use tempfile::TempDir;
use tidemark::app;
use tidemark::config::ClickhouseArgs;
use tidemark::embedded::clickhouse::{SpawnOptions, Spawned};
use tidemark::model::secret::Secret;
use tidemark::rollup::{rebuild, verify};
use tidemark::store::cluster::{self, Layout, TABLES};
use tidemark::store::facts;
use tidemark::store::migrate::RECORDS;
use uuid::Uuid;

use crate::harness::private::command;
use crate::harness::{Stack, eventually};
use crate::setup::{OwnStores, delete_account, scrape_at, track_alone};

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
    spawned: Spawned,
    _folder: TempDir,
}

impl Node {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir_all(data.join("engine.d")).unwrap();
        std::fs::write(data.join("engine.d/cluster.xml"), configuration()).unwrap();
        let options = SpawnOptions::new(env!("CARGO_BIN_EXE_tidemark"), data);
        Node { spawned: Spawned::spawn(options).await.unwrap(), _folder: folder }
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
        let client = app::clickhouse(&self.args(database, cluster));
        let server = client.clone().with_database("default");
        let layout = Layout::of(&server, database).await.unwrap();
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
    files.push(("schema_migrations".to_owned(), RECORDS.to_owned()));
    files
}

async fn parses(client: &Client, statement: &str) {
    // Syntax is looked at before anything else, so what a parameter stands for does not matter.
    let tree = format!("EXPLAIN AST {}", statement.trim_end());
    let rows = client
        .query_raw(&tree)
        .param("subjects", Vec::<(Uuid, u64)>::new())
        .param("version", 1)
        .param("anew", false)
        .param("org", Uuid::nil())
        .param("first", 1)
        .fetch_all::<String>()
        .await;
    let rows = rows.unwrap_or_else(|error| panic!("{error}\n{statement}"));
    assert!(rows.len() > 1, "{statement}: {rows:?}");
}

#[tokio::test]
async fn every_file_comes_to_a_replicated_table_and_one_over_all_shards() {
    let client = &Stack::shared().stores.clickhouse;
    let layout = Layout::Sharded { cluster: "main".into(), database: "tidemark".into(), shards: 4 };
    let mut made = BTreeSet::new();
    for (file, text) in schemas() {
        assert_eq!(
            Layout::Single.render(&text).unwrap(),
            [text.as_str()],
            "{file} is what a single server gets"
        );
        let statements = layout.render(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let [local, whole] = &statements[..] else { panic!("{file}: {statements:?}") };
        for statement in &statements {
            assert!(statement.contains(" ON CLUSTER `main`"), "{statement}");
            parses(client, statement).await;
        }
        let table = TABLES.iter().find(|table| local.contains(&format!("`tidemark`.`{}_local`", table.name)));
        let table = table.unwrap_or_else(|| panic!("{file} makes a table that TABLES does not have"));
        made.insert(table.name);
        let replicated = format!(
            "ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{{shard}}/tidemark/{}', '{{replica}}'",
            table.name
        );
        assert!(local.to_lowercase().contains(&replicated.to_lowercase()), "{local}");
        let engine = format!("Distributed('main', 'tidemark', '{}_local', {} % 4)", table.name, table.shard);
        assert!(whole.contains(&engine), "{whole}");
        assert!(whole.contains(&format!("AS `tidemark`.`{}_local`", table.name)), "{whole}");
        // Rows that replace each other have the same key, so only what is in the key may decide where they lie.
        let lower = text.to_lowercase();
        let key = lower.rsplit_once("order by ").unwrap().1.lines().next().unwrap();
        let words = |text: &str| -> BTreeSet<String> {
            text.split(|sign: char| !sign.is_alphanumeric() && sign != '_').map(str::to_owned).collect()
        };
        let columns = table.shard.strip_prefix("cityHash64").unwrap();
        assert!(
            words(columns).is_subset(&words(&format!("({key})"))),
            "{}: {} of {key}",
            table.name,
            table.shard
        );
        // Whatever else the file says of the table, the shard's has it.
        if file.ends_with(".sql") {
            let named = format!("EXISTS `tidemark`.`{}_local` ON CLUSTER `main`\n", table.name);
            let expected = text.replacen(&format!("EXISTS {}\n", table.name), &named, 1).replacen(
                "ENGINE = ReplacingMergeTree(",
                &format!("{replicated}, "),
                1,
            );
            assert_eq!(*local, expected);
        }
    }
    assert_eq!(made, TABLES.iter().map(|table| table.name).collect(), "TABLES has one that nothing makes");
}

#[test]
fn a_name_that_would_end_its_quotes_is_no_name_of_a_cluster() {
    for name in ["a'b", "a`", "{cluster}"] {
        let output = command().args(["migrate", "--clickhouse-cluster", name]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains("letters, digits, underscores and hyphens"), "{told}");
    }
}

#[tokio::test]
async fn the_statements_that_are_others_on_a_cluster_parse() {
    let client = &Stack::shared().stores.clickhouse;
    let there = cluster::connected(Client::default().with_database("tidemark"), "main");
    let recompute = include_str!("../../src/store/analytics/recompute.sql");
    parses(client, &cluster::within_shards(&there, recompute)).await;
    parses(client, &cluster::being_written(&there, "")).await;
    for change in [
        "ALTER TABLE account_daily DELETE WHERE org_id = {org:UUID} AND version >= {first:UInt64}",
        "DELETE FROM video_snapshots WHERE org_id = {org:UUID}",
        "OPTIMIZE TABLE video_snapshots FINAL",
        "TRUNCATE TABLE relay_position",
    ] {
        let change = cluster::on_every_shard(&there, change);
        assert!(change.contains("_local` ON CLUSTER `main`"), "{change}");
        parses(client, &change).await;
    }
}

/// What a Distributed table cannot do (change rows, merge parts) has to go through `cluster::on_every_shard`.
#[test]
fn statements_in_files_read_and_insert_and_nothing_else() {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store"))];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "sql") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.lines().find(|line| !line.starts_with("--")).unwrap_or_default();
                let first = code.split_whitespace().next().unwrap_or_default();
                assert!(["SELECT", "INSERT", "WITH"].contains(&first), "{}: {code}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "{seen} files");
}

#[tokio::test]
async fn a_cluster_that_cannot_hold_the_tables_is_refused_in_words() {
    let node = Node::start().await;
    let look = async |database: &str, cluster: &str| {
        let client = app::clickhouse(&node.args("default", cluster));
        Layout::of(&client, database).await
    };
    assert_eq!(look("fresh", "").await.unwrap(), Layout::Single);
    let sharded = |cluster: &str, shards| Layout::Sharded {
        cluster: cluster.to_owned(),
        database: "fresh".to_owned(),
        shards,
    };
    assert_eq!(look("fresh", "pair").await.unwrap(), sharded("pair", 2));
    let text = look("fresh", "main").await.unwrap_err().to_string();
    assert!(text.contains("no cluster \"main\"") && text.contains("TIDEMARK_CLICKHOUSE_CLUSTER"), "{text}");

    for (cluster, told) in [("thrice", "3 replicas"), ("apart", "without internal_replication")] {
        let text = look("fresh", cluster).await.unwrap_err().to_string();
        assert!(text.contains(told), "{text}");
    }

    // The number of shards stays that of the first day.
    node.database("fresh", "one").await;
    assert_eq!(look("fresh", "pair").await.unwrap(), sharded("pair", 1));
    node.database("cut", "pair").await;
    let text = look("cut", "one").await.unwrap_err().to_string();
    assert!(text.contains("cut into 2 shards") && text.contains("has 1"), "{text}");

    let client = app::clickhouse(&node.args("default", ""));
    client.query_raw("create database plain").execute().await.unwrap();
    client.clone().with_database("plain").query_raw(RECORDS).execute().await.unwrap();
    let text = look("plain", "one").await.unwrap_err().to_string();
    assert!(text.contains("single server") && text.contains("TIDEMARK_CLICKHOUSE_DATABASE"), "{text}");
    node.spawned.stop().await.unwrap();
}

/// Answers are the same, whether ClickHouse is a server or a cluster: first everything that the outbox keeps is brought to
/// both, then the history is copied as docs/growing.md says and the cluster goes on from there.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_one_node_says_what_a_single_server_says() {
    let node = Node::start().await;
    let name = format!("relay_{}", Uuid::now_v7().simple());
    let mut own = OwnStores::create_on(node.args(&name, "")).await;
    let single = own.stores.clickhouse.clone();
    let tenant = own.organization(3).await;
    let ago = |days: i64| Utc::now() - TimeDelta::days(days);
    let post = |account: usize| format!("{}000000", tenant.accounts[account].subject_id);

    let relay = own.relay();
    for day in (1..=6).rev() {
        for (n, account) in tenant.accounts.iter().enumerate() {
            scrape_at(own.pg(), tenant.id, *account, 4, (8 - day) * (100 + n as i64), ago(day)).await;
        }
    }
    own.applied(tenant.id).await;
    let copied_from = own.recorded().await;
    track_alone(own.pg(), tenant.id, &post(1), Utc::now()).await;
    own.applied(tenant.id).await;
    // Its history moves to a subject of its own, the rest of the account's is removed.
    delete_account(own.pg(), tenant.id, tenant.accounts[1]).await;
    scrape_at(own.pg(), tenant.id, tenant.accounts[0], 5, 900, ago(2)).await;
    own.applied(tenant.id).await;
    relay.stop().await;
    let figures = own.figures(tenant.id).await;

    let replayed = node.database(&format!("{name}_replayed"), "one").await;
    own.stores.clickhouse = replayed.clone();
    let relay = own.relay();
    eventually("everything is brought again", async || (own.recorded().await > copied_from).then_some(()))
        .await;
    own.applied(tenant.id).await;
    relay.stop().await;
    assert_eq!(own.figures(tenant.id).await, figures);

    let copied = node.database(&format!("{name}_copied"), "one").await;
    for table in TABLES.iter().filter(|table| !["relay_position", "schema_migrations"].contains(&table.name))
    {
        let copy = format!("INSERT INTO {0} SELECT * FROM {name}.{0}", table.name);
        copied.query_raw(&copy).execute().await.unwrap();
    }
    let position = format!("INSERT INTO relay_position (relay, position) VALUES ('outbox', {copied_from})");
    copied.query_raw(&position).execute().await.unwrap();
    own.stores.clickhouse = copied;
    assert_eq!(own.recorded().await, copied_from);
    let relay = own.relay();
    eventually("the rest is brought", async || (own.recorded().await > copied_from).then_some(())).await;
    own.applied(tenant.id).await;
    assert_eq!(own.figures(tenant.id).await, figures);

    // It goes on there: new facts, another move, and the rollup written anew.
    scrape_at(own.pg(), tenant.id, tenant.accounts[2], 6, 2_000, Utc::now()).await;
    track_alone(own.pg(), tenant.id, &post(2), Utc::now()).await;
    own.applied(tenant.id).await;
    delete_account(own.pg(), tenant.id, tenant.accounts[2]).await;
    own.applied(tenant.id).await;
    assert_ne!(own.figures(tenant.id).await, figures);
    let summary = rebuild::rebuild(&own.stores, &[tenant.id], false).await.unwrap();
    assert!(summary.subjects >= 3, "{summary:?}");
    let report = verify::verify(&own.stores, tenant.id, false).await.unwrap();
    assert_eq!(report.differences, []);
    assert!(report.snapshots > 20, "{report:?}");
    relay.stop().await;

    // Rows lie in the tables of the shard, and nowhere else.
    let statement =
        "SELECT countIf(name LIKE '%_local' AND total_rows > 0), countIf(engine = 'Distributed'), count()
                     FROM system.tables WHERE database = currentDatabase()";
    let (local, whole, all): (u64, u64, u64) =
        own.stores.clickhouse.query_raw(statement).fetch_one().await.unwrap();
    // No creator was made, no profile read, and nothing recorded of the schema.
    assert_eq!((local, whole, all), (5, 8, 16));
    drop((single, replayed));
    node.spawned.stop().await.unwrap();
}

#[tokio::test]
async fn replicated_tables_are_made_under_the_path_of_their_shard() {
    let node = Node::start().await;
    let client = node.database_of("replicated", "one", |statement| statement).await;
    let made: Vec<(String, String, String, String)> = client
        .query_raw(
            "SELECT table, engine, zookeeper_path, replica_name FROM system.replicas
             WHERE database = 'replicated' ORDER BY table",
        )
        .fetch_all()
        .await
        .unwrap();
    let mut expected: Vec<_> = TABLES
        .iter()
        .map(|table| {
            (
                format!("{}_local", table.name),
                "ReplicatedReplacingMergeTree".to_owned(),
                format!("/clickhouse/tables/1/replicated/{}", table.name),
                "first".to_owned(),
            )
        })
        .collect();
    expected.sort();
    assert_eq!(made, expected);
    // One over all shards has the same columns, with what is said of them.
    let differing: u64 = client
        .query_raw(
            "SELECT count() FROM
             (
                 SELECT replaceOne(table, '_local', '') AS of, position, name, type, comment, default_expression
                 FROM system.columns WHERE database = 'replicated'
                 GROUP BY ALL HAVING count() <> 2
             )",
        )
        .fetch_one()
        .await
        .unwrap();
    assert_eq!(differing, 0);
    node.spawned.stop().await.unwrap();
}

/// Both shards of `pair` are the same table: what is there once came from one of them, and a total of both is twice it.
#[tokio::test]
async fn shards_are_asked_for_their_subjects_and_added_up() {
    let node = Node::start().await;
    let client = node.database("pair", "pair").await;
    let org = Uuid::now_v7();
    for rows in [
        "INSERT INTO video_snapshots_local (org_id, subject_id, video_id, date, observed_at)
         SELECT {org:UUID}, number % 10, number, today() - 1, now64(6) - 86400 FROM numbers(100)",
        "INSERT INTO account_daily_local
             (org_id, date, subject_id, platform, view_gain, view_base, follower_gain, observed_at, version)
         SELECT {org:UUID}, today() - number % 7, number % 10, 'tiktok', number, 1, number, now64(6), 1
         FROM numbers(70)",
    ] {
        client.query_raw(rows).param("org", org).execute().await.unwrap();
    }
    let today = Utc::now().date_naive();
    let count = async |sql: &str| {
        let query = client.query_raw(sql).param("org", org).param("subject", 3).param("video", 13);
        let query = query.param("subjects", (0..10).collect::<Vec<_>>()).param("whole_org", true);
        let query = query.param("deleted", Vec::<u64>::new()).param("first", 0).param("last", 9);
        let query =
            query.param("platform", "").param("start", today - TimeDelta::days(4)).param("end", today);
        query.fetch_one::<i64>().await.unwrap()
    };
    for (condition, found) in [
        ("date <= today()", 200),
        ("subject_id = {subject:UInt64}", 10),
        ("subject_id IN (3)", 10),
        ("subject_id IN {subjects:Array(UInt64)}", 200),
    ] {
        let sql = format!(
            "SELECT toInt64(count()) FROM video_snapshots WHERE org_id = {{org:UUID}} AND {condition}"
        );
        assert_eq!(count(&sql).await, found, "{condition}");
    }
    let of_video = include_str!("../../src/store/analytics/video_daily.sql");
    assert_eq!(count(&format!("SELECT toInt64(count()) FROM (\n{of_video}\n)")).await, 1);
    for (total, statement) in [
        ("sum(views)", include_str!("../../src/store/analytics/daily.sql")),
        ("sum(views)", include_str!("../../src/store/analytics/subject_totals.sql")),
        ("assumeNotNull(sum(followers))", include_str!("../../src/store/analytics/levels.sql")),
        (
            "assumeNotNull(sum(gains[1] + counts[1]))",
            include_str!("../../src/store/analytics/subject_daily.sql"),
        ),
    ] {
        let both = format!("SELECT {total} FROM (\n{statement}\n)");
        let one = count(&both.replace("FROM account_daily ", "FROM account_daily_local ")).await;
        assert!(one > 0, "{statement}");
        assert_eq!(count(&both).await, 2 * one, "{statement}");
    }

    // One that is away makes no total of the rest.
    let away = node.database("away", "away").await;
    let error = facts::recorded(&away).await.unwrap_err();
    assert!(error.is_outage(), "{error}");
    node.spawned.stop().await.unwrap();
}
