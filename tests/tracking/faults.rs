//! Invalid responses: an account keeps its last good state, and each kind of fault is logged once.

use std::sync::Arc;

use harness::{CapturedLog, wait_until, wake_trackers};
use serde_json::{Value, json};
use tidemark::model::platform::Platform;
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::http_source::{HttpSource, HttpSourceConfig};
use tidemark::platforms::{RateThrottle, RequestBudget, Sources};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::canned::{self, CannedResponse, CannedServer};
use crate::test_tracker::{Target, TestTracker};

/// A source of Instagram that a server answers.
pub fn sources(server: &CannedServer) -> Arc<Sources> {
    let limits = RequestLimits { timeout: std::time::Duration::from_secs(5), max_response_bytes: 4 << 20 };
    let config = HttpSourceConfig {
        base: server.url.clone(),
        token: None,
        throttle: RateThrottle::new("http", 8, None, RequestBudget::in_memory()),
        limits,
    };
    Arc::new(Sources::new(vec![Arc::new(HttpSource::new(config, Platform::Instagram).unwrap())]))
}

fn good() -> Value {
    json!({
        "profile": {"name": "Mara", "follower_count": 1200, "post_count": 1},
        "posts": [{"id": "77", "create_time": harness::now().to_rfc3339(), "view_count": 500, "like_count": 40,
            "comment_count": 3, "description": "last good"}],
    })
}

/// Accounts of three organizations after one good scrape each; the server's next responses differ.
struct ScrapedAccounts<'a> {
    tracker: &'a TestTracker,
    accounts: Vec<Uuid>,
    stop: CancellationToken,
}

impl<'a> ScrapedAccounts<'a> {
    async fn start(tracker: &'a TestTracker, server: &CannedServer) -> Self {
        let mut accounts = Vec::new();
        for _ in 0..3 {
            let organization = tracker.create_organization().await;
            let name = format!("u{}", &Uuid::now_v7().simple().to_string()[16..]);
            accounts.push(tracker.add_account(organization, Platform::Instagram, &name).await);
        }
        let stop = tracker.run_with(1, sources(server));
        for account in &accounts {
            assert_eq!(tracker.wait_attempted(*account).await.last_error, None);
        }
        ScrapedAccounts { tracker, accounts, stop }
    }

    /// The fields of an account that a response sets.
    async fn state(&self, account: Uuid) -> Value {
        self.tracker
            .fetch(
                "select jsonb_build_object('name', a.name, 'followers', a.follower_count, 'views', a.view_count,
                    'likes', a.like_count, 'comments', a.comment_count, 'posts', a.total_post_count,
                    'unavailable', a.is_unavailable, 'text', v.description)
                 from accounts a join videos v on v.account_id = a.id where a.id = $1",
                account,
            )
            .await
    }

    /// Scrapes them again.
    async fn scrape_again(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        for account in &self.accounts {
            self.tracker.make_due(*account).await;
        }
        for account in &self.accounts {
            targets.push(self.tracker.wait_attempted(*account).await);
        }
        targets
    }
}

