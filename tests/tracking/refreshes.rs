//! Refreshes: their statuses, their place in the queue, and their share of the sources' budgets.

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::stream::{self, StreamExt};
use harness::{Response, wait_until};
use sandbox::Fault;
use serde_json::{Value, json};
use tidemark::model::platform::Platform;
use tidemark::store::tracking::leases::{self, LeaseRequest};
use tidemark::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use uuid::Uuid;

use crate::client::Client;
use crate::recording_source::RecordingSource;
use crate::test_tracker::TestTracker;

fn path(account: Uuid) -> String {
    format!("/accounts/{account}/refresh")
}

/// The statuses of a response, in its order.
#[track_caller]
fn statuses(response: &Response) -> Vec<String> {
    assert_eq!(response.status, 202, "{response}");
    let text = |refresh: &Value| refresh["status"].as_str().unwrap().to_owned();
    response.list("/data").iter().map(text).collect()
}

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

/// Adds accounts that the sandbox does not have, due in a year.
async fn add_idle_accounts(tracker: &TestTracker, organization: Uuid, count: i32) -> Vec<Uuid> {
    tracker.add_due_accounts(organization, Platform::Tiktok, count).await;
    sqlx::query_scalar(
        "update scrape_targets set next_attempt_at = service_now() + interval '1 year' where organization_id = $1 returning id",
    )
    .bind(organization)
    .fetch_all(tracker.pg())
    .await
    .unwrap()
}

#[tokio::test]
async fn refresh_scrapes_at_once_and_then_is_fresh() {
    let tracker = TestTracker::start().await;
    tracker.sandbox.world.stop_clock().unwrap();
    let client = Client::start(&tracker).await;
    let name = tracker.usernames(Platform::Instagram)[0].clone();
    let account = tracker.add_account(client.organization, Platform::Instagram, &name).await;
    tracker.run(2);
    let first = tracker.wait_attempted(account).await;
    let fresh = client.post_nothing(&path(account)).await;
    assert_eq!(statuses(&fresh), ["fresh"]);
    assert_eq!(fresh.json["data"][0]["id"], json!(account));
    let scraped: DateTime<Utc> =
        tracker.fetch("select last_scrape_time from accounts where id = $1", account).await;
    assert_eq!(time(fresh.at("/data/0/refreshable_at")), scraped + TimeDelta::hours(1));

    tracker.sandbox.world.advance(1.5).unwrap();
    let queued = client.post(&path(account), json!({})).await;
    assert_eq!(
        (statuses(&queued), queued.at("/data/0/refreshable_at")),
        (vec!["queued".to_owned()], &Value::Null)
    );
    let again = wait_until("the account is scraped again", async || {
        let target = tracker.target(account).await;
        (target.last_attempt_at > first.last_attempt_at).then_some(target)
    })
    .await;
    // The interval begins anew.
    assert!(again.next_attempt_at > first.next_attempt_at && again.failures == 0);
    let is_queued: bool = tracker
        .fetch("select refresh_requested_at is not null from scrape_targets where id = $1", account)
        .await;
    assert!(!is_queued);
    assert_eq!(statuses(&client.post_nothing(&path(account)).await), ["fresh"]);
    assert_eq!(client.post(&path(account), json!({"force": true})).await.fields(), ["force"]);
    assert_eq!(client.post(&path(account), json!([])).await.fields(), ["body"]);
}

