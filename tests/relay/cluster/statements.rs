//! The statements for a cluster as texts, and what the parser says of them.

use std::collections::BTreeSet;

use clickhouse::Client;
use tidemark::store::clickhouse::cluster::{self, Layout, TABLES};
use uuid::Uuid;

use super::schemas;
use crate::harness::{Stack, command};

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
        .param("comment", "retention")
        .fetch_all::<String>()
        .await;
    let rows = rows.unwrap_or_else(|error| panic!("{error}\n{statement}"));
    assert!(rows.len() > 1, "{statement}: {rows:?}");
}

#[tokio::test]
async fn every_file_comes_to_a_replicated_table_and_one_over_all_shards() {
    let client = &Stack::shared().databases.clickhouse;
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
    let client = &Stack::shared().databases.clickhouse;
    let there = cluster::configure(Client::default().with_database("tidemark"), "main");
    let recompute = include_str!("../../../src/store/clickhouse/history_writer/recompute.sql");
    parses(client, &cluster::insert_on_each_shard(&there, recompute)).await;
    parses(client, &cluster::pending_writes(&there, "")).await;
    parses(client, &cluster::inserts_with_comment(&there, "")).await;
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
