//! Scheduling: slots per platform, fairness between organizations, leases, pauses and failed attempts.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use harness::{CapturedLog, WAIT_TIMEOUT, wait_until};
use sandbox::Fault;
use serde_json::json;
use tidemark::model::platform::Platform;
use tidemark::store::records::accounts::change::{self, AccountChange};
use tidemark::store::tracking::leases::{self, LeaseRequest};
use tidemark::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use tidemark::worker::tracker::Tracker;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::test_tracker::TestTracker;

/// One source per platform.
const ONE_SOURCE_EACH: [&str; 2] =
    ["--instagram-sources=instagram-graph", "--tiktok-sources=tiktok-research"];

#[tokio::test]
async fn scrape_that_cannot_be_recorded_fails() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    sqlx::raw_sql(
        "create function reject() returns trigger language plpgsql as $$ begin raise 'rejected'; end $$;
         create trigger reject before insert on videos for each row execute function reject();",
    )
    .execute(tracker.pg())
    .await
    .unwrap();
    let account =
        tracker.add_account(organization, Platform::Tiktok, &tracker.usernames(Platform::Tiktok)[0]).await;
    tracker.run(1);
    let target = tracker.wait_attempted(account).await;
    assert_eq!(target.failures, 1);
    assert!(target.last_error.unwrap().contains("could not be recorded"));
    assert!(target.next_attempt_at > target.last_attempt_at.unwrap() + TimeDelta::minutes(1));
}

#[tokio::test]
async fn interval_changed_during_a_scrape_decides_when_the_next_follows() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let username = tracker.usernames(Platform::Tiktok)[0].clone();
    let account = tracker.add_account(organization, Platform::Tiktok, &username).await;
    tracker.run(1);
    assert!(tracker.wait_attempted(account).await.follows_after(TimeDelta::hours(24)));
    for hours in [6, 720] {
        let mut write = tracker.lock_account(organization, account).await;
        tracker.make_due(account).await;
        tracker.wait_blocked().await;
        let change = AccountChange { scrape_interval_hours: Some(hours), ..AccountChange::default() };
        change::update(&mut write, account, &change).await.unwrap();
        write.commit().await.unwrap();
        let target = tracker.wait_attempted(account).await;
        assert_eq!(target.failures, 0);
        assert!(target.follows_after(TimeDelta::hours(hours.into())), "{hours}: {target:?}");
    }
}

#[tokio::test]
async fn failures_delay_the_next_attempt_up_to_the_interval() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let account = tracker.add_account(organization, Platform::Tiktok, "missing.one").await;
    tracker.run(1);
    assert!(tracker.wait_attempted(account).await.follows_after(TimeDelta::minutes(2)));
    for (failures, delay) in [(5, TimeDelta::minutes(64)), (20, TimeDelta::hours(24))] {
        sqlx::query("update scrape_targets set failures = $2 where id = $1")
            .bind(account)
            .bind(failures)
            .execute(tracker.pg())
            .await
            .unwrap();
        tracker.make_due(account).await;
        let target = tracker.wait_attempted(account).await;
        assert_eq!(target.failures, failures + 1);
        assert!(target.follows_after(delay), "{target:?}");
    }
}

#[tokio::test]
async fn hanging_scrape_blocks_only_its_slot() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let instagram = tracker.usernames(Platform::Instagram);
    tracker.sandbox.world.fail_next(sandbox::Platform::Instagram, Fault::Hang, 1);
    let hanging = tracker.add_account(organization, Platform::Instagram, &instagram[0]).await;
    tracker.run(2);
    wait_until("the scrape hangs", async || (tracker.request_count(Platform::Instagram) > 0).then_some(()))
        .await;
    // A free slot scrapes new accounts without waiting for the hanging scrape or for the renewal of its lease.
    let lease_end = async || -> DateTime<Utc> {
        tracker.fetch("select lease_until from scrape_targets where id = $1", hanging).await
    };
    let mut renewed = Vec::new();
    for username in &instagram[1..3] {
        let before = lease_end().await;
        let account = tracker.add_account(organization, Platform::Instagram, username).await;
        assert_eq!(tracker.wait_attempted(account).await.failures, 0);
        renewed.push(lease_end().await != before);
    }
    assert!(renewed.contains(&false), "each scrape waited for a renewal of leases");
    // Without a free slot, the other platform has its own.
    tracker.sandbox.world.fail_next(sandbox::Platform::Instagram, Fault::Hang, 1);
    tracker.add_account(organization, Platform::Instagram, "another.one").await;
    let tiktok =
        tracker.add_account(organization, Platform::Tiktok, &tracker.usernames(Platform::Tiktok)[0]).await;
    assert_eq!(tracker.wait_attempted(tiktok).await.failures, 0);
    assert_eq!(tracker.target(hanging).await.last_attempt_at, None);
}

#[tokio::test]
async fn new_account_does_not_wait_for_a_backlog() {
    let tracker = TestTracker::start().await;
    let (large, small) = (tracker.create_organization().await, tracker.create_organization().await);
    tracker.add_due_accounts(large, Platform::Tiktok, 2_000).await;
    let names = tracker.usernames(Platform::Tiktok);
    let mut new_accounts = Vec::new();
    for name in &names[..3] {
        new_accounts.push(tracker.add_account(small, Platform::Tiktok, name).await);
    }
    new_accounts.push(tracker.add_account(large, Platform::Tiktok, &names[3]).await);
    let stop = tracker.run(1);
    let mut last = None;
    for id in &new_accounts {
        last = last.max(tracker.wait_attempted(*id).await.last_attempt_at);
    }
    stop.cancel();
    let backlog: i64 = sqlx::query_scalar(
        "select count(*) from scrape_targets where organization_id = $1 and last_attempt_at < $2",
    )
    .bind(large)
    .bind(last)
    .fetch_one(tracker.pg())
    .await
    .unwrap();
    assert!((1..50).contains(&backlog), "{backlog} accounts of the backlog came first");
}

