//! The statements on an engine that is configured as a cluster.

use chrono::{Days, TimeDelta};
use clickhouse::Client;
use harness::{IsolatedStores, wait_until};
use tidemark::rollup::{rebuild, verify};
use tidemark::store::clickhouse::client;
use tidemark::store::clickhouse::cluster::Layout;
use tidemark::store::clickhouse::diagnosis::WRITTEN_TABLES;
use tidemark::store::clickhouse::history_writer;
use tidemark::store::lifecycle::retention;
use tidemark::store::lifecycle::subject_range::SubjectRange;
use tidemark::store::migrate::CREATE_SCHEMA_MIGRATIONS;
use uuid::Uuid;

use super::Node;
use crate::retention::assert_compaction_is_waited_for;
use harness::relay::{delete_account, scrape_at, track_individually};

#[tokio::test]
async fn unsupported_cluster_is_rejected_with_its_reason() {
    let node = Node::start();
    let detect = async |database: &str, cluster: &str| {
        let client = client::connect(&node.args("default", cluster));
        Layout::detect(&client, database).await
    };
    assert_eq!(detect("fresh", "").await.unwrap(), Layout::Single);
    let sharded = |cluster: &str, shards| Layout::Sharded {
        cluster: cluster.to_owned(),
        database: "fresh".to_owned(),
        shards,
    };
    assert_eq!(detect("fresh", "pair").await.unwrap(), sharded("pair", 2));
    let text = detect("fresh", "main").await.unwrap_err().to_string();
    assert!(text.contains("no cluster \"main\"") && text.contains("TIDEMARK_CLICKHOUSE_CLUSTER"), "{text}");

    for (cluster, reason) in [("thrice", "3 replicas"), ("apart", "lacks internal_replication")] {
        let text = detect("fresh", cluster).await.unwrap_err().to_string();
        assert!(text.contains(reason), "{text}");
    }

    // The number of shards is fixed by the first tables.
    node.database("fresh", "one").await;
    assert_eq!(detect("fresh", "pair").await.unwrap(), sharded("pair", 1));
    node.database("cut", "pair").await;
    let text = detect("cut", "one").await.unwrap_err().to_string();
    assert!(text.contains("have 2 shards") && text.contains("has 1"), "{text}");

    let client = client::connect(&node.args("default", ""));
    client.query_raw("create database plain").execute().await.unwrap();
    for statement in Layout::Single.statements(CREATE_SCHEMA_MIGRATIONS) {
        client.clone().with_database("plain").query_raw(&statement).execute().await.unwrap();
    }
    let text = detect("plain", "one").await.unwrap_err().to_string();
    assert!(text.contains("single server") && text.contains("TIDEMARK_CLICKHOUSE_DATABASE"), "{text}");
    node.stop().await;
}

