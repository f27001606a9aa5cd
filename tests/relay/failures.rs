//! Isolation of failures: an unreadable row, a statement over its limits and a hanging store affect nothing else.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use harness::{ClickhouseProxy, IsolatedStores, wait_until};
use sqlx::PgPool;
use tidemark::app::Databases;
use tidemark::store::Write;
use tidemark::store::clickhouse::history_writer;
use tidemark::worker::relay;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use harness::relay::{scrape, scrape_at};

async fn count_pending(stores: &IsolatedStores, organization: Uuid) -> i64 {
    sqlx::query_scalar("select count(*) from outbox where organization_id = $1 and applied_at is null")
        .bind(organization)
        .fetch_one(stores.pg())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_row_blocks_only_its_organization() {
    let stores = IsolatedStores::create().await;
    let (blocked, other) = (stores.create_tenant(1).await, stores.create_tenant(1).await);
    scrape(stores.pg(), blocked.id, blocked.accounts[0], 3, 100).await;
    let row: i64 = sqlx::query_scalar(
        "insert into outbox (organization_id, events, since) values ($1, '\\x0909', '1970-01-01') returning position",
    )
    .bind(blocked.id)
    .fetch_one(stores.pg())
    .await
    .unwrap();
    scrape(stores.pg(), blocked.id, blocked.accounts[0], 3, 200).await;
    scrape(stores.pg(), other.id, other.accounts[0], 3, 300).await;
    let relay = stores.start_relay();
    stores.wait_applied(other.id).await;
    scrape(stores.pg(), blocked.id, blocked.accounts[0], 4, 400).await;
    scrape(stores.pg(), other.id, other.accounts[0], 4, 500).await;
    stores.wait_applied(other.id).await;
    // Earlier rows are delivered, later rows wait.
    assert_eq!(count_pending(&stores, blocked.id).await, 3);
    assert!(stores.totals(blocked.id).await.contains("views: 0"), "only the first scrape is applied");
    sqlx::query("delete from outbox where position = $1").bind(row).execute(stores.pg()).await.unwrap();
    stores.wait_applied(blocked.id).await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recomputation_over_a_query_limit_is_split() {
    let mut stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(12).await;
    let days = 3;
    for day in (0..days).rev() {
        for account in &tenant.accounts {
            let at = harness::now() - TimeDelta::days(day);
            scrape_at(stores.pg(), tenant.id, *account, 500, 100 * (days - day), at).await;
        }
    }
    let unlimited = stores.databases.clickhouse.clone();
    stores.databases.clickhouse = unlimited.clone().with_setting("max_rows_to_read", "30000");
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    stores.databases.clickhouse = unlimited;
    let gained = 12 * 500 * 100 * (days - 1);
    let gains: i64 = stores
        .databases
        .clickhouse
        .query_raw("select assumeNotNull(sum(view_gain)) from account_daily final")
        .fetch_one()
        .await
        .unwrap();
    assert_eq!(gains, gained);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_history_of_one_account_takes_little_memory() {
    let mut stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let subject = tenant.accounts[0].subject_id;
    let (videos, days) = (600_i64, 500_i64);
    let unlimited = stores.databases.clickhouse.clone();
    let history = unlimited.query_raw(
        "insert into video_snapshots (org_id, subject_id, video_id, date, observed_at, view_count)
         select {org:UUID}, {subject:UInt64}, 1000000 + intDiv(number, {days:UInt64}), today() - 1 - number % {days:UInt64} as day,
             day, 2000000 - 1000 * (number % {days:UInt64})
         from numbers({videos:UInt64} * {days:UInt64})",
    );
    let history = history.param("org", tenant.id).param("subject", subject);
    history.param("videos", videos).param("days", days).execute().await.unwrap();
    let mut write = Write::begin(stores.pg(), tenant.id).await.unwrap();
    write.record_rebuild(vec![subject], Vec::new(), Vec::new());
    write.commit().await.unwrap();
    stores.databases.clickhouse = unlimited.clone().with_setting("max_memory_usage", "100000000");
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    stores.databases.clickhouse = unlimited;
    let gains = "select assumeNotNull(sum(view_gain)) from account_daily final";
    let gains: i64 = stores.databases.clickhouse.query_raw(gains).fetch_one().await.unwrap();
    assert_eq!(gains, 1000 * (days - 1) * videos);
}

#[tokio::test(flavor = "multi_thread")]
async fn relay_stops_at_once_while_a_store_hangs() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut hanging = stores.databases.clone();
    hanging.clickhouse = hanging.clickhouse.with_url(format!("http://{address}"));
    let unreachable = PgPool::connect_lazy(&format!("postgres://nobody@{address}/nothing")).unwrap();
    for databases in [hanging, Databases { pg: unreachable, ..stores.databases.clone() }] {
        let stop = CancellationToken::new();
        let task = tokio::spawn(relay::run(databases, stop.clone()));
        // It waits for a response.
        let (_connection, _) = listener.accept().await.unwrap();
        stop.cancel();
        // The statement would end after 10 s.
        tokio::time::timeout(Duration::from_secs(9), task).await.expect("the relay stops").unwrap();
    }
    // The lock is released.
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    wait_until("the lock is free", || async {
        tidemark::store::outbox::RelayLock::try_acquire(stores.pg()).await.unwrap().map(drop)
    })
    .await;
}

/// Inserts for six seconds. No block may sleep for longer than three.
const SLOW: &str = "insert into relay_position (relay, delivery)
    select 'another', sleepEachRow(1) from numbers(6) settings max_block_size = 1";

#[tokio::test]
async fn long_wait_for_inserts_is_logged_once() {
    let stores = IsolatedStores::create().await;
    let log = Arc::new(tempfile::tempfile().unwrap());
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(Arc::clone(&log)).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let client = stores.databases.clickhouse.clone();
    let slow = tokio::spawn(async move {
        client.query_raw(SLOW).execute().await.unwrap();
    });
    let client = &stores.databases.clickhouse;
    let inserting =
        wait_until("the statement runs", || async { history_writer::longest_insert(client).await.unwrap() })
            .await;
    history_writer::wait_for_inserts(client, Duration::ZERO).await.unwrap();
    slow.await.unwrap();
    assert_eq!(history_writer::longest_insert(client).await.unwrap(), None);
    let mut text = String::new();
    (&*log).seek(SeekFrom::Start(0)).unwrap();
    (&*log).read_to_string(&mut text).unwrap();
    let warnings: Vec<_> = text.lines().filter(|line| line.contains("WARN")).collect();
    let [warning] = warnings[..] else { panic!("not logged once: {text}") };
    assert!(warning.contains(&inserting.query_id) && warning.contains("elapsed="), "{warning}");
}

#[tokio::test(flavor = "multi_thread")]
async fn relay_waits_for_statements_of_a_killed_predecessor() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let predecessor = stores.databases.clickhouse.clone();
    let slow = tokio::spawn(async move {
        predecessor.query_raw(SLOW).execute().await.unwrap();
        Instant::now()
    });
    let client = &stores.databases.clickhouse;
    wait_until("the statement runs", || async { history_writer::longest_insert(client).await.unwrap() })
        .await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    let applied = Instant::now();
    assert!(slow.await.unwrap() <= applied, "delivered before the predecessor's statement ended");
    relay.stop().await;
}

/// A relay that always has something to deliver prunes as well.
#[tokio::test(flavor = "multi_thread")]
async fn delivered_rows_are_pruned_while_others_wait() {
    let mut stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    sqlx::query("update outbox set applied_at = applied_at - interval '8 days'")
        .execute(stores.pg())
        .await
        .unwrap();
    scrape(stores.pg(), tenant.id, tenant.accounts[0], 1, 100).await;
    let proxy = ClickhouseProxy::start(&stores.connection.clickhouse_url).await;
    proxy.hold_after("INSERT+INTO+%60account_daily%60");
    stores.databases.clickhouse = stores.databases.clickhouse.clone().with_url(&proxy.url);
    let relay = stores.start_relay();
    proxy.wait_held(1).await;
    let delivered: i64 = sqlx::query_scalar("select count(*) from outbox where applied_at is not null")
        .fetch_one(stores.pg())
        .await
        .unwrap();
    assert_eq!(delivered, 0);
    proxy.hold_after("in no statement");
    proxy.release();
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
}