#[tokio::test]
async fn expired_lease_is_not_leased_again_by_its_holder() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    tracker.add_due_accounts(organization, Platform::Tiktok, 3).await;
    let request = tracker.lease_request(Platform::Tiktok, 2).await;
    let (first, _) = leases::lease(tracker.pg(), request).await.unwrap();
    let in_flight: Vec<_> = first.iter().map(|leased| leased.id).collect();
    assert_eq!(in_flight.len(), 2);
    tracker
        .execute(
            "update scrape_targets set lease_until = now() - interval '1 s' where organization_id = $1",
            organization,
        )
        .await;
    let (second, _) =
        leases::lease(tracker.pg(), LeaseRequest { in_flight: &in_flight, ..request }).await.unwrap();
    assert_eq!(second.len(), 1);
    assert!(!in_flight.contains(&second[0].id));
    let (other_process, _) =
        leases::lease(tracker.pg(), LeaseRequest { owner: Uuid::now_v7(), ..request }).await.unwrap();
    assert_eq!(other_process.len(), 2, "another process leases expired targets");
}

#[tokio::test]
async fn longest_pause_of_a_source_applies() {
    let tracker = TestTracker::start_with(&ONE_SOURCE_EACH).await;
    let organization = tracker.create_organization().await;
    // Postgres stores microseconds.
    let now = tracker.databases.clock.now().await.trunc_subsecs(6);
    let pause = |minutes, cause| SourcePause {
        platform: Platform::Tiktok,
        source: "tiktok-research".to_owned(),
        until: now + TimeDelta::minutes(minutes),
        cause,
        reason: "paused by the test".to_owned(),
    };
    assert!(
        source_pauses::start(tracker.pg(), &pause(30, PauseCause::RateLimit), now).await.unwrap(),
        "the pause is longer"
    );
    assert!(
        !source_pauses::start(tracker.pg(), &pause(5, PauseCause::Credentials), now).await.unwrap(),
        "the pause is shorter"
    );
    let pauses = source_pauses::fetch_all(tracker.pg()).await.unwrap();
    assert_eq!((pauses[0].until - now, pauses[0].cause), (TimeDelta::minutes(30), PauseCause::RateLimit));

    let name = &tracker.usernames(Platform::Tiktok)[0];
    let account = tracker.add_account(organization, Platform::Tiktok, name).await;
    let other = tracker
        .add_account(organization, Platform::Instagram, &tracker.usernames(Platform::Instagram)[0])
        .await;
    tracker.run(2);
    tracker.wait_attempted(other).await;
    assert_eq!(
        (tracker.target(account).await.last_attempt_at, tracker.request_count(Platform::Tiktok)),
        (None, 0)
    );
    tracker.sandbox.world.advance(0.6).unwrap();
    tracker.wait_attempted(account).await;
    wait_until("the pause is over", async || {
        source_pauses::fetch_all(tracker.pg()).await.unwrap().is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn rejected_credentials_pause_the_source() {
    let tracker = TestTracker::start_with(&ONE_SOURCE_EACH).await;
    let organization = tracker.create_organization().await;
    tracker.sandbox.world.fail_next(sandbox::Platform::Instagram, Fault::Unauthorized, 1);
    let mut accounts = Vec::new();
    for name in &tracker.usernames(Platform::Instagram)[..2] {
        accounts.push(tracker.add_account(organization, Platform::Instagram, name).await);
    }
    let stop = tracker.run(1);
    let pause = wait_until("the source is paused", async || {
        source_pauses::fetch_all(tracker.pg()).await.unwrap().pop()
    })
    .await;
    assert_eq!(pause.cause, PauseCause::Credentials);
    let health = tracker.health().await;
    assert_eq!(health["status"], "degraded");
    assert!(
        health["detail"].as_str().is_some_and(|detail| detail.starts_with("instagram rejected")),
        "{health}"
    );
    let requests = tracker.request_count(Platform::Instagram);
    wait_until("the account is released", async || {
        let target = tracker.target(accounts[0]).await;
        target.lease_owner.is_none().then(|| assert_eq!((target.failures, target.last_error), (0, None)))
    })
    .await;
    stop.cancel();
    assert_eq!(tracker.request_count(Platform::Instagram), requests);
    // A new process may have other credentials and tries them at once.
    tracker.run(1);
    for account in accounts {
        assert_eq!(tracker.wait_attempted(account).await.failures, 0);
    }
    let health = tracker.health().await;
    assert_eq!((&health["status"], &health["detail"]), (&json!("ok"), &json!(null)));
}

#[tokio::test]
async fn tracker_stops_while_a_statement_waits_for_a_lock() {
    let (log, _guard) = CapturedLog::start("tidemark=warn");
    let tracker = TestTracker::start().await;
    for lock in ["lock table source_pauses", "lock table scrape_targets"] {
        let mut holder = tracker.pg().begin().await.unwrap();
        sqlx::query(lock).execute(&mut *holder).await.unwrap();
        let stop = CancellationToken::new();
        let stopped = Tracker::new(tracker.databases.clone(), tracker.sources.clone());
        let running = tokio::spawn({
            let stop = stop.clone();
            async move { stopped.run(1, stop).await }
        });
        tracker.wait_blocked().await;
        stop.cancel();
        tokio::time::timeout(WAIT_TIMEOUT, running).await.expect("the tracker stops").unwrap();
        // It has not waited for the timeout of the statement, which would be logged.
        assert_eq!(log.take(), [""; 0]);
    }
}