/// First the outbox is replayed to a cluster, then the history is copied to one as docs/growing.md says, and the relay
/// continues there.
#[tokio::test(flavor = "multi_thread")]
async fn cluster_of_one_node_agrees_with_a_single_server() {
    let node = Node::start();
    let name = format!("relay_{}", Uuid::now_v7().simple());
    let mut stores = IsolatedStores::create_on(node.args(&name, "")).await;
    let single = stores.databases.clickhouse.clone();
    let tenant = stores.create_tenant(3).await;
    let ago = |days: i64| harness::now() - TimeDelta::days(days);
    let post = |account: usize| format!("{}000000", tenant.accounts[account].subject_id);

    let relay = stores.start_relay();
    for day in (1..=6).rev() {
        for (n, account) in tenant.accounts.iter().enumerate() {
            scrape_at(stores.pg(), tenant.id, *account, 4, (8 - day) * (100 + n as i64), ago(day)).await;
        }
    }
    stores.wait_applied(tenant.id).await;
    let copied_from = stores.last_delivery().await;
    track_individually(stores.pg(), tenant.id, &post(1), harness::now()).await;
    stores.wait_applied(tenant.id).await;
    // The post's history moves to its own subject, the rest of the account's history is removed.
    delete_account(stores.pg(), tenant.id, tenant.accounts[1]).await;
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 5, 900, ago(2)).await;
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    let state = stores.clickhouse_state(tenant.id).await;

    let replayed = node.database(&format!("{name}_replayed"), "one").await;
    stores.databases.clickhouse = replayed.clone();
    let relay = stores.start_relay();
    wait_until("the outbox is replayed", async || (stores.last_delivery().await > copied_from).then_some(()))
        .await;
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    assert_eq!(stores.clickhouse_state(tenant.id).await, state);

    stores.databases.clickhouse = copy_history(&node, &name, copied_from).await;
    assert_eq!(stores.last_delivery().await, copied_from);
    let relay = stores.start_relay();
    wait_until("later deliveries are replayed", async || {
        (stores.last_delivery().await > copied_from).then_some(())
    })
    .await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(stores.clickhouse_state(tenant.id).await, state);

    // The relay continues there: new snapshots, another move, and a rebuild.
    scrape_at(stores.pg(), tenant.id, tenant.accounts[2], 6, 2_000, harness::now()).await;
    track_individually(stores.pg(), tenant.id, &post(2), harness::now()).await;
    stores.wait_applied(tenant.id).await;
    delete_account(stores.pg(), tenant.id, tenant.accounts[2]).await;
    stores.wait_applied(tenant.id).await;
    assert_ne!(stores.clickhouse_state(tenant.id).await, state);
    let summary = rebuild::rebuild(&stores.databases, &[tenant.id], false).await.unwrap();
    assert!(summary.subjects >= 3, "{summary:?}");
    let report = verify::verify(&stores.databases, tenant.id, false).await.unwrap();
    assert_eq!(report.differences, []);
    assert!(report.snapshots > 20, "{report:?}");
    relay.stop().await;

    assert_older_history_is_compacted(&stores, tenant.id).await;
    assert_rows_are_on_the_shard(&stores.databases.clickhouse).await;
    drop((single, replayed));
    node.stop().await;
}

/// Copies a database to a cluster of one node as docs/growing.md says, with the delivery up to which it was copied.
async fn copy_history(node: &Node, name: &str, delivery: i64) -> Client {
    let copied = node.database(&format!("{name}_copied"), "one").await;
    for table in WRITTEN_TABLES.iter().filter(|table| **table != "relay_position") {
        let copy = format!("INSERT INTO {table} SELECT * FROM {name}.{table}");
        copied.query_raw(&copy).execute().await.unwrap();
    }
    let position = format!("INSERT INTO relay_position (relay, delivery) VALUES ('outbox', {delivery})");
    copied.query_raw(&position).execute().await.unwrap();
    copied
}

/// Each shard compacts older history. Deleting the rest needs several nodes.
async fn assert_older_history_is_compacted(stores: &IsolatedStores, organization: Uuid) {
    let client = &stores.databases.clickhouse;
    let since = harness::now().date_naive() - Days::new(2);
    let range = SubjectRange::all_subjects(&[organization]);
    let subjects = retention::find_uncompacted_subjects(client, since, &range).await.unwrap();
    retention::compact(client, since, &subjects).await.unwrap();
    let cleared =
        "SELECT count() FROM video_snapshots FINAL WHERE date < {since:Date} AND view_count IS NULL";
    let (cleared, first): (u64, u64) = (
        client.query_raw(cleared).param("since", since).fetch_one().await.unwrap(),
        client
            .query_raw(
                "SELECT uniqExact(subject_id, video_id) FROM video_snapshots FINAL WHERE date < {since:Date}",
            )
            .param("since", since)
            .fetch_one()
            .await
            .unwrap(),
    );
    assert!(cleared == first && cleared > 5, "{cleared} of {first}");
}

async fn assert_rows_are_on_the_shard(client: &Client) {
    let statement =
        "SELECT countIf(name LIKE '%_local' AND total_rows > 0), countIf(engine = 'Distributed'), count()
                     FROM system.tables WHERE database = currentDatabase()";
    let (with_rows, distributed, all): (u64, u64, u64) =
        client.query_raw(statement).fetch_one().await.unwrap();
    // The tables of creators, collections, account snapshots and migrations are empty.
    assert_eq!((with_rows, distributed, all), (7, 11, 22));
}