#[tokio::test]
async fn thousand_clicks_make_one_scrape() {
    let tracker = TestTracker::start().await;
    let client = Client::start(&tracker).await;
    let account = add_idle_accounts(&tracker, client.organization, 1).await[0];
    let source = RecordingSource::new(None);
    let click = async || statuses(&client.post_nothing(&path(account)).await).remove(0);
    let clicks = async || -> Vec<String> {
        stream::iter(0..500).map(|_| click()).buffer_unordered(40).collect().await
    };
    let requested_at = async || -> Option<DateTime<Utc>> {
        tracker.fetch("select refresh_requested_at from scrape_targets where id = $1", account).await
    };
    assert_eq!(click().await, "queued");
    let requested = requested_at().await;
    let queued = clicks().await;
    assert!(queued.iter().all(|status| status == "queued"), "{queued:?}");
    assert!(requested.is_some() && requested == requested_at().await);
    tracker.run_with(4, source.sources());
    let rest = clicks().await;
    let expected = ["queued", "in_flight", "fresh"];
    assert!(rest.iter().all(|status| expected.contains(&status.as_str())), "{rest:?}");
    wait_until("the account is fresh", async || (click().await == "fresh").then_some(())).await;
    assert_eq!(source.fetches.lock().unwrap().counts.values().collect::<Vec<_>>(), [&1]);
}

#[tokio::test]
async fn one_response_serves_the_refreshes_of_all_organizations() {
    let tracker = TestTracker::start().await;
    let client = Client::start(&tracker).await;
    let other = client.start_other(&tracker).await;
    let mut accounts = Vec::new();
    for client in [&client, &other] {
        let account = add_idle_accounts(&tracker, client.organization, 1).await[0];
        assert_eq!(statuses(&client.post_nothing(&path(account)).await), ["queued"]);
        accounts.push(account);
    }
    let source = RecordingSource::new(None);
    tracker.run_with(1, source.sources());
    for account in accounts {
        tracker.wait_attempted(account).await;
    }
    assert_eq!(source.fetches.lock().unwrap().counts.values().collect::<Vec<_>>(), [&1]);
}

