//! The rollups of videos are filled with what a version without one delivered, before an upgrade and after a downgrade.

use chrono::TimeDelta;
use harness::{IsolatedStores, wait_until};
use tidemark::model::observed::VideoLatest;
use tidemark::rollup::verify;
use tidemark::store::Write;
use tidemark::store::clickhouse::history_writer;
use tidemark::store::observations::{AccountRef, VideoOrigin, save_videos};
use uuid::Uuid;

use harness::relay::{Tenant, delete_account, observed_post, scrape_posted};

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
            let at = harness::now() - TimeDelta::days(day);
            let posted = Some(harness::now() - TimeDelta::days(4));
            scrape_posted(stores.pg(), tenant, *account, (3, 1_000 - 10 * day), at, posted).await;
        }
    }
}

/// Commits an individually tracked video without an observation.
async fn describe_video(stores: &IsolatedStores, tenant: Uuid) {
    let now = harness::now();
    let mut video =
        observed_post(VideoOrigin::Individual { is_active: false }, "7000000001".to_owned(), 0, now);
    video.latest = VideoLatest::default();
    video.latest.media_type.record(Some("VIDEO".to_owned()), now);
    video.observations.clear();
    let mut write = Write::begin(stores.pg(), tenant).await.unwrap();
    save_videos(&mut write, now, vec![video]).await.unwrap();
    write.commit().await.unwrap();
}

/// The relay of a version without a rollup does not record it.
async fn forget_rollup(stores: &IsolatedStores, rollup: &str) {
    let forget =
        format!("alter table relay_position delete where relay = '{rollup}' settings mutations_sync = 2");
    execute(stores, &forget).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rollups_of_videos_are_filled_after_an_upgrade() {
    for rollup in ["video_daily", "video_ages"] {
        rollup_is_filled_after_an_upgrade(rollup).await;
    }
}

async fn rollup_is_filled_after_an_upgrade(rollup: &str) {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(40).await;
    let relay = stores.start_relay();
    scrape_days(&stores, tenant.id, &tenant.accounts, [3, 1]).await;
    describe_video(&stores, tenant.id).await;
    stores.wait_applied(tenant.id).await;
    assert!(history_writer::are_video_rollups_complete(&stores.databases.clickhouse).await.unwrap());
    relay.stop().await;
    let (state, generation) = (stores.clickhouse_state(tenant.id).await, fetch_generation(&stores).await);

    // Meanwhile an account is deleted. The older version leaves outdated rows, and none of what it delivers.
    delete_account(stores.pg(), tenant.id, tenant.accounts[0]).await;
    forget_rollup(&stores, rollup).await;
    let column = if rollup == "video_daily" { "view_gain" } else { "views_1" };
    let outdated = format!(
        "insert into {rollup} select * replace ({column} + 1 as {column}) from {rollup} final where video_id % 2 = 0"
    );
    execute(&stores, &outdated).await;
    let missing = format!("alter table {rollup} delete where video_id % 3 = 0 settings mutations_sync = 2");
    execute(&stores, &missing).await;
    execute(&stores, "alter table videos update media_type = null where 1 settings mutations_sync = 2").await;
    assert_ne!(stores.clickhouse_state(tenant.id).await, state);

    let relay = stores.start_relay();
    wait_until("the rollups of videos are filled", async || {
        history_writer::are_video_rollups_complete(&stores.databases.clickhouse).await.ok()?.then_some(())
    })
    .await;
    stores.wait_applied(tenant.id).await;
    assert_rollups_match(&stores, &tenant).await;
    assert!(fetch_generation(&stores).await > generation, "cached responses are current");

    // Deliveries keep it complete, and the next relay has nothing to fill.
    scrape_days(&stores, tenant.id, &tenant.accounts[1..], [2, 0]).await;
    stores.wait_applied(tenant.id).await;
    assert!(history_writer::are_video_rollups_complete(&stores.databases.clickhouse).await.unwrap());
    assert_rollups_match(&stores, &tenant).await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_of_an_older_version_leave_the_rollup_incomplete() {
    let stores = IsolatedStores::create().await;
    let clickhouse = &stores.databases.clickhouse;
    assert!(history_writer::are_video_rollups_complete(clickhouse).await.unwrap(), "nothing was delivered");
    assert!(history_writer::record_delivery(clickhouse, 0, 5).await.unwrap());
    assert!(history_writer::are_video_rollups_complete(clickhouse).await.unwrap());
    execute(&stores, "insert into relay_position (relay, delivery) values ('outbox', 6)").await;
    assert!(!history_writer::are_video_rollups_complete(clickhouse).await.unwrap());
    assert!(history_writer::record_delivery(clickhouse, 6, 7).await.unwrap());
    assert!(
        !history_writer::are_video_rollups_complete(clickhouse).await.unwrap(),
        "delivery 6 is still missing"
    );
    history_writer::record_complete_video_rollups(clickhouse).await.unwrap();
    assert!(history_writer::are_video_rollups_complete(clickhouse).await.unwrap());
}
