//! What one row or one statement can do to all others: nothing.

use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use tidemark::store::clickhouse::history_writer;
use tidemark::worker::relay;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{IsolatedStores, wait_until};
use crate::setup::{scrape, scrape_at};

async fn waiting(stores: &IsolatedStores, organization: Uuid) -> i64 {
    sqlx::query_scalar("select count(*) from outbox where organization_id = $1 and applied_at is null")
        .bind(organization)
        .fetch_one(stores.pg())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_holds_up_its_organization_alone() {
    let stores = IsolatedStores::create().await;
    let (struck, other) = (stores.create_tenant(1).await, stores.create_tenant(1).await);
    scrape(stores.pg(), struck.id, struck.accounts[0], 3, 100).await;
    let row: i64 = sqlx::query_scalar(
        "insert into outbox (organization_id, events, since) values ($1, '\\x0909', '1970-01-01') returning position",
    )
    .bind(struck.id)
    .fetch_one(stores.pg())
    .await
    .unwrap();
    scrape(stores.pg(), struck.id, struck.accounts[0], 3, 200).await;
    scrape(stores.pg(), other.id, other.accounts[0], 3, 300).await;
    let relay = stores.start_relay();
    stores.wait_applied(other.id).await;
    scrape(stores.pg(), struck.id, struck.accounts[0], 4, 400).await;
    scrape(stores.pg(), other.id, other.accounts[0], 4, 500).await;
    stores.wait_applied(other.id).await;
    // What was committed before it is delivered, what came after waits behind it.
    assert_eq!(waiting(&stores, struck.id).await, 3);
    assert!(stores.totals(struck.id).await.contains("views: 0"), "a baseline");
    sqlx::query("delete from outbox where position = $1").bind(row).execute(stores.pg()).await.unwrap();
    stores.wait_applied(struck.id).await;
    relay.stop().await;
}

/// A ClickHouse that gives a statement less than many subjects together need gets them a few at a time.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_for_one_statement_is_computed_in_several() {
    let mut stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(12).await;
    let days = 3;
    for day in (0..days).rev() {
        for account in &tenant.accounts {
            let at = Utc::now() - TimeDelta::days(day);
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
async fn a_relay_stops_at_once_while_a_store_keeps_silent() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let mut deaf = stores.databases.clone();
    deaf.clickhouse = deaf.clickhouse.with_url(format!("http://{address}"));
    for (databases, database_url) in [
        (deaf, stores.connection.database_url.clone()),
        (stores.databases.clone(), format!("postgres://nobody@{address}/nothing")),
    ] {
        let stop = CancellationToken::new();
        let task = tokio::spawn(relay::run(databases, database_url, stop.clone()));
        // It is in the middle of asking.
        let (_connection, _) = silent.accept().await.unwrap();
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(5), task).await.expect("the relay stops").unwrap();
    }
    // Nothing is left behind that keeps another one from leading.
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    wait_until("the lock is free", || async {
        let leadership =
            tidemark::store::outbox::RelayLock::try_acquire(&stores.connection.database_url).await.unwrap();
        leadership.map(drop)
    })
    .await;
}

/// Inserts for six seconds. No block may sleep for longer than three.
const SLOW: &str = "insert into relay_position (relay, delivery)
    select 'another', sleepEachRow(1) from numbers(6) settings max_block_size = 1";

#[tokio::test]
async fn what_is_waited_for_unusually_long_is_told_once() {
    let stores = IsolatedStores::create().await;
    let log = Arc::new(tempfile::tempfile().unwrap());
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(Arc::clone(&log)).finish();
    let _here = tracing::subscriber::set_default(subscriber);
    let client = stores.databases.clickhouse.clone();
    let left = tokio::spawn(async move {
        client.query_raw(SLOW).execute().await.unwrap();
    });
    let client = &stores.databases.clickhouse;
    let inserting =
        wait_until("the statement runs", || async { history_writer::longest_insert(client).await.unwrap() })
            .await;
    history_writer::wait_for_inserts(client, Duration::ZERO).await.unwrap();
    left.await.unwrap();
    assert_eq!(history_writer::longest_insert(client).await.unwrap(), None);
    let mut told = String::new();
    (&*log).seek(SeekFrom::Start(0)).unwrap();
    (&*log).read_to_string(&mut told).unwrap();
    let warnings: Vec<_> = told.lines().filter(|line| line.contains("WARN")).collect();
    let [warning] = warnings[..] else { panic!("not told once: {told}") };
    assert!(warning.contains(&inserting.query_id) && warning.contains("elapsed="), "{warning}");
}

/// What a killed relay left at work in ClickHouse must not write beside its successor.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_begins_when_its_predecessors_last_statement_has_ended() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let predecessor = stores.databases.clickhouse.clone();
    let left = tokio::spawn(async move {
        predecessor.query_raw(SLOW).execute().await.unwrap();
        Instant::now()
    });
    let client = &stores.databases.clickhouse;
    wait_until("the statement runs", || async { history_writer::longest_insert(client).await.unwrap() })
        .await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    let applied = Instant::now();
    assert!(left.await.unwrap() <= applied, "it was delivered meanwhile");
    relay.stop().await;
}
