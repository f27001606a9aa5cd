//! Videos that move between subjects, observed between the statements of the delivery.

use chrono::{SubsecRound, TimeDelta};
use harness::{ClickhouseProxy, IsolatedStores};
use tidemark::store::Write;
use tidemark::store::observations::{VideoOrigin, save_videos};

use harness::relay::observed_post;

/// More subjects than one statement recomputes.
const MOVED_TO_FIRST: usize = 130;

/// One account gets more videos than fit into one statement, the other a single one.
#[tokio::test(flavor = "multi_thread")]
async fn moved_video_never_counts_twice() {
    let mut stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(2).await;
    let now = harness::now().trunc_subsecs(6);
    let save = async |days_ago: i64, views: i64, is_found: bool| {
        let at = now - TimeDelta::days(days_ago);
        let posts = (0..=MOVED_TO_FIRST).map(|n| {
            let account = tenant.accounts[usize::from(n == MOVED_TO_FIRST)];
            let origin = match is_found {
                true => VideoOrigin::Account(account),
                false => VideoOrigin::Individual { is_active: true },
            };
            observed_post(origin, format!("7{n:06}"), views, at)
        });
        let mut write = Write::begin(stores.pg(), tenant.id).await.unwrap();
        save_videos(&mut write, at, posts.collect()).await.unwrap();
        write.commit().await.unwrap();
    };
    save(2, 100, false).await;
    save(1, 110, false).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    save(0, 110, true).await;

    let clickhouse = stores.databases.clickhouse.clone();
    let total = async || {
        let sql = "select sum(view_gain) from account_daily final where org_id = {org:UUID}";
        let total = clickhouse.query_raw(sql).param("org", tenant.id).fetch_one::<Option<i64>>();
        total.await.unwrap().unwrap()
    };
    let truth = total().await;
    assert_eq!(truth, 10 * (MOVED_TO_FIRST as i64 + 1));
    let proxy = ClickhouseProxy::start(&stores.connection.clickhouse_url).await;
    proxy.hold_after("INSERT INTO account_daily");
    stores.databases.clickhouse = clickhouse.clone().with_url(&proxy.url);
    let relay = stores.start_relay();
    let mut totals = Vec::new();
    loop {
        tokio::select! {
            () = proxy.wait_held(totals.len() + 1) => {
                totals.push(total().await);
                proxy.release();
            }
            () = stores.wait_applied(tenant.id) => break,
        }
    }
    relay.stop().await;
    assert!(totals.len() > 1 && totals.iter().all(|total| *total <= truth), "{truth} became {totals:?}");
    assert_eq!(totals.last(), Some(&truth));
}