#[tokio::test]
async fn invalid_responses_change_nothing_and_are_logged_once() {
    let (log, _guard) = CapturedLog::start("tidemark=warn");
    let tracker = TestTracker::start().await;
    for (case, bad) in [
        ("HTML", canned::text(200, "<!doctype html><title>Please wait</title>")),
        ("truncated JSON", canned::text(200, r#"{"profile": {"name": "Ma"#)),
        ("a closed connection", CannedResponse::Truncated),
        ("an error inside a 200", canned::json(200, &json!({"error": {"code": "broken", "message": "oh"}}))),
        ("no posts", canned::json(200, &json!({"profile": {"name": "Other", "follower_count": 1}}))),
        (
            "a post without id",
            canned::json(200, &json!({"profile": {"name": "Other"}, "posts": [{"view_count": 1}]})),
        ),
        ("an endless response", CannedResponse::Endless),
        ("a timeout", CannedResponse::Silent),
        ("a redirect loop", CannedResponse::Full(302, vec![("location", "/base".to_owned())], String::new())),
        ("an outage", canned::text(503, "")),
    ] {
        let good = canned::json(200, &good());
        let server = CannedServer::start(vec![good.clone(), good.clone(), good, bad]).await;
        let scraped = ScrapedAccounts::start(&tracker, &server).await;
        let mut before = Vec::new();
        for account in &scraped.accounts {
            before.push(scraped.state(*account).await);
        }
        assert_eq!((&before[0]["followers"], &before[0]["views"]), (&json!(1200), &json!(500)), "{case}");
        log.take();
        for target in scraped.scrape_again().await {
            assert_eq!(target.failures, 1, "{case}");
            assert!(target.last_error.is_some(), "{case}");
            assert!(target.next_attempt_at > target.last_attempt_at.unwrap(), "{case}");
        }
        scraped.stop.cancel();
        let lines = log.take();
        assert_eq!(lines.len(), 1, "{case}: {lines:#?}");
        for (account, before) in scraped.accounts.iter().zip(before) {
            assert_eq!(scraped.state(*account).await, before, "{case}");
        }
    }
}

#[tokio::test]
async fn rejected_credentials_fail_no_account_and_are_logged_once() {
    let (log, _guard) = CapturedLog::start("tidemark=warn");
    let tracker = TestTracker::start().await;
    let good = canned::json(200, &good());
    let server =
        CannedServer::start(vec![good.clone(), good.clone(), good, canned::json(401, &json!({}))]).await;
    let scraped = ScrapedAccounts::start(&tracker, &server).await;
    let before = scraped.state(scraped.accounts[0]).await;
    log.take();
    tracker
        .execute(
            "update scrape_targets set next_attempt_at = service_now() - interval '1 minute' where id <> $1",
            Uuid::nil(),
        )
        .await;
    wake_trackers(tracker.pg()).await;
    wait_until("the source is paused", async || {
        tidemark::store::tracking::source_pauses::fetch_all(tracker.pg()).await.unwrap().pop()
    })
    .await;
    // The next attempt after the pause is rejected as well.
    tracker.sandbox.world.advance(0.1).unwrap();
    wait_until("another attempt is made", async || (server.requests().len() == 5).then_some(())).await;
    wait_until("the source is paused again", async || {
        let pause = tidemark::store::tracking::source_pauses::fetch_all(tracker.pg()).await.unwrap().pop()?;
        (pause.until > tracker.sandbox.world.now()).then_some(())
    })
    .await;
    let lines = log.take();
    assert!(lines.len() == 1 && lines[0].contains("credentials"), "{lines:#?}");
    for account in &scraped.accounts {
        assert_eq!((tracker.target(*account).await.failures, &scraped.state(*account).await), (0, &before));
    }
}

#[tokio::test]
async fn unsupported_target_does_not_resume_a_paused_source() {
    let (log, _guard) = CapturedLog::start("tidemark=warn");
    let tracker = TestTracker::start().await;
    let rejected = canned::json(401, &json!({}));
    let unsupported =
        canned::json(422, &json!({"error": {"code": "unsupported", "message": "not that one"}}));
    let server = CannedServer::start(vec![rejected.clone(), unsupported, rejected]).await;
    let organization = tracker.create_organization().await;
    let account = tracker.add_account(organization, Platform::Instagram, "some.one").await;
    tracker.run_with(1, sources(&server));
    let paused = async || {
        let pause = tidemark::store::tracking::source_pauses::fetch_all(tracker.pg()).await.unwrap().pop()?;
        (pause.until > tracker.sandbox.world.now()).then_some(())
    };
    wait_until("the source is paused", paused).await;
    tracker.sandbox.world.advance(0.1).unwrap();
    assert_eq!(tracker.wait_attempted(account).await.failures, 1, "the HTTP source cannot read it");
    tracker.sandbox.world.advance(0.1).unwrap();
    wait_until("another attempt is made", async || (server.requests().len() == 3).then_some(())).await;
    wait_until("the source is paused again", paused).await;
    let lines = log.take();
    assert!(lines.len() == 1 && lines[0].contains("credentials"), "{lines:#?}");
}

#[tokio::test]
async fn impossible_counters_are_ignored_and_strings_parsed() {
    let (log, _guard) = CapturedLog::start("tidemark=warn");
    let tracker = TestTracker::start().await;
    let mut impossible = good();
    impossible["profile"]["follower_count"] = json!("1300");
    impossible["posts"][0]["view_count"] = json!(-5);
    impossible["posts"][0]["like_count"] = json!("9223372036854775807");
    impossible["posts"][0]["comment_count"] = json!("17");
    let good = canned::json(200, &good());
    let server =
        CannedServer::start(vec![good.clone(), good.clone(), good, canned::json(200, &impossible)]).await;
    let scraped = ScrapedAccounts::start(&tracker, &server).await;
    log.take();
    assert!(scraped.scrape_again().await.iter().all(|target| target.last_error.is_none()));
    for account in &scraped.accounts {
        let state = scraped.state(*account).await;
        assert_eq!(
            ["followers", "views", "likes", "comments"].map(|field| state[field].as_i64().unwrap()),
            [1300, 500, 40, 17]
        );
    }
    let lines = log.take();
    assert_eq!(lines.iter().filter(|line| line.contains("impossible counter")).count(), 2, "{lines:#?}");
    assert_eq!(lines.len(), 2, "one for views and one for likes: {lines:#?}");
}

#[tokio::test]
async fn page_of_10_000_posts_is_cut_to_the_limit() {
    let tracker = TestTracker::start().await;
    let now = harness::now();
    let posts: Vec<Value> = (0..10_000)
        .map(|n| json!({"id": format!("{n}"), "create_time": (now - chrono::TimeDelta::minutes(n)).to_rfc3339(), "view_count": 1}))
        .collect();
    let server = CannedServer::start(vec![canned::json(200, &json!({"profile": {}, "posts": posts}))]).await;
    let organization = tracker.create_organization().await;
    let account = tracker.add_account(organization, Platform::Instagram, "some.one").await;
    tracker.run_with(1, sources(&server));
    assert_eq!(tracker.wait_attempted(account).await.last_error, None);
    let (count, oldest): (i64, i64) =
        sqlx::query_as("select count(*), max(external_id::bigint) from videos where account_id = $1")
            .bind(account)
            .fetch_one(tracker.pg())
            .await
            .unwrap();
    assert_eq!((count, oldest), (500, 499), "the newest");
}
