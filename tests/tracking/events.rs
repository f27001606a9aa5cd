//! Events that scrapes find: posts, thresholds, and what becomes of an account.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tidemark::model::platform::Platform;
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::http_source::{HttpSource, HttpSourceConfig};
use tidemark::platforms::{RateThrottle, RequestBudget, Sources};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::canned::{self, CannedResponse, CannedServer};
use crate::test_tracker::TestTracker;

/// A response with an account and its posts, each with its views.
fn account(username: &str, followers: i64, posts: &[(u64, i64)]) -> CannedResponse {
    let post = |(id, views): &(u64, i64)| {
        let create_time = harness::now() - TimeDelta::days(1) + TimeDelta::minutes(*id as i64);
        json!({"id": id, "create_time": create_time.to_rfc3339(), "view_count": views, "description": "a post"})
    };
    let posts: Vec<_> = posts.iter().map(post).collect();
    let profile = json!({"id": "9", "username": username, "name": "Mara", "follower_count": followers});
    canned::json(200, &json!({"profile": profile, "posts": posts}))
}

fn not_found() -> CannedResponse {
    canned::json(404, &json!({"error": {"code": "not_found", "message": "no such account"}}))
}

/// A response with an account of another id.
fn another_account(username: &str) -> CannedResponse {
    canned::json(200, &json!({"profile": {"id": "10", "username": username}, "posts": []}))
}

/// A tracked account whose source sends scripted responses.
struct ScriptedAccount {
    tracker: TestTracker,
    organization: Uuid,
    account: Uuid,
    stop: CancellationToken,
    seen: usize,
}

impl ScriptedAccount {
    /// Scrapes the account for the first time.
    async fn start(script: Vec<CannedResponse>) -> Self {
        let tracker = TestTracker::start().await;
        let server = CannedServer::start(script).await;
        let limits = RequestLimits { timeout: Duration::from_secs(5), max_response_bytes: 4 << 20 };
        let config = HttpSourceConfig {
            base: server.url.clone(),
            token: None,
            throttle: RateThrottle::new("http", 8, None, RequestBudget::in_memory()),
            limits,
        };
        let sources = Sources::new(vec![Arc::new(HttpSource::new(config, Platform::Instagram).unwrap())]);
        let organization = tracker.create_organization().await;
        let account = tracker.add_account(organization, Platform::Instagram, "low.tide").await;
        let stop = tracker.run_with(1, Arc::new(sources));
        let mut scripted = ScriptedAccount { tracker, organization, account, stop, seen: 0 };
        scripted.tracker.wait_attempted(account).await;
        assert_eq!(scripted.news().await, Vec::<Value>::new(), "the first scrape reports nothing");
        scripted
    }

    /// Scrapes the account again, and returns the types of the new events, each with what it says.
    async fn scrape(&mut self) -> Vec<Value> {
        self.tracker.make_due(self.account).await;
        self.tracker.wait_attempted(self.account).await;
        self.news().await
    }

    async fn news(&mut self) -> Vec<Value> {
        let events: Vec<(Uuid, String, Value, DateTime<Utc>)> = sqlx::query_as(
            "select id, type, data, created_at from events where organization_id = $1 order by id",
        )
        .bind(self.organization)
        .fetch_all(self.tracker.pg())
        .await
        .unwrap();
        assert!(events.is_sorted_by_key(|(_, _, _, created_at)| *created_at));
        let news = events[self.seen..].iter().map(|(_, event_type, data, _)| {
            assert_eq!(data["account"]["id"], json!(self.account), "{data}");
            let says = data.as_object().unwrap().iter().filter(|(name, _)| *name != "account");
            let says = says.map(|(name, value)| match name.as_str() {
                "video" => value["external_id"].clone(),
                _ => value.clone(),
            });
            json!([event_type, says.collect::<Vec<_>>()])
        });
        let news = news.collect();
        self.seen = events.len();
        news
    }
}

