//! A purge while the relay delivers a deletion: between its tombstones and the rollups that it recomputes from them.

use harness::{ClickhouseProxy, IsolatedStores, WAIT_TIMEOUT};
use tidemark::rollup::verify;
use tidemark::store::lifecycle::purge::{self, PurgeScope};
use tokio::time::Instant;

use super::{account_rows, count_rows, create_history, erase};
use harness::relay::delete_account;

/// Deletes an account and purges before its rollups are recomputed. Returns the numbers of tombstones of its snapshots that
/// are left then.
async fn purge_during_delivery(purge: impl AsyncFnOnce(&IsolatedStores)) -> Vec<u64> {
    let stores = IsolatedStores::create().await;
    let tenant = create_history(&stores, 2).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    let rows = account_rows(tenant.id, tenant.accounts[0].subject_id);
    assert!(count_rows(&stores, &rows).await.iter().all(|rows| *rows > 0));
    delete_account(stores.pg(), tenant.id, tenant.accounts[0]).await;
    let proxy = ClickhouseProxy::start(&stores.connection.clickhouse_url).await;
    let mut proxied = stores.clone();
    proxied.databases.clickhouse = proxied.databases.clickhouse.clone().with_url(&proxy.url);
    proxy.hold_after("-- Removes accounts.");
    let relay = proxied.start_relay();
    proxy.wait_held(1).await;
    purge(&stores).await;
    let (_, subject) = &rows[0];
    let is_tombstone = format!("{subject} and is_deleted = 1 and observed_at > '2299-01-01'");
    let tables = ["video_snapshots", "account_snapshots"].map(|table| (table, is_tombstone.clone()));
    let tombstones = count_rows(&stores, &tables).await;
    proxy.hold_after("in no statement");
    proxy.release();
    stores.wait_applied(tenant.id).await;
    let report = verify::verify(&stores.databases, tenant.id, false).await.unwrap();
    assert_eq!(report.differences, []);
    erase(&stores).await;
    relay.stop().await;
    assert_eq!(count_rows(&stores, &rows).await, vec![0; rows.len()]);
    tombstones
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_does_not_overtake_a_delivery() {
    let tombstones = purge_during_delivery(async |stores| {
        // As 0.1.0 wrote them.
        let delivered =
            "insert into video_snapshots (org_id, subject_id, video_id, date, observed_at, is_deleted)
                         values (generateUUIDv4(), 1000000, 1, today(), '2299-12-31 23:59:59.999999', 1)";
        stores.databases.clickhouse.query_raw(delivered).execute().await.unwrap();
        erase(stores).await;
        assert_eq!(count_rows(stores, &[("video_snapshots", "subject_id = 1000000".to_owned())]).await, [0]);
    })
    .await;
    assert!(tombstones.iter().all(|rows| *rows > 0), "{tombstones:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rollups_without_snapshots_are_removed() {
    let tombstones = purge_during_delivery(async |stores| {
        let scope = PurgeScope { organization: None, delivered: i64::MAX };
        let clickhouse = &stores.databases.clickhouse;
        purge::purge_removed_rows(clickhouse, scope, Instant::now() + WAIT_TIMEOUT).await.unwrap();
    })
    .await;
    assert_eq!(tombstones, [0, 0]);
}
