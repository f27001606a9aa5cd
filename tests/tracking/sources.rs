//! Several sources of a platform: a paused one is skipped, targets that only it can read wait, and one attempt resumes
//! it.

use chrono::TimeDelta;
use harness::{rebuild_derived_tables, wait_until};
use sandbox::Fault;
use serde_json::json;
use tidemark::model::platform::Platform;
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::http_source::{HttpSource, HttpSourceConfig};
use tidemark::platforms::{RateThrottle, RequestBudget, Sources};
use tidemark::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use uuid::Uuid;

use crate::example::Example;
use crate::recording_source::RecordingSource;
use crate::test_tracker::TestTracker;

async fn pause(tracker: &TestTracker, platform: Platform, source: &str, cause: PauseCause, minutes: i64) {
    let now = tracker.databases.clock.now().await;
    let until = now + TimeDelta::minutes(minutes);
    let pause = SourcePause {
        platform,
        source: source.to_owned(),
        until,
        cause,
        reason: "paused by the test".to_owned(),
    };
    source_pauses::start(tracker.pg(), &pause, now).await.unwrap();
}

async fn paused_sources(tracker: &TestTracker) -> Vec<String> {
    source_pauses::fetch_all(tracker.pg()).await.unwrap().into_iter().map(|pause| pause.source).collect()
}

#[tokio::test]
async fn next_source_reads_until_an_attempt_resumes_the_first() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let names = tracker.usernames(Platform::Instagram);
    tracker.sandbox.world.fail_next(sandbox::Platform::Instagram, Fault::Unauthorized, 1);
    let first = tracker.add_account(organization, Platform::Instagram, &names[0]).await;
    tracker.run(2);
    assert_eq!(tracker.wait_attempted(first).await.failures, 0);
    let shares = "select coalesce(sum(share_count), 0)::bigint from videos where account_id = $1";
    assert!(tracker.fetch::<i64>(shares, first).await > 0, "the HTTP source has shares");
    // Pauses are recorded after the scrape.
    wait_until("the first source is paused", async || {
        (paused_sources(&tracker).await == ["instagram-graph"]).then_some(())
    })
    .await;
    let health = tracker.health().await;
    assert_eq!(health["status"], "degraded");
    assert!(health["detail"].as_str().unwrap().contains("instagram-graph"), "{health}");

    // It is skipped until its pause is over.
    let second = tracker.add_account(organization, Platform::Instagram, &names[1]).await;
    assert_eq!(tracker.wait_attempted(second).await.failures, 0);
    assert!(tracker.fetch::<i64>(shares, second).await > 0);
    tracker.sandbox.world.advance(0.1).unwrap();
    let third = tracker.add_account(organization, Platform::Instagram, &names[2]).await;
    assert_eq!(tracker.wait_attempted(third).await.failures, 0);
    assert_eq!(tracker.fetch::<i64>(shares, third).await, 0, "Business Discovery has no shares");
    wait_until("the source is resumed", async || paused_sources(&tracker).await.is_empty().then_some(()))
        .await;
    assert_eq!(tracker.health().await["status"], "ok");
}

#[tokio::test]
async fn target_of_a_paused_source_waits_alone() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let name = tracker.usernames(Platform::Instagram)[0].clone();
    pause(&tracker, Platform::Instagram, "http", PauseCause::RateLimit, 30).await;
    let video = Uuid::now_v7();
    sqlx::query(
        "with made as (
            insert into videos (id, subject_id, organization_id, platform, shortcode, is_tracked, tracked_at, added_at, updated_at)
            values ($1, nextval('internal_ids'), $2, 'instagram', 'Cabc', true, now(), now(), now()) returning id, organization_id
         )
         insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
         select id, organization_id, 'instagram', 'video', service_now() - interval '1 hour' from made",
    )
    .bind(video)
    .bind(organization)
    .execute(tracker.pg())
    .await
    .unwrap();
    rebuild_derived_tables(tracker.pg(), organization).await;
    let account = tracker.add_account(organization, Platform::Instagram, &name).await;
    tracker.run(1);
    assert_eq!(tracker.wait_attempted(account).await.failures, 0);
    let target = tracker.target(video).await;
    assert_eq!((target.last_attempt_at, target.failures), (None, 0), "it waits for the HTTP source");
    let health = tracker.health().await;
    assert_eq!(health["status"], "ok", "a rate limit is not an error: {health}");
    assert!(health["detail"].as_str().unwrap().contains("http"), "{health}");
    tracker.sandbox.world.advance(0.6).unwrap();
    let target = tracker.wait_attempted(video).await;
    assert!(target.last_error.is_some_and(|error| error.contains("not found")));
    wait_until("the source is resumed", async || paused_sources(&tracker).await.is_empty().then_some(()))
        .await;
}

#[tokio::test]
async fn targets_are_late_only_some_time_after_a_pause() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    tracker.add_due_accounts(organization, Platform::Tiktok, 3).await;
    assert_eq!(tracker.health().await["status"], "degraded", "due for an hour without a tracker");
    pause(&tracker, Platform::Tiktok, "tiktok-research", PauseCause::RateLimit, 60).await;
    let health = tracker.health().await;
    assert_eq!(health["status"], "ok", "{health}");
    assert!(health["detail"].as_str().unwrap().contains("paused until"), "{health}");
    tracker.sandbox.world.advance(1.1).unwrap();
    assert_eq!(tracker.health().await["status"], "ok");
    tracker.sandbox.world.advance(0.2).unwrap();
    assert_eq!(tracker.health().await["status"], "degraded");
}

#[tokio::test]
async fn panic_in_a_scrape_is_a_failed_attempt() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let bad = tracker.add_account(organization, Platform::Tiktok, "bad.one").await;
    let good = tracker.add_account(organization, Platform::Tiktok, "good.one").await;
    let source = RecordingSource::new(Some("bad.one"));
    tracker.run_with(1, source.sources());
    let target = tracker.wait_attempted(bad).await;
    assert_eq!((target.failures, target.lease_owner), (1, None));
    assert!(target.last_error.unwrap().contains("bug in the tracker"));
    assert!(target.next_attempt_at > target.last_attempt_at.unwrap() + TimeDelta::minutes(1));
    assert_eq!(tracker.wait_attempted(good).await.failures, 0, "the tracker continues");
}

#[tokio::test]
async fn example_collector_of_the_docs_is_tracked() {
    // The example's posts have times of the machine.
    let tracker = TestTracker::start_by_machine(&[]).await;
    let organization = tracker.create_organization().await;
    let example = Example::start(None);
    let source = |platform| {
        let config = HttpSourceConfig {
            base: example.url.parse().unwrap(),
            token: None,
            throttle: RateThrottle::new("http", 2, None, RequestBudget::in_memory()),
            limits: RequestLimits::default(),
        };
        std::sync::Arc::new(HttpSource::new(config, platform).unwrap()) as _
    };
    let sources = Sources::new(Platform::ALL.map(source).into());
    tracker.run_with(1, sources.into());
    for platform in Platform::ALL {
        let account = tracker.add_account(organization, platform, "tide.lines").await;
        assert_eq!(tracker.wait_attempted(account).await.last_error, None);
        let counts: serde_json::Value = tracker
            .fetch("select jsonb_build_object('followers', follower_count, 'posts', total_post_count) from accounts where id = $1", account)
            .await;
        assert_eq!(counts, json!({"followers": 4200, "posts": 45}));
    }
}