#[tokio::test]
async fn replicated_tables_have_the_path_of_their_shard() {
    let node = Node::start();
    // Its replicated tables are read-only: columns cannot be added.
    let adapt =
        |statement: String| if statement.contains("ALTER TABLE") { "SELECT 1".to_owned() } else { statement };
    let client = node.database_with("replicated", "one", adapt).await;
    let created: Vec<(String, String, String, String)> = client
        .query_raw(
            "SELECT table, engine, zookeeper_path, replica_name FROM system.replicas
             WHERE database = 'replicated' ORDER BY table",
        )
        .fetch_all()
        .await
        .unwrap();
    let mut expected: Vec<_> = WRITTEN_TABLES
        .iter()
        .chain(&["schema_migrations"])
        .map(|table| {
            (
                format!("{table}_local"),
                "ReplicatedReplacingMergeTree".to_owned(),
                format!("/clickhouse/tables/1/replicated/{table}"),
                "first".to_owned(),
            )
        })
        .collect();
    expected.sort();
    assert_eq!(created, expected);
    // The Distributed table has the same columns and comments.
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
    // Killed when it is dropped: an engine with its own Keeper does not always exit cleanly.
}

#[tokio::test]
async fn running_compaction_is_waited_for_on_a_cluster() {
    let node = Node::start();
    let (compacting, other) = (node.database("compacting", "one").await, node.database("other", "one").await);
    assert_compaction_is_waited_for(&compacting, &other).await;
    node.stop().await;
}

/// Both shards of `pair` are the same table: a row that appears once is from one shard, and a total of both is doubled.
#[tokio::test]
async fn only_the_shards_of_a_subject_are_queried() {
    let node = Node::start();
    let client = node.database("pair", "pair").await;
    let org = Uuid::now_v7();
    let today = harness::now().date_naive();
    for rows in [
        "INSERT INTO video_snapshots_local (org_id, subject_id, video_id, date, observed_at)
         SELECT {org:UUID}, number % 10, number, {today:Date} - 1, now64(6) - 86400 FROM numbers(100)",
        "INSERT INTO account_daily_local
             (org_id, date, subject_id, platform, view_gain, view_base, follower_gain, observed_at, version)
         SELECT {org:UUID}, {today:Date} - number % 7, number % 10, 'tiktok', number, 1, number, now64(6), 1
         FROM numbers(70)",
    ] {
        client.query_raw(rows).param("org", org).param("today", today).execute().await.unwrap();
    }
    let count = async |sql: &str| {
        let query = client.query_raw(sql).param("org", org).param("subject", 3).param("video", 13);
        let query = query.param("subjects", (0..10).collect::<Vec<_>>()).param("groups", [0; 10]);
        let query = query
            .param("platform", "")
            .param("removed", Vec::<u64>::new())
            .param("first", 0)
            .param("last", i64::MAX);
        let query = query.param("start", today - TimeDelta::days(4)).param("end", today);
        let query = query.param("current", today).param("first_day", "1975-01-01");
        query.fetch_one::<i64>().await.unwrap()
    };
    for (condition, found) in [
        ("date <= {end:Date}", 200),
        ("subject_id = {subject:UInt64}", 10),
        ("subject_id IN (3)", 10),
        ("subject_id IN {subjects:Array(UInt64)}", 200),
    ] {
        let sql = format!(
            "SELECT toInt64(count()) FROM video_snapshots WHERE org_id = {{org:UUID}} AND {condition}"
        );
        assert_eq!(count(&sql).await, found, "{condition}");
    }
    let total_of = |total: &str, statement: &str| format!("SELECT {total} FROM (\n{statement}\n)");
    let video_daily = include_str!("../../../src/store/analytics/video_daily.sql");
    assert_eq!(count(&total_of("toInt64(count())", video_daily)).await, 1);
    for (total, statement) in [
        (
            "assumeNotNull(sum(gains.1))",
            include_str!("../../../src/store/analytics/rollup/gains_of_organization.sql"),
        ),
        (
            "assumeNotNull(sum(gains.1))",
            include_str!("../../../src/store/analytics/rollup/totals_of_subjects.sql"),
        ),
        (
            "assumeNotNull(sum(step))",
            include_str!("../../../src/store/analytics/rollup/followers_of_organization.sql"),
        ),
        (
            "assumeNotNull(sum(gains[1] + counts[1]))",
            include_str!("../../../src/store/analytics/subject_daily.sql"),
        ),
    ] {
        let both = total_of(total, statement);
        let one = count(&both.replace("FROM account_daily ", "FROM account_daily_local ")).await;
        assert!(one > 0, "{statement}");
        assert_eq!(count(&both).await, 2 * one, "{statement}");
    }

    // An unreachable shard is an error, not a partial total.
    let away = node.database("away", "away").await;
    let error = history_writer::last_delivery(&away).await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    node.stop().await;
}
