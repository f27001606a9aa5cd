//! From an added account to history: records, snapshots and gains of what the sandbox served.

use clickhouse::Row;
use harness::{IsolatedStack, Organization, Response, Stack, wait_until};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Row, Deserialize)]
struct SnapshotCounts {
    rows: u64,
    videos: u64,
    days: u64,
}

/// Counts the snapshots of the organization's videos in ClickHouse.
async fn count_snapshots(organization: &Organization) -> SnapshotCounts {
    organization
        .stack
        .clickhouse()
        .query_raw(
            "select count() as rows, uniqExact(video_id) as videos, uniqExact(date) as days
             from video_snapshots final where org_id = {org:UUID}",
        )
        .param("org", organization.id)
        .fetch_one()
        .await
        .unwrap()
}

#[tokio::test]
async fn added_account_is_scraped_and_recorded() {
    let stack = Stack::shared();
    for platform in ["instagram", "tiktok"] {
        let organization = stack.organization().await;
        let account = stack.sandbox_account(platform);
        let tracked = organization.track(account).await;
        let served = stack.sandbox_state(account).await;
        assert_eq!(tracked["username"], account.username.as_str());
        assert_eq!(tracked["tracking"]["status"], "active");
        assert!(tracked["follower_count"].as_i64().unwrap() > 0);
        assert!(tracked["name"].is_string(), "the profile is recorded: {tracked}");

        let count = tracked["total_post_count"].as_u64().unwrap();
        assert!(count > 10, "posts are recorded: {tracked}");
        let counts = count_snapshots(&organization).await;
        assert_eq!((counts.rows, counts.videos, counts.days), (count, count, 1));

        // Every listed video is a post of the sandbox with the same time and counters.
        let list = organization.get("/account-videos?limit=200&include_total=true").await.ok(200);
        assert_eq!(list.integer("/pagination/total_count"), count as i64);
        for video in list.list("/data") {
            let posts = served["posts"].as_array().unwrap();
            let post = posts
                .iter()
                .find(|post| post["id"] == video["external_id"])
                .expect("the sandbox has the post");
            assert_eq!(post["create_time"], video["create_time"]);
            assert!(
                video["view_count"].as_i64() <= post["view_count"].as_i64().or(Some(i64::MAX)),
                "{video} {post}"
            );
        }
    }
}

#[tokio::test]
async fn created_and_linked_creator_is_ranked() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let account = organization.track(stack.sandbox_account("tiktok")).await;
    let account = account["id"].as_str().unwrap();
    let creator = organization.post("/creators", json!({"name": "Mara"})).await.ok(201);
    let creator = creator.text("/data/id");
    let link = format!("/creators/{creator}/accounts/{account}");
    assert_eq!(organization.put(&link).await.ok(201).text("/data/account_id"), account);
    organization.put(&link).await.ok(200);

    let top = organization.get("/creators/top?period=7d").await.ok(200);
    assert_eq!(top.list("/data").len(), 1);
    assert_eq!((top.text("/data/0/id"), top.integer("/data/0/account_count")), (creator, 1));
    let series =
        organization.get(&format!("/creators/{creator}/analytics/timeseries?period=7d")).await.ok(200);
    let days: Vec<_> = series.list("/data").iter().map(|day| day["views"].as_i64().unwrap()).collect();
    assert_eq!((days.len(), days.iter().sum::<i64>()), (7, top.integer("/data/0/views")));

    // Unlinking removes the gains immediately.
    organization.delete(&link).await.ok(204);
    let top = organization.get("/creators/top?period=7d").await.ok(200);
    assert_eq!((top.integer("/data/0/views"), top.integer("/data/0/account_count")), (0, 0));
}

#[tokio::test]
async fn deleted_account_leaves_every_total_immediately() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let account = organization.track(stack.sandbox_account("instagram")).await;
    let followers = |overview: &Response| overview.at("/data/followers/current").clone();
    let overview = organization.get("/overview").await.ok(200);
    assert_eq!(followers(&overview), account["follower_count"]);
    assert!(overview.integer("/data/totals/videos") > 0);

    organization.delete(&format!("/accounts/{}", account["id"].as_str().unwrap())).await.ok(204);
    let overview = organization.get("/overview").await.ok(200);
    assert_eq!(followers(&overview), Value::Null);
    assert_eq!((overview.integer("/data/totals/videos"), overview.integer("/data/totals/accounts")), (0, 0));
    let username = account["username"].as_str().unwrap();
    assert_eq!(
        organization.get(&format!("/search?q={username}")).await.ok(200).list("/data/accounts").len(),
        0
    );
    organization.wait_applied().await;
    assert_eq!(count_snapshots(&organization).await.rows, 0);
    assert_eq!(followers(&organization.get("/overview").await.ok(200)), Value::Null);
}

#[tokio::test]
async fn account_missing_on_the_platform_fails_with_a_reason() {
    let organization = Stack::shared().organization().await;
    let created =
        organization.post("/accounts", json!({"platform": "instagram", "username": "missing.account"})).await;
    let path = format!("/accounts/{}", created.ok(201).text("/data/id"));
    let failing = wait_until("the first attempt has failed", async || {
        let account = organization.get(&path).await.ok(200);
        (account.text("/data/tracking/status") == "failing").then_some(account)
    })
    .await;
    assert!(failing.text("/data/tracking/last_error").contains("not found"), "{failing}");
    assert_eq!(failing.at("/data/is_unavailable"), &json!(false), "one failure is not enough");
}

#[tokio::test]
async fn isolated_days_of_the_sandbox_clock_become_gains() {
    let stack = IsolatedStack::start().await;
    let organization = stack.organization().await;
    let account = stack.sandbox_account("tiktok");
    let first = organization.track(account).await;
    let path = format!("/accounts/{}", first["id"].as_str().unwrap());
    let before = organization.get("/overview?period=7d").await.ok(200).integer("/data/views/current");
    let first_views = first["view_count"].as_i64().unwrap();
    let mut scraped = first;
    for day in 2..=3 {
        stack.control_sandbox(json!({"op": "advance", "hours": 24})).await;
        let last = scraped["last_scrape_time"].clone();
        scraped = wait_until("the next day's scrape is recorded", async || {
            let account = organization.get(&path).await.ok(200);
            (account.at("/data/last_scrape_time") != &last).then(|| account.at("/data").clone())
        })
        .await;
        organization.wait_applied().await;
        assert_eq!(count_snapshots(&organization).await.days, day);
    }
    let after = organization.get("/overview?period=7d").await.ok(200);
    let posts = organization.get(&format!("{path}/videos?limit=200")).await.ok(200);
    let latest: i64 = posts.list("/data").iter().map(|post| post["view_count"].as_i64().unwrap()).sum();
    assert_eq!(scraped["view_count"].as_i64(), Some(latest));
    // Gains of old posts plus all views of new ones equal the increase of the latest counters.
    let gained = after.integer("/data/views/current") - before;
    assert_eq!(gained, latest - first_views, "{after}");
    assert!(gained > 0, "{after}");
    assert_eq!(after.at("/data/followers/current"), &scraped["follower_count"]);
}
