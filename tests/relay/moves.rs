//! Videos that move between subjects, observed between the statements of the delivery, and videos that are merged by a process
//! that is killed.

use chrono::{SubsecRound, TimeDelta};
use harness::relay::{observed_post, scrape_profile_at};
use harness::{ClickhouseProxy, IsolatedStores};
use serde_json::json;
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::observations::{ObservedVideo, VideoOrigin, save_videos};
use tidemark::store::records::imports;

use crate::uploads::{expire_leases, upload_until_killed};

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
    proxy.hold_after("INSERT+INTO+%60account_daily%60");
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

/// The id and the shortcode of a post.
const POST: (&str, &str) = ("17976197140599116", "CfUjwr8vyv2");

#[tokio::test(flavor = "multi_thread")]
async fn killed_import_merges_posts_with_their_events_or_not_at_all() {
    let stores = IsolatedStores::create().await;
    let (mut organization, now) = (stores.organization().await, harness::now());
    let name = (Platform::Instagram, "low.tide".to_owned());
    let mut write = Write::begin(stores.pg(), organization.id).await.unwrap();
    let accounts =
        imports::find_or_create_accounts(&mut write, &[name], &Default::default(), false, now).await.unwrap();
    write.commit().await.unwrap();
    let account = *accounts.values().next().unwrap();
    let scrape = async |external_id: Option<&str>, shortcode: Option<&str>, views: i64, minutes_ago: i64| {
        let at = now - TimeDelta::minutes(minutes_ago);
        let observed = observed_post(VideoOrigin::Account(account), String::new(), views, at);
        let (external_id, shortcode) = (external_id.map(str::to_owned), shortcode.map(str::to_owned));
        let observed = ObservedVideo { platform: Platform::Instagram, external_id, shortcode, ..observed };
        let mut write = Write::begin(stores.pg(), organization.id).await.unwrap();
        save_videos(&mut write, at, vec![observed]).await.unwrap();
        write.commit().await.unwrap();
    };
    scrape_profile_at(stores.pg(), organization.id, account, "Low", now - TimeDelta::hours(3)).await;
    scrape(Some(POST.0), None, 900, 40).await;
    scrape(Some(POST.0), None, 1_500, 30).await;
    scrape(None, Some(POST.1), 20_000, 20).await;
    let reported = async || {
        let events = "select type || coalesce(' ' || (data ->> 'threshold'), ''), dense_rank() over (order by video_id)
                      from events where video_id is not null order by 1, 2";
        let events: Vec<(String, i64)> = sqlx::query_as(events).fetch_all(stores.pg()).await.unwrap();
        events
    };
    let [published, one, ten] =
        ["video.published", "video.views_reached 1000", "video.views_reached 10000"].map(str::to_owned);
    let mut apart = reported().await;
    apart.retain(|(event, _)| *event == published);
    assert_eq!(apart, [(published.clone(), 1), (published.clone(), 2)]);
    let (apart, merged) = (reported().await, vec![(published, 1), (one, 1), (ten, 1)]);
    assert_eq!(apart.len(), 4);
    let row = json!({"platform": "instagram", "username": "low.tide", "external_id": POST.0, "shortcode": POST.1,
                     "observed_at": (now - TimeDelta::minutes(10)).to_rfc3339(), "view_count": 2_000});
    let armed = tempfile::tempdir().unwrap();
    for (point, expected) in [("write-uncommitted", apart), ("write-committed", merged)] {
        let failpoints = [("TIDEMARK_FAILPOINTS", armed.path().display().to_string())];
        let (mut api, url) = stores.serve(&failpoints);
        organization.stack.connection.base_url = url;
        upload_until_killed(&stores, &organization, armed.path(), std::slice::from_ref(&row), (point, true))
            .await;
        assert_eq!(api.wait().await, None, "{point}: {}", api.log());
        assert!(!armed.path().join(point).exists(), "{point} was not reached");
        assert_eq!(reported().await, expected, "{point}");
        expire_leases(&stores).await;
    }
}