#[tokio::test]
async fn scrapes_report_posts_and_thresholds_once() {
    let mut account = ScriptedAccount::start(vec![
        account("low.tide", 1_200, &[(1, 5_000), (2, 10)]),
        account("low.tide", 9_000, &[(1, 5_100), (2, 1_500), (3, 20_000)]),
        // A post is lost, and counts fall.
        account("low.tide", 12_000, &[(2, 900), (3, 30)]),
        account("low.tide", 800, &[(1, 9_000), (2, 1_600), (3, 20_000)]),
        account("low.tide", 12_500, &[(1, 9_000), (2, 1_000_000), (3, 20_001)]),
    ])
    .await;
    let second = account.scrape().await;
    let expected = [
        json!(["video.views_reached", [1_000, "2"]]),
        json!(["video.published", ["3"]]),
        json!(["video.views_reached", [10_000, "3"]]),
    ];
    assert_eq!(second, expected);
    assert_eq!(account.scrape().await, [json!(["account.followers_reached", [10_000]])]);
    assert_eq!(account.scrape().await, Vec::<Value>::new(), "it returned, and they passed these before");
    let last = account.scrape().await;
    assert_eq!(last, [json!(["video.views_reached", [1_000_000, "2"]])], "the highest of several");
    account.stop.cancel();
}

#[tokio::test]
async fn scrapes_report_what_becomes_of_an_account() {
    let posts: &[(u64, i64)] = &[(1, 10)];
    let failure = || canned::text(503, "");
    let mut script = vec![account("low.tide", 10, posts), account("high.tide", 10, posts)];
    script.extend([not_found(), failure(), not_found(), not_found(), not_found()]);
    script.extend([account("high.tide", 10, posts), account("high.tide", 10, posts)]);
    script.extend([failure(), failure(), not_found(), failure(), failure()]);
    script.extend([account("high.tide", 10, posts), account("high.tide", 10, posts)]);
    let mut account = ScriptedAccount::start(script).await;
    let mut news = Vec::new();
    for _ in 0..15 {
        news.push(account.scrape().await);
    }
    let none = Vec::<Value>::new();
    let reported: Vec<_> = news.into_iter().enumerate().filter(|(_, news)| *news != none).collect();
    let expected = [
        (0, vec![json!(["account.renamed", ["low.tide"]])]),
        // The third that is not found.
        (4, vec![json!(["account.unavailable", []])]),
        (6, vec![json!(["account.available", []])]),
        // The third failure of another kind.
        (11, vec![json!(["account.failing", ["transient"]])]),
        (13, vec![json!(["account.recovered", []])]),
    ];
    assert_eq!(reported, expected);
    account.stop.cancel();
}

#[tokio::test]
async fn attempts_that_find_another_account_do_not_count_as_failing() {
    let failure = || canned::text(503, "");
    let mut script = vec![account("low.tide", 10, &[(1, 10)])];
    for _ in 0..3 {
        script.extend([another_account("low.tide"), failure()]);
    }
    let mut account = ScriptedAccount::start(script).await;
    let mut reported = Vec::new();
    for number in 1..=6 {
        reported.extend(account.scrape().await.into_iter().map(|event| (number, event)));
    }
    let expected = [(1, json!(["account.unavailable", []])), (6, json!(["account.failing", ["transient"]]))];
    assert_eq!(reported, expected, "the third failure of another kind");
    account.stop.cancel();
}

#[tokio::test]
async fn isolated_killed_tracker_reports_each_event_once() {
    let tracker = TestTracker::start().await;
    let armed = tempfile::tempdir().unwrap();
    let settings = [("TIDEMARK_FAILPOINTS", armed.path().display().to_string())];
    let organization = tracker.create_organization().await;
    let username = tracker.usernames(Platform::Tiktok)[0].clone();
    let account = tracker.add_account(organization, Platform::Tiktok, &username).await;
    let mut process = tracker.start_process_with(3, &settings);
    tracker.wait_attempted(account).await;
    let published = "select count(*) from events where type = 'video.published' and account_id = $1";
    assert_eq!(tracker.fetch::<i64>(published, account).await, 0);
    for point in ["events-appended", "write-committed"] {
        // The next scrape finds posts as if they were new.
        tracker
            .execute(
                "delete from videos where id in (
                    select id from videos where account_id = $1 order by create_time desc, id limit 2)",
                account,
            )
            .await;
        std::fs::write(armed.path().join(point), "").unwrap();
        tracker.make_due(account).await;
        assert_eq!(process.wait().await, None, "killed at {point}");
        assert!(!armed.path().join(point).exists(), "{point} was not reached");
        process = tracker.start_process_with(3, &settings);
        tracker.wait_attempted(account).await;
        assert_eq!(tracker.fetch::<i64>(published, account).await, 2, "{point}");
    }
}