#[tokio::test]
async fn refresh_overrides_the_delay_of_a_failing_account() {
    let tracker = TestTracker::start().await;
    let client = Client::start(&tracker).await;
    tracker.sandbox.world.fail_next(sandbox::Platform::Tiktok, Fault::Error, 1);
    let name = tracker.usernames(Platform::Tiktok)[0].clone();
    let account = tracker.add_account(client.organization, Platform::Tiktok, &name).await;
    tracker.run(1);
    let failed = tracker.wait_attempted(account).await;
    assert_eq!(failed.failures, 1);
    assert!(failed.next_attempt_at > failed.last_attempt_at.unwrap() + TimeDelta::minutes(1));
    assert_eq!(statuses(&client.post_nothing(&path(account)).await), ["queued"]);
    wait_until("the account is scraped", async || {
        (tracker.target(account).await.failures == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn refresh_resumes_a_source_whose_pause_is_over() {
    let tracker = TestTracker::start_with(&["--tiktok-sources=tiktok-research"]).await;
    tracker.sandbox.world.stop_clock().unwrap();
    let client = Client::start(&tracker).await;
    // Nothing is due that could resume it.
    let account = add_idle_accounts(&tracker, client.organization, 1).await[0];
    assert_eq!(statuses(&client.post_nothing(&path(account)).await), ["queued"]);
    tracker.sandbox.world.fail_next(sandbox::Platform::Tiktok, Fault::RateLimit, 1);
    tracker.run(1);
    let pauses = async || source_pauses::fetch_all(tracker.pg()).await.unwrap();
    wait_until("the source is paused", async || (pauses().await.len() == 1).then_some(())).await;
    assert_eq!(statuses(&client.post_nothing(&path(account)).await), ["source_paused"]);
    tracker.sandbox.world.advance(25.0).unwrap();
    tracker.wait_attempted(account).await;
    wait_until("the source is resumed", async || pauses().await.is_empty().then_some(())).await;
}

#[tokio::test]
async fn refresh_ends_although_a_rename_cannot_be_checked() {
    let options = ["--instagram-sources=instagram-graph,http", "--http-source-daily-requests=5"];
    let tracker = TestTracker::start_with(&options).await;
    tracker.sandbox.world.stop_clock().unwrap();
    let client = Client::start(&tracker).await;
    let account = tracker.add_account(client.organization, Platform::Instagram, "missing").await;
    tracker.execute("update accounts set platform_id = '1' where id = $1", account).await;
    let now = tracker.databases.clock.now().await;
    // The share of the only source that finds a renamed account.
    sqlx::query(
        "insert into source_requests (source, day, requests, refresh_requests) values ('http', $1, 1, 1)",
    )
    .bind(now.date_naive())
    .execute(tracker.pg())
    .await
    .unwrap();
    sqlx::query("update scrape_targets set next_attempt_at = $1 + interval '1 year'")
        .bind(now)
        .execute(tracker.pg())
        .await
        .unwrap();
    assert_eq!(statuses(&client.post_nothing(&path(account)).await), ["queued"]);
    tracker.run(1);
    let target = tracker.wait_attempted(account).await;
    assert_eq!(target.failures, 1);
    assert!(target.last_error.unwrap().contains("check for a rename"));
}

#[tokio::test]
async fn every_status_is_reported() {
    let tracker = TestTracker::start_with(&["--instagram-sources=instagram-graph"]).await;
    let (client, other) = (Client::start(&tracker).await, Client::start(&tracker).await);
    let creator = client.post("/creators", json!({"name": "c"})).await.ok(201).text("/data/id").to_owned();
    let names = ["paused", "paused.by.creator", "unavailable", "queued"];
    let items: Vec<_> = names.iter().map(|name| json!({"platform": "tiktok", "username": name})).collect();
    let created = client.post("/accounts/batch", json!({"items": items})).await.ok(200);
    let ids: Vec<Uuid> =
        created.list("/data").iter().map(|item| item["id"].as_str().unwrap().parse().unwrap()).collect();
    client.patch(&format!("/accounts/{}", ids[0]), json!({"is_active": false})).await.ok(200);
    client.patch(&format!("/accounts/{}", ids[1]), json!({"creator_id": creator})).await.ok(200);
    client.patch(&format!("/creators/{creator}"), json!({"is_active": false})).await.ok(200);
    tracker.execute("update accounts set is_unavailable = true where id = $1", ids[2]).await;
    tracker.sandbox.world.fail_next(sandbox::Platform::Instagram, Fault::Hang, 1);
    let hanging = tracker
        .add_account(client.organization, Platform::Instagram, &tracker.usernames(Platform::Instagram)[0])
        .await;
    let foreign = tracker.add_account(other.organization, Platform::Tiktok, "foreign").await;
    let missing = Uuid::now_v7();
    // Leases of TikTok's accounts fail, so that they stay queued.
    let paused_until = tracker.databases.clock.now().await + TimeDelta::minutes(30);
    for source in ["tiktok-research", "http"] {
        pause(&tracker, source, paused_until + TimeDelta::minutes(i64::from(source == "http"))).await;
    }
    tracker.run(1);
    wait_until("the scrape hangs", async || (tracker.request_count(Platform::Instagram) > 0).then_some(()))
        .await;
    let asked = [ids[3], foreign, hanging, ids[2], ids[1], missing, ids[0], ids[3]];
    let response = client.post("/accounts/refresh", json!({"account_ids": asked})).await;
    assert_eq!(statuses(&response), ["source_paused", "in_flight", "unavailable", "paused", "paused"]);
    assert_eq!(time(response.at("/data/0/refreshable_at")), paused_until);
    assert_eq!(*response.at("/meta/not_found"), json!([foreign, missing]));
    sqlx::query("delete from source_pauses where source = 'http'").execute(tracker.pg()).await.unwrap();
    assert_eq!(statuses(&client.post_nothing(&path(ids[3])).await), ["queued"]);

    client.post_nothing(&path(foreign)).await.problem(404, "NOT_FOUND");
    assert_eq!(client.post("/accounts/refresh", json!({})).await.fields(), ["account_ids"]);
    let many: Vec<_> = (0..101).map(|_| Uuid::now_v7()).collect();
    assert_eq!(
        client.post("/accounts/refresh", json!({"account_ids": many})).await.fields(),
        ["account_ids"]
    );
    let none = client.post("/accounts/refresh", json!({"account_ids": []})).await;
    assert_eq!((none.status, none.json), (202, json!({"data": [], "meta": {"not_found": []}})));
}

async fn pause(tracker: &TestTracker, source: &str, until: DateTime<Utc>) {
    let pause = SourcePause {
        platform: Platform::Tiktok,
        source: source.to_owned(),
        until,
        cause: PauseCause::RateLimit,
        reason: "paused by the test".to_owned(),
    };
    source_pauses::start(tracker.pg(), &pause, until).await.unwrap();
}

#[tokio::test]
async fn only_individually_tracked_videos_are_refreshed() {
    let tracker = TestTracker::start_with(&["--instagram-sources=instagram-graph"]).await;
    let client = Client::start(&tracker).await;
    let now = tracker.databases.clock.now().await;
    let population = tracker.sandbox.world.population();
    let account =
        population.accounts().iter().find(|account| account.platform == sandbox::Platform::Tiktok).unwrap();
    let (post, discovered) =
        (account.posts_at(now).next().unwrap().id, account.posts_at(now).nth(1).unwrap().id);
    let body = json!({"platform": "tiktok", "identifier": post});
    let video: Uuid = client.post("/videos", body).await.ok(201).text("/data/id").parse().unwrap();
    let refresh = |video: Uuid| format!("/videos/{video}/refresh");
    assert_eq!(statuses(&client.post_nothing(&refresh(video)).await), ["queued"]);
    let owner = tracker.add_account(client.organization, Platform::Tiktok, &account.username).await;
    tracker.run(2);
    tracker.wait_attempted(video).await;
    tracker.wait_attempted(owner).await;
    assert_eq!(statuses(&client.post_nothing(&refresh(video)).await), ["fresh"]);
    let discovered: Uuid = sqlx::query_scalar("select id from videos where external_id = $1")
        .bind(discovered)
        .fetch_one(tracker.pg())
        .await
        .unwrap();
    client.post_nothing(&refresh(discovered)).await.problem(404, "NOT_FOUND");
    // Business Discovery reads no single posts.
    tracker
        .execute("update videos set platform = 'instagram', shortcode = 'CfUjwr8vyv2' where id = $1", video)
        .await;
    tracker.execute("update scrape_targets set platform = 'instagram' where id = $1", video).await;
    assert_eq!(statuses(&client.post_nothing(&refresh(video)).await), ["unsupported"]);
}

#[tokio::test]
async fn refreshes_of_organizations_take_turns() {
    let tracker = TestTracker::start().await;
    let large = Client::start(&tracker).await;
    let small = large.start_other(&tracker).await;
    let many = add_idle_accounts(&tracker, large.organization, 100).await;
    let few = add_idle_accounts(&tracker, small.organization, 3).await;
    let queue = async |client: &Client, ids: &[Uuid]| {
        let response = client.post("/accounts/refresh", json!({"account_ids": ids})).await;
        assert!(statuses(&response).iter().all(|status| status == "queued"), "{response}");
    };
    queue(&large, &many).await;
    queue(&small, &few).await;
    let mut request = tracker.lease_request(Platform::Tiktok, 4).await;
    let mut shares = Vec::new();
    for _ in 0..3 {
        let (leased, after) = leases::lease_refreshes(tracker.pg(), request).await.unwrap();
        assert!(leased.len() == 4 && leased.iter().all(|leased| leased.is_refresh), "{leased:?}");
        shares.push(leased.iter().filter(|leased| leased.organization_id == small.organization).count());
        request = LeaseRequest { after_organization: after, ..request };
    }
    assert_eq!(shares, [2, 1, 0]);
    let due = leases::lease(tracker.pg(), request).await.unwrap().0;
    assert!(due.is_empty(), "{due:?}");

    // A paused account is not refreshed.
    let left: Uuid = tracker
        .fetch(
            "select id from scrape_targets where organization_id = $1 and lease_owner is null limit 1",
            large.organization,
        )
        .await;
    tracker.execute("update scrape_targets set enabled = false where id = $1", left).await;
    let rest = LeaseRequest { limit: 200, ..request };
    let rest = leases::lease_refreshes(tracker.pg(), rest).await.unwrap().0;
    assert!(rest.len() == 90 && rest.iter().all(|leased| leased.id != left), "{}", rest.len());
}

#[tokio::test]
async fn refreshes_take_a_fifth_of_the_budget() {
    let options = ["--tiktok-sources=tiktok-research", "--tiktok-research-daily-requests=50"];
    let tracker = TestTracker::start_with(&options).await;
    tracker.sandbox.world.stop_clock().unwrap();
    let client = Client::start(&tracker).await;
    let accounts = add_idle_accounts(&tracker, client.organization, 30).await;
    let now = tracker.databases.clock.now().await;
    let midnight = now.date_naive().succ_opt().unwrap().and_hms_opt(0, 0, 0).unwrap().and_utc();
    let response = client.post("/accounts/refresh", json!({"account_ids": accounts})).await;
    let count = |status: &str| statuses(&response).iter().filter(|other| *other == status).count();
    assert_eq!((count("queued"), count("source_paused")), (10, 20), "{response}");
    for refresh in response.list("/data").iter().filter(|refresh| refresh["status"] == "source_paused") {
        assert_eq!(time(&refresh["refreshable_at"]), midnight);
    }
    let other = client.start_other(&tracker).await;
    let first = add_idle_accounts(&tracker, other.organization, 1).await[0];
    assert_eq!(statuses(&other.post_nothing(&path(first)).await), ["queued"], "organizations take turns");
    // As if each took one request, which is not known before.
    tracker
        .execute(
            "update scrape_targets set refresh_requested_at = service_now() where organization_id = $1",
            client.organization,
        )
        .await;
    tracker.run(4);
    let usage = async || -> (i32, i32) {
        let usage = sqlx::query_as("select requests, refresh_requests from source_requests");
        usage.fetch_optional(tracker.pg()).await.unwrap().unwrap_or_default()
    };
    wait_until("the share is used up", async || (usage().await == (10, 10)).then_some(())).await;
    wait_until("no refresh is leased", async || {
        let leased: bool = tracker
            .fetch("select exists (select from scrape_targets where organization_id = $1 and lease_owner is not null)", client.organization)
            .await;
        (!leased).then_some(())
    })
    .await;
    let queued = async || -> i64 {
        let count = "select count(*) from scrape_targets where organization_id = $1 and refresh_requested_at is not null";
        tracker.fetch(count, client.organization).await
    };
    let waiting = queued().await;
    assert!(waiting >= 20, "{waiting} of 30");
    let failed: i64 = tracker
        .fetch(
            "select count(*) from scrape_targets where organization_id = $1 and failures > 0",
            client.organization,
        )
        .await;
    assert_eq!(failed, 30 - waiting, "a refresh without a request is no failure");
    let waits: Uuid = tracker
        .fetch("select id from scrape_targets where organization_id = $1 and refresh_requested_at is not null limit 1", client.organization)
        .await;
    assert_eq!(statuses(&client.post_nothing(&path(waits)).await), ["source_paused"]);
    assert_eq!(source_pauses::fetch_all(tracker.pg()).await.unwrap(), []);

    // Scheduled scrapes have the rest.
    let name = tracker.usernames(Platform::Tiktok)[0].clone();
    let due = tracker.add_account(client.organization, Platform::Tiktok, &name).await;
    assert_eq!(tracker.wait_attempted(due).await.failures, 0);
    let (requests, refreshes) = usage().await;
    assert!(requests > 10 && refreshes == 10, "{requests} {refreshes}");

    tracker.sandbox.world.advance(24.0).unwrap();
    wait_until("the next day's share is used", async || (queued().await < waiting).then_some(())).await;
}
