//! The rollup of videos is filled with what a version without it delivered, before an upgrade and after a downgrade.

use chrono::{TimeDelta, Utc};
use tidemark::rollup::verify;
use tidemark::store::clickhouse::history_writer;
use tidemark::store::observations::AccountRef;
use uuid::Uuid;

use crate::harness::{IsolatedStores, wait_until};
use crate::setup::{Tenant, delete_account, scrape_at};

async fn execute(stores: &IsolatedStores, statement: &str) {
    stores.databases.clickhouse.query_raw(statement).execute().await.unwrap();
}

async fn assert_rollups_match(stores: &IsolatedStores, tenant: &Tenant) {
    let report = verify::verify(&stores.databases, tenant.id, false).await.unwrap();
    assert_eq!(report.differences, []);
}

async fn fetch_generation(stores: &IsolatedStores) -> i64 {
    sqlx::query_scalar("select generation from clickhouse_generation").fetch_one(stores.pg()).await.unwrap()
}

async fn scrape_days(stores: &IsolatedStores, tenant: Uuid, accounts: &[AccountRef], days_ago: [i64; 2]) {
    for day in days_ago {
        for account in accounts {
            let at = Utc::now() - TimeDelta::days(day);
            scrape_at(stores.pg(), tenant, *account, 3, 1_000 - 10 * day, at).await;
        }
    }
}

/// The relay of a version without the rollup records deliveries of the outbox only.
async fn forget_rollup(stores: &IsolatedStores) {
    execute(
        stores,
        "alter table relay_position delete where relay = 'video_daily' settings mutations_sync = 2",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rollup_of_videos_is_filled_after_an_upgrade() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(40).await;
    let relay = stores.start_relay();
    scrape_days(&stores, tenant.id, &tenant.accounts, [3, 1]).await;
    stores.wait_applied(tenant.id).await;
    assert!(history_writer::is_video_rollup_complete(&stores.databases.clickhouse).await.unwrap());
    relay.stop().await;
    let (state, generation) = (stores.clickhouse_state(tenant.id).await, fetch_generation(&stores).await);

    // Meanwhile an account is deleted. The older version leaves outdated rows, and none of what it delivers.
    delete_account(stores.pg(), tenant.id, tenant.accounts[0]).await;
    forget_rollup(&stores).await;
    let outdated =
        "insert into video_daily select * replace (view_gain + 1 as view_gain) from video_daily final
                    where video_id % 2 = 0";
    execute(&stores, outdated).await;
    execute(&stores, "alter table video_daily delete where video_id % 3 = 0 settings mutations_sync = 2")
        .await;
    assert_ne!(stores.clickhouse_state(tenant.id).await, state);

    let relay = stores.start_relay();
    wait_until("the rollup of videos is filled", async || {
        history_writer::is_video_rollup_complete(&stores.databases.clickhouse).await.ok()?.then_some(())
    })
    .await;
    stores.wait_applied(tenant.id).await;
    assert_rollups_match(&stores, &tenant).await;
    assert!(fetch_generation(&stores).await > generation, "cached responses are current");

    // Deliveries keep it complete, and the next relay has nothing to fill.
    scrape_days(&stores, tenant.id, &tenant.accounts[1..], [2, 0]).await;
    stores.wait_applied(tenant.id).await;
    assert!(history_writer::is_video_rollup_complete(&stores.databases.clickhouse).await.unwrap());
    assert_rollups_match(&stores, &tenant).await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_of_an_older_version_leave_the_rollup_incomplete() {
    let stores = IsolatedStores::create().await;
    let clickhouse = &stores.databases.clickhouse;
    assert!(history_writer::is_video_rollup_complete(clickhouse).await.unwrap(), "nothing was delivered");
    assert!(history_writer::record_delivery(clickhouse, 0, 5).await.unwrap());
    assert!(history_writer::is_video_rollup_complete(clickhouse).await.unwrap());
    execute(&stores, "insert into relay_position (relay, delivery) values ('outbox', 6)").await;
    assert!(!history_writer::is_video_rollup_complete(clickhouse).await.unwrap());
    assert!(history_writer::record_delivery(clickhouse, 6, 7).await.unwrap());
    assert!(
        !history_writer::is_video_rollup_complete(clickhouse).await.unwrap(),
        "delivery 6 is still missing"
    );
    history_writer::record_complete_video_rollup(clickhouse).await.unwrap();
    assert!(history_writer::is_video_rollup_complete(clickhouse).await.unwrap());
}
