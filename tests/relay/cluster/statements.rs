//! The texts of statements for a cluster, checked by ClickHouse's parser.

use std::collections::BTreeSet;

use clickhouse::Client;
use harness::{Stack, command};
use tidemark::store::clickhouse::cluster::{self, Layout, TABLES};
use tidemark::store::migrate::CREATE_SCHEMA_MIGRATIONS;
use uuid::Uuid;

use super::schemas;

async fn assert_parses(client: &Client, statement: &str) {
    // The values of parameters do not matter: syntax is checked first.
    let tree = format!("EXPLAIN AST {}", statement.trim_end());
    let rows = client
        .query_raw(&tree)
        .param("subjects", Vec::<(Uuid, u64)>::new())
        .param("since", "1970-01-01")
        .param("version", 1)
        .param("all_days", false)
        .param("org", Uuid::nil())
        .param("first", 1)
        .param("comment", "retention")
        .fetch_all::<String>()
        .await;
    let rows = rows.unwrap_or_else(|error| panic!("{error}\n{statement}"));
    assert!(rows.len() > 1, "{statement}: {rows:?}");
}

#[tokio::test]
async fn each_table_has_a_replicated_and_a_distributed_form() {
    let client = &Stack::shared().databases.clickhouse;
    let layout = Layout::Sharded { cluster: "main".into(), database: "tidemark".into(), shards: 4 };
    let mut tables = BTreeSet::new();
    for text in schemas() {
        assert_eq!(Layout::Single.render(&text).unwrap(), [text.as_str()], "changed for a single server");
        let statements = layout.render(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let [local, distributed] = &statements[..] else { panic!("{text}: {statements:?}") };
        for statement in &statements {
            assert!(statement.contains(" ON CLUSTER `main`"), "{statement}");
            assert_parses(client, statement).await;
        }
        let table = TABLES.iter().find(|table| local.contains(&format!("`tidemark`.`{}_local`", table.name)));
        let table = table.unwrap_or_else(|| panic!("a table is not in TABLES: {local}"));
        tables.insert(table.name);
        let replicated = format!(
            "ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{{shard}}/tidemark/{}', '{{replica}}'",
            table.name
        );
        assert!(local.to_lowercase().contains(&replicated.to_lowercase()), "{local}");
        let engine =
            format!("Distributed('main', 'tidemark', '{}_local', {} % 4)", table.name, table.sharding_key);
        assert!(distributed.contains(&engine), "{distributed}");
        assert!(distributed.contains(&format!("AS `tidemark`.`{}_local`", table.name)), "{distributed}");
        // Rows that replace each other have the same key, so the sharding key has to be part of it.
        let lower = text.to_lowercase();
        let key = lower.rsplit_once("order by ").unwrap().1.lines().next().unwrap();
        let words = |text: &str| -> BTreeSet<String> {
            text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned).collect()
        };
        let columns = table.sharding_key.strip_prefix("cityHash64").unwrap();
        assert!(
            words(columns).is_subset(&words(&format!("({key})"))),
            "{}: {} of {key}",
            table.name,
            table.sharding_key
        );
        // The shard's table has everything else of the statement.
        if text != CREATE_SCHEMA_MIGRATIONS {
            let named = format!("EXISTS `tidemark`.`{}_local` ON CLUSTER `main`\n", table.name);
            let expected = text.replacen(&format!("EXISTS {}\n", table.name), &named, 1).replacen(
                "ENGINE = ReplacingMergeTree(",
                &format!("{replicated}, "),
                1,
            );
            assert_eq!(*local, expected);
        }
    }
    assert_eq!(tables, TABLES.iter().map(|table| table.name).collect(), "TABLES has a table without a file");
}

#[test]
fn cluster_names_with_quotes_are_rejected() {
    for name in ["a'b", "a`", "{cluster}"] {
        let output = command().args(["migrate", "--clickhouse-cluster", name]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("letters, digits, underscores and hyphens"), "{text}");
    }
}

#[tokio::test]
async fn statements_adapted_for_a_cluster_parse() {
    let client = &Stack::shared().databases.clickhouse;
    let cluster_client = cluster::configure(Client::default().with_database("tidemark"), "main");
    for recompute in [
        include_str!("../../../src/store/clickhouse/history_writer/recompute.sql"),
        include_str!("../../../src/store/clickhouse/history_writer/recompute_videos.sql"),
        include_str!("../../../src/store/clickhouse/history_writer/recompute_ages.sql"),
    ] {
        assert_parses(client, &cluster::adapt_insert_select(&cluster_client, recompute).unwrap()).await;
    }
    assert_parses(client, &cluster::pending_writes_query(&cluster_client, "")).await;
    assert_parses(client, &cluster::commented_inserts_query(&cluster_client, "")).await;
    for change in [
        "ALTER TABLE account_daily DELETE WHERE org_id = {org:UUID} AND version >= {first:UInt64}",
        "DELETE FROM video_snapshots WHERE org_id = {org:UUID}",
        "OPTIMIZE TABLE video_snapshots FINAL",
        "TRUNCATE TABLE relay_position",
    ] {
        let change = cluster::adapt_change(&cluster_client, change).unwrap();
        assert!(change.contains("_local` ON CLUSTER `main`"), "{change}");
        assert_parses(client, &change).await;
    }
}

/// Statements that a Distributed table does not support (mutations, OPTIMIZE) have to use `cluster::adapt_change`.
#[test]
fn sql_files_contain_only_reads_and_inserts() {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store"))];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "sql") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.lines().find(|line| !line.starts_with("--")).unwrap_or_default();
                let first = code.split_whitespace().next().unwrap_or_default();
                assert!(["SELECT", "INSERT", "WITH"].contains(&first), "{}: {code}", path.display());
                count += 1;
            }
        }
    }
    assert!(count > 10, "{count} files");
}
