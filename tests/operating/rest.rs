//! Processes at rest ask Postgres rarely, and react at once nevertheless.

use std::cell::Cell;
use std::time::{Duration, Instant};

use harness::relay::scrape;
use harness::{IsolatedStores, wait_until};
use sqlx::PgPool;

/// Heartbeats of a search index at rest, one in five seconds. Postgres counts transactions of a session up to ten seconds later.
const AWAITED_HEARTBEATS: usize = 3;
const COUNTED_HEARTBEATS: usize = 2;
/// Of an API process and a tracker together.
const MAX_TRANSACTIONS_PER_SECOND: f64 = 12.0;

/// Waits for heartbeats of the search index, and returns how often it asked.
async fn wait_for_heartbeats(pg: &PgPool, count: usize) -> u32 {
    let (polls, mut last) = (Cell::new(0), None);
    for _ in 0..=count {
        let next = wait_until("the search index has another heartbeat", async || {
            let seen_at: Option<f64> =
                sqlx::query_scalar("select extract(epoch from max(seen_at))::float8 from search_followers")
                    .fetch_one(pg)
                    .await
                    .unwrap();
            polls.set(polls.get() + 1);
            seen_at.filter(|_| seen_at != last)
        });
        last = Some(next.await);
    }
    polls.get()
}

/// The transactions of the database, and the seconds since a time.
async fn count_transactions(pg: &PgPool) -> (i64, f64) {
    let count = "select xact_commit + xact_rollback, extract(epoch from clock_timestamp())::float8
                 from pg_stat_database where datname = current_database()";
    sqlx::query_as(count).fetch_one(pg).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_at_rest_ask_postgres_rarely_and_react_at_once() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let (_api, _) = stores.serve(&[]);
    let _tracker = stores.track(&[]);
    let account = tenant.accounts[0];
    scrape(stores.pg(), tenant.id, account, 2, 100).await;
    stores.wait_applied(tenant.id).await;

    wait_for_heartbeats(stores.pg(), AWAITED_HEARTBEATS).await;
    let (before, began) = count_transactions(stores.pg()).await;
    let polls = wait_for_heartbeats(stores.pg(), COUNTED_HEARTBEATS).await;
    let (after, ended) = count_transactions(stores.pg()).await;
    let rate = (after - before - i64::from(polls)) as f64 / (ended - began);
    assert!(rate < MAX_TRANSACTIONS_PER_SECOND, "{rate} transactions a second at rest");

    // Without notifications, each would wait for the next look of the relay, and then of the index.
    let started = Instant::now();
    for views in [200, 300, 400, 500] {
        scrape(stores.pg(), tenant.id, account, 2, views).await;
        stores.wait_applied(tenant.id).await;
    }
    assert!(started.elapsed() < Duration::from_secs(10), "{:?} for four scrapes", started.elapsed());
}
