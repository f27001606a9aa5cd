//! Several sources of a platform: one that rests leaves its place to the next, what only it can read waits, and one
//! attempt shows whether it is back. And what a fault of our own leaves behind.

use chrono::TimeDelta;
use serde_json::json;
use tidemark::model::platform::Platform;
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::http_source::{HttpSource, HttpSourceConfig};
use tidemark::platforms::{RateThrottle, RequestBudget, Sources};
use tidemark::sandbox::world::Fault;
use tidemark::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use uuid::Uuid;

use crate::example::Example;
use crate::harness::wait_until;
use crate::own::Own;
use crate::watched::Watched;

async fn pause(own: &Own, platform: Platform, source: &str, cause: PauseCause, minutes: i64) {
    let now = own.stores.clock.now().await;
    let until = now + TimeDelta::minutes(minutes);
    let pause = SourcePause {
        platform,
        source: source.to_owned(),
        until,
        cause,
        reason: "the test says so".to_owned(),
    };
    source_pauses::start(own.pg(), &pause, now).await.unwrap();
}

async fn resting(own: &Own) -> Vec<String> {
    source_pauses::fetch_all(own.pg()).await.unwrap().into_iter().map(|pause| pause.source).collect()
}

#[tokio::test]
async fn while_one_source_is_refused_the_next_reads_and_one_attempt_shows_when_it_is_back() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let names = own.names(Platform::Instagram);
    own.sandbox.world.fail_next(Platform::Instagram, Fault::Unauthorized, 1);
    let first = own.add(organization, Platform::Instagram, &names[0]).await;
    own.run(2);
    assert_eq!(own.attempted(first).await.failures, 0);
    let shares = "select coalesce(sum(share_count), 0)::bigint from videos where account_id = $1";
    assert!(own.read::<i64>(shares, first).await > 0, "the collector counts shares");
    // Which sources rest is noted after what was read.
    wait_until("the first one rests", async || (resting(&own).await == ["instagram-graph"]).then_some(()))
        .await;
    let health = own.health().await;
    assert_eq!(health["status"], "degraded");
    assert!(health["detail"].as_str().unwrap().contains("instagram-graph"), "{health}");

    // It is left out until its rest is over.
    let second = own.add(organization, Platform::Instagram, &names[1]).await;
    assert_eq!(own.attempted(second).await.failures, 0);
    assert!(own.read::<i64>(shares, second).await > 0);
    own.sandbox.world.advance(0.1).unwrap();
    let third = own.add(organization, Platform::Instagram, &names[2]).await;
    assert_eq!(own.attempted(third).await.failures, 0);
    assert_eq!(own.read::<i64>(shares, third).await, 0, "Business Discovery has no shares");
    wait_until("it is asked again", async || resting(&own).await.is_empty().then_some(())).await;
    assert_eq!(own.health().await["status"], "ok");
}

#[tokio::test]
async fn what_only_a_resting_source_can_read_waits_and_holds_up_nothing_else() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let name = own.names(Platform::Instagram)[0].clone();
    pause(&own, Platform::Instagram, "http", PauseCause::RateLimit, 30).await;
    let video = Uuid::now_v7();
    sqlx::query(
        "with made as (
            insert into videos (id, subject_id, organization_id, platform, shortcode, is_tracked, tracked_at, added_at, updated_at)
            values ($1, nextval('internal_ids'), $2, 'instagram', 'Cabc', true, now(), now(), now()) returning id, organization_id
         )
         insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
         select id, organization_id, 'instagram', 'video', now() - interval '1 hour' from made",
    )
    .bind(video)
    .bind(organization)
    .execute(own.pg())
    .await
    .unwrap();
    let account = own.add(organization, Platform::Instagram, &name).await;
    own.run(1);
    assert_eq!(own.attempted(account).await.failures, 0);
    let target = own.target(video).await;
    assert_eq!((target.last_attempt_at, target.failures), (None, 0), "it waits for the collector");
    let health = own.health().await;
    assert_eq!(health["status"], "ok", "a limit is no fault: {health}");
    assert!(health["detail"].as_str().unwrap().contains("http"), "{health}");
    own.sandbox.world.advance(0.6).unwrap();
    let read = own.attempted(video).await;
    assert!(read.last_error.is_some_and(|error| error.contains("not found")));
    wait_until("the collector is asked again", async || resting(&own).await.is_empty().then_some(())).await;
}

#[tokio::test]
async fn a_long_rest_makes_nothing_late_until_a_while_after_its_end() {
    let own = Own::start().await;
    let organization = own.organization().await;
    own.add_backlog(organization, Platform::Tiktok, 3).await;
    assert_eq!(own.health().await["status"], "degraded", "due since an hour, and nobody looks at it");
    pause(&own, Platform::Tiktok, "tiktok-research", PauseCause::RateLimit, 60).await;
    let health = own.health().await;
    assert_eq!(health["status"], "ok", "{health}");
    assert!(health["detail"].as_str().unwrap().contains("rests until"), "{health}");
    own.sandbox.world.advance(1.1).unwrap();
    assert_eq!(own.health().await["status"], "ok");
    own.sandbox.world.advance(0.2).unwrap();
    assert_eq!(own.health().await["status"], "degraded");
}

#[tokio::test]
async fn a_panic_inside_a_scrape_is_a_failed_attempt() {
    let own = Own::start().await;
    let organization = own.organization().await;
    let bad = own.add(organization, Platform::Tiktok, "bad.one").await;
    let good = own.add(organization, Platform::Tiktok, "good.one").await;
    let watched = Watched::new(Some("bad.one"));
    own.run_with(1, watched.sources());
    let target = own.attempted(bad).await;
    assert_eq!((target.failures, target.lease_owner), (1, None));
    assert!(target.last_error.unwrap().contains("bug in the tracker"));
    assert!(target.next_attempt_at > target.last_attempt_at.unwrap() + TimeDelta::minutes(1));
    assert_eq!(own.attempted(good).await.failures, 0, "the tracker goes on");
}

#[tokio::test]
async fn the_example_of_the_documentation_is_tracked() {
    let own = Own::start().await;
    let organization = own.organization().await;
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
    own.run_with(1, sources.into());
    for platform in Platform::ALL {
        let account = own.add(organization, platform, "tide.lines").await;
        assert_eq!(own.attempted(account).await.last_error, None);
        let read: serde_json::Value = own
            .read("select jsonb_build_object('followers', follower_count, 'posts', total_post_count) from accounts where id = $1", account)
            .await;
        assert_eq!(read, json!({"followers": 4200, "posts": 45}));
    }
}
