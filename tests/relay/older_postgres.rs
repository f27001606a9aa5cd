//! Postgres alone is restored, from a backup older than ClickHouse: reported until `tidemark rebuild` has removed what it does
//! not know.

use chrono::TimeDelta;
use harness::IsolatedStores;
use harness::relay::scrape_at;
use sqlx::AssertSqlSafe;
use tidemark::rollup::{rebuild, verify};
use tidemark::store::outbox;
use uuid::Uuid;

use super::data_loss::fetch_health;

/// Makes Postgres forget what it learned after a delivery: all accounts but one, and posts of that with greater ids.
async fn restore_older_postgres(stores: &IsolatedStores, account: Uuid, last_video: i64, delivery: i64) {
    let statements = format!(
        "delete from accounts where id <> '{account}';
         delete from videos where internal_id > {last_video};
         delete from outbox where delivery > {delivery};
         select setval('deliveries', {delivery}), setval('internal_ids', {last_video})"
    );
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(stores.pg()).await.unwrap();
}

async fn count_snapshots(stores: &IsolatedStores, organization: Uuid, days_ago: i64) -> u64 {
    let day = (harness::now() - TimeDelta::days(days_ago)).date_naive();
    let sql = "select count() from video_snapshots final where org_id = {org:UUID} and date = {day:Date}";
    let query = stores.databases.clickhouse.query_raw(sql).param("org", organization).param("day", day);
    query.fetch_one().await.unwrap()
}

/// The status and the detail of ClickHouse in the health of the service.
async fn clickhouse_health(stores: &IsolatedStores) -> (String, String) {
    let health = fetch_health(stores).await;
    let part =
        |name: &str| health["data"]["checks"]["clickhouse"][name].as_str().unwrap_or_default().to_owned();
    (part("status"), part("detail"))
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_history_is_reported_until_it_is_rebuilt() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(2).await;
    let [account, late] = [tenant.accounts[0], tenant.accounts[1]];
    let scrape = async |of, posts, views, days_ago| {
        let at = harness::now() - TimeDelta::days(days_ago);
        scrape_at(stores.pg(), tenant.id, of, posts, views, at).await;
    };
    let relay = stores.start_relay();
    scrape(account, 4, 100, 3).await;
    stores.wait_applied(tenant.id).await;
    let backup = stores.last_delivery().await;
    let last_video: i64 =
        sqlx::query_scalar("select max(internal_id) from videos").fetch_one(stores.pg()).await.unwrap();
    scrape(account, 7, 500, 1).await;
    scrape(late, 2, 500, 1).await;
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    assert_eq!(clickhouse_health(&stores).await, ("ok".to_owned(), String::new()));

    restore_older_postgres(&stores, account.id, last_video, backup).await;
    let relay = stores.start_relay();
    // Two of three posts are found again, as new records.
    scrape(account, 6, 600, 0).await;
    stores.wait_applied(tenant.id).await;
    let (status, detail) = clickhouse_health(&stores).await;
    assert!(status == "degraded" && detail.contains("run `tidemark rebuild`"), "{status} {detail}");
    let report = verify::verify(&stores.databases, tenant.id, false).await.unwrap();
    assert_ne!(report.differences, []);
    // The report survives a restart.
    relay.stop().await;
    let relay = stores.start_relay();
    assert!(outbox::unknown_history::is_recorded(stores.pg(), tenant.id).await.unwrap());

    rebuild::rebuild(&stores.databases, &[tenant.id], false).await.unwrap();
    let report = verify::verify(&stores.databases, tenant.id, false).await.unwrap();
    assert_eq!(report.differences, []);
    assert_eq!(clickhouse_health(&stores).await, ("ok".to_owned(), String::new()));
    let days = [3, 1, 0].map(|days_ago| count_snapshots(&stores, tenant.id, days_ago));
    let [backed_up, moved, scraped] = days;
    // The history of both posts has moved; that of the third is gone.
    assert_eq!((backed_up.await, moved.await, scraped.await), (4, 6, 6));
    relay.stop().await;
}
