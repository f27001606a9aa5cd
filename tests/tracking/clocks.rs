//! A process whose clock differs from Postgres' does not scrape, and says so.

use chrono::{DateTime, TimeDelta, Utc};
use clap::Parser;
use harness::{CapturedLog, WAIT_TIMEOUT, wait_until};
use sandbox::Fault;
use tidemark::app::{Clock, Databases};
use tidemark::import::{self, ImportOptions};
use tidemark::model::platform::Platform;
use tidemark::store::tracking::source_pauses;
use tidemark::worker::{self, TrackArgs};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::test_tracker::TestTracker;

fn clock_with_error(error: TimeDelta) -> Clock {
    let clock = Clock::system();
    clock.set_error(error);
    clock
}

/// Runs a tracker whose clock becomes an hour wrong after its scheduler has compared it, which lasts some seconds.
async fn run_until_wrong(tracker: &TestTracker, organization: Uuid) {
    let first = &tracker.usernames(Platform::Tiktok)[0];
    let first = tracker.add_account(organization, Platform::Tiktok, first).await;
    let clock = Clock::system();
    tracker.run_by(1, clock.clone());
    tracker.wait_attempted(first).await;
    clock.set_error(TimeDelta::hours(1));
}

async fn wait_degraded(tracker: &TestTracker, detail: &str) {
    wait_until("health reports the clock", async || {
        let health = tracker.health().await;
        let is_reported = health["detail"].as_str().is_some_and(|text| text.contains(detail));
        (is_reported && health["status"] == "degraded").then_some(())
    })
    .await;
}

#[tokio::test]
async fn scrape_by_a_wrong_clock_is_not_recorded() {
    let (log, _guard) = CapturedLog::start("tidemark=error");
    let tracker = TestTracker::start_by_machine(&[]).await;
    let organization = tracker.create_organization().await;
    run_until_wrong(&tracker, organization).await;
    let second = &tracker.usernames(Platform::Tiktok)[1];
    let second = tracker.add_account(organization, Platform::Tiktok, second).await;
    wait_degraded(&tracker, "does not scrape: its clock is 3600 s ahead of Postgres'").await;
    wait_until("the lease is released", async || {
        tracker.target(second).await.lease_owner.is_none().then_some(())
    })
    .await;
    let target = tracker.target(second).await;
    assert_eq!((target.last_attempt_at, target.last_error), (None, None));
    let videos: i64 = tracker.fetch("select count(*) from videos where account_id = $1", second).await;
    assert_eq!(videos, 0);
    let log = log.take();
    assert!(log.len() == 1 && log[0].contains("the clock is wrong, nothing is scraped"), "{log:?}");

    tracker.run(1);
    let target = tracker.wait_attempted(second).await;
    assert_eq!(target.failures, 0, "a tracker with a right clock takes over");
    assert!(target.last_attempt_at.unwrap() < Utc::now() + TimeDelta::minutes(1));
}

#[tokio::test]
async fn wrong_clock_pauses_no_source() {
    let tracker = TestTracker::start_by_machine(&["--instagram-sources=instagram-graph"]).await;
    let organization = tracker.create_organization().await;
    run_until_wrong(&tracker, organization).await;
    tracker.sandbox.world.fail_next(sandbox::Platform::Instagram, Fault::Unauthorized, 1);
    let account = &tracker.usernames(Platform::Instagram)[0];
    let account = tracker.add_account(organization, Platform::Instagram, account).await;
    wait_degraded(&tracker, "its clock is 3600 s ahead of Postgres'").await;
    wait_until("the lease is released", async || {
        tracker.target(account).await.lease_owner.is_none().then_some(())
    })
    .await;
    assert_eq!(source_pauses::fetch_all(tracker.pg()).await.unwrap(), []);
}

#[tokio::test]
async fn tracker_with_a_wrong_clock_leases_nothing() {
    let tracker = TestTracker::start_by_machine(&[]).await;
    let organization = tracker.create_organization().await;
    tracker.add_account(organization, Platform::Tiktok, &tracker.usernames(Platform::Tiktok)[0]).await;
    let stop = tracker.run_by(1, clock_with_error(TimeDelta::seconds(-90)));
    wait_degraded(&tracker, "s behind Postgres'").await;
    stop.cancel();
    tracker.run_by(1, clock_with_error(TimeDelta::days(400)));
    wait_degraded(&tracker, "34560000 s ahead of Postgres'").await;
    // The scheduler polls several times before it compares the clocks again.
    let seen_at = async || -> DateTime<Utc> {
        sqlx::query_scalar("select seen_at from skewed_clocks").fetch_one(tracker.pg()).await.unwrap()
    };
    let first = seen_at().await;
    wait_until("the clocks are compared again", async || (seen_at().await > first).then_some(())).await;
    assert_eq!(tracker.request_count(Platform::Tiktok), 0);
}

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    track: TrackArgs,
}

#[tokio::test]
async fn processes_refuse_or_report_a_wrong_clock() {
    let tracker = TestTracker::start_by_machine(&[]).await;
    let organization = tracker.create_organization().await;
    let databases = Databases { clock: clock_with_error(TimeDelta::hours(1)), ..tracker.databases.clone() };
    let arguments = ["tidemark", "--database-url=postgres://unused", "--clickhouse-url=http://unused"];
    let args = Command::try_parse_from(arguments).unwrap().track;
    let sources = tidemark::platforms::Sources::new(Vec::new());
    let run = worker::run(args, databases.clone(), sources, CancellationToken::new());
    let ended = tokio::time::timeout(WAIT_TIMEOUT, run).await.expect("the tracker does not start");
    let text = ended.unwrap_err().to_string();
    assert!(text.starts_with("this machine's clock is 3600 s ahead of Postgres': synchronize"), "{text}");
    wait_degraded(&tracker, "its clock is 3600 s ahead of Postgres'").await;

    let imported = import::load(&databases, organization, Vec::new(), &ImportOptions::default()).await;
    assert!(imported.unwrap_err().to_string().starts_with("this machine's clock is 3600 s ahead"));

    tracker.databases.clock.set_error(TimeDelta::seconds(-90));
    let postgres = tracker.health_checks(&Platform::ALL).await["postgres"].clone();
    assert_eq!(postgres["status"], "degraded");
    assert!(postgres["detail"].as_str().unwrap().contains("s behind Postgres'"), "{postgres}");
}
