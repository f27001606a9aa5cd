//! The texts of statements for a cluster, checked by ClickHouse's parser.

use std::collections::BTreeSet;

use clickhouse::Client;
use harness::{Stack, command};
use tidemark::store::clickhouse::cluster::{self, Layout};
use tidemark::store::clickhouse::diagnosis::WRITTEN_TABLES;
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

/// The text between two others.
fn between<'t>(text: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("{start} is not in {text}"));
    rest.split_once(end).unwrap_or_else(|| panic!("{end} is not in {rest}")).0
}

/// Compares a statement of a schema with its two forms for a cluster, each in one line. Returns the table.
fn assert_same_schema(single: &str, local: &str, distributed: &str) -> String {
    for statement in [local, distributed] {
        assert!(statement.contains(" ON CLUSTER `main`"), "{statement}");
        assert!(!statement.contains("{database}") && !statement.contains("/*"), "{statement}");
    }
    let table = between(local, "`tidemark`.`", "_local` ON CLUSTER `main`").to_owned();
    let on_cluster = format!("`tidemark`.`{table}_local` ON CLUSTER `main`");
    if single.contains("ALTER TABLE") {
        // Columns are added to both tables.
        assert_eq!(local.replace(&on_cluster, &table), single);
        let added = distributed.replace(&format!("`tidemark`.{table} ON CLUSTER `main`"), &table);
        assert!(single.ends_with(&added), "{single}: {added}");
        return table;
    }
    // The shard's table has everything else of the statement.
    let path = format!("'/clickhouse/tables/{{shard}}/tidemark/{table}', '{{replica}}'");
    let engine = local.replace(&on_cluster, &table).replace("ENGINE = Replicated", "ENGINE = ");
    assert_eq!(engine.replace(&format!("{path}, "), "").replace(&path, ""), single);
    assert!(local.contains("ENGINE = ReplicatedReplacingMergeTree(") && local.contains(&path), "{local}");

    let name = format!("EXISTS `tidemark`.{table} ON CLUSTER");
    assert!(distributed.contains(&name) && distributed.contains(&format!("AS `tidemark`.{table}_local")));
    let engine = format!("ENGINE = Distributed('main', 'tidemark', '{table}_local', cityHash64(");
    let columns = between(distributed, &engine, ") % 4)");
    // Rows that replace each other have the same key, so the sharding key has to be part of it. All of a subject is together.
    let key = local.split_once("ORDER BY ").unwrap().1.split(" SETTINGS ").next().unwrap_or_default();
    let key = key.trim_matches(['(', ')']);
    let words = |text: &str| -> BTreeSet<String> { text.split(", ").map(str::to_owned).collect() };
    assert!(words(columns).is_subset(&words(key)), "{table}: {columns} of {key}");
    assert!(columns == "org_id, subject_id" || !words(key).contains("subject_id"), "{table}: {columns}");
    let comment = |text: &str| text.rsplit_once(" COMMENT ").map(|(_, comment)| comment.to_owned());
    assert_eq!(comment(distributed), comment(local));
    table
}

#[tokio::test]
async fn each_table_has_a_replicated_and_a_distributed_form() {
    let client = &Stack::shared().databases.clickhouse;
    let layout = Layout::Sharded { cluster: "main".into(), database: "tidemark".into(), shards: 4 };
    let mut tables = BTreeSet::new();
    let added_column = "ALTER TABLE videos/*_local*/ /*cluster:ON CLUSTER `{cluster}`*/ ADD COLUMN x UInt8;\n\
                        /*cluster:\nALTER TABLE `{database}`.videos ON CLUSTER `{cluster}` ADD COLUMN x UInt8;*/\n";
    for file in schemas().into_iter().chain([added_column.to_owned()]) {
        let (single, sharded) = (Layout::Single.statements(&file), layout.statements(&file));
        assert_eq!(sharded.len(), 2 * single.len(), "{file}");
        for (single, sharded) in single.iter().zip(sharded.chunks(2)) {
            for statement in sharded {
                assert_parses(client, statement).await;
            }
            let in_one_line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let [single, local, distributed] = [single, &sharded[0], &sharded[1]].map(in_one_line);
            tables.insert(assert_same_schema(&single, &local, &distributed));
        }
    }
    assert_eq!(
        tables,
        WRITTEN_TABLES.iter().chain(&["schema_migrations"]).map(|name| (*name).to_owned()).collect()
    );
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

fn cluster_client() -> Client {
    cluster::configure(Client::default().with_database("tidemark"), "main")
}

#[tokio::test]
async fn pending_writes_are_counted_on_all_nodes() {
    let sql = include_str!("../../../src/store/clickhouse/history_writer/count_pending_writes.sql");
    let statement = cluster::render(&cluster_client(), sql);
    assert_parses(&Stack::shared().databases.clickhouse, &statement).await;
    for table in ["system.processes", "system.replicas"] {
        assert!(statement.contains(&format!("clusterAllReplicas('main', {table})")), "{statement}");
    }
}

/// A Distributed table supports no mutations and no OPTIMIZE: they run on the tables of all shards.
#[test]
fn changes_run_on_the_tables_of_all_shards() {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // Unit tests have rendered statements; logins are of the embedded engine, which is no cluster.
            if ["cluster/mod.rs", "logins.rs"]
                .iter()
                .any(|name| path.ends_with(format!("store/clickhouse/{name}")))
            {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            for change in ["ALTER TABLE ", "DELETE FROM ", "OPTIMIZE TABLE ", "TRUNCATE TABLE "] {
                for statement in text.split(change).skip(1) {
                    let table = statement.split(' ').next().unwrap_or_default();
                    let expected = format!("{table} /*cluster:ON CLUSTER ");
                    let is_local = table.ends_with("/*_local*/") && statement.starts_with(&expected);
                    assert!(is_local, "{}: {change}{table}", path.display());
                    count += 1;
                }
            }
        }
    }
    assert!(count >= 4, "{count} statements");
}
