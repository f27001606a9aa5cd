//! `tidemark repair`: times and days that a tracker wrote 400 days ahead are reset, and scrapes go on.

use chrono::{DateTime, TimeDelta, Utc};
use harness::IsolatedStores;
use serde_json::Value;
use tidemark::app::Clock;
use tidemark::model::platform::Platform;
use tidemark::rollup::repair::RepairSummary;
use tidemark::rollup::{repair, verify};
use tidemark::store::outbox::visibility;
use tidemark::worker::relay;
use uuid::Uuid;

use crate::test_tracker::TestTracker;

/// The snapshots of an organization's accounts and videos by day, relative to today, and the days of its rollup.
async fn days(stores: &IsolatedStores, organization: Uuid) -> Vec<i32> {
    let sql = "select distinct toInt32(date - toDate(now('UTC'))) as day from
               (
                   select date from video_snapshots final where org_id = {org:UUID}
                   union all select date from account_snapshots final where org_id = {org:UUID}
                   union all select date from account_daily final where org_id = {org:UUID}
               )
               order by day";
    let query = stores.clickhouse().query_raw(sql).param("org", organization);
    query.fetch_all::<i32>().await.unwrap()
}

/// Whether a time of the organization's records and targets lies ahead of Postgres' clock.
async fn has_future_times(tracker: &TestTracker, organization: Uuid) -> bool {
    tracker
        .fetch(
            "select exists (select from accounts where organization_id = $1 and (tracked_since > (now() at time zone 'UTC')::date
                or greatest(observed_at, first_scrape_time, last_scrape_time, added_at, updated_at, category_observed_at) > now()))
             or exists (select from videos where organization_id = $1 and (tracked_since > (now() at time zone 'UTC')::date
                or greatest(observed_at, first_scrape_time, last_scrape_time, added_at, updated_at) > now()))
             or exists (select from scrape_targets where organization_id = $1
                and greatest(last_attempt_at, next_attempt_at - interval '2 days', weekly_read_at, monthly_read_at) > now())",
            organization,
        )
        .await
}

async fn deliver(stores: &IsolatedStores, organization: Uuid) {
    let visible = visibility::wait_for_history(stores.pg(), organization);
    relay::run_during(&stores.databases, visible).await.unwrap();
}

async fn assert_verified(stores: &IsolatedStores, organization: Uuid) {
    let report = verify::verify(&stores.databases, organization, false).await.unwrap();
    assert_eq!(report.differences, []);
}

async fn run_repair(stores: &IsolatedStores) -> Value {
    let mut command = stores.connection.command();
    command.args(["repair", "--json"]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn organization_deleted_meanwhile_is_skipped() {
    let stores = IsolatedStores::create().await;
    let summary = repair::repair(&stores.databases, &[Uuid::now_v7()]).await.unwrap();
    assert_eq!(summary, RepairSummary::default());
}

/// A sandbox's clock is exempt from the comparison with Postgres', so its tracker writes what one with a wrong clock wrote.
#[tokio::test]
async fn data_of_a_wrong_clock_is_repaired() {
    let stores = IsolatedStores::create().await;
    let tracker = TestTracker::start_on(stores.clone(), &[], Utc::now()).await;
    let organization = tracker.create_organization().await;
    let names = tracker.usernames(Platform::Tiktok);
    let known = tracker.add_account(organization, Platform::Tiktok, &names[0]).await;
    let stop = tracker.run(1);
    tracker.wait_attempted(known).await;
    tracker.sandbox.world.advance(400.0 * 24.0).unwrap();
    tracker.make_due(known).await;
    let new = tracker.add_account(organization, Platform::Tiktok, &names[1]).await;
    for account in [known, new] {
        let frozen_until = tracker.wait_attempted(account).await.next_attempt_at;
        assert!(frozen_until > Utc::now() + TimeDelta::days(399));
    }
    stop.cancel();
    // As an import by a wrong clock.
    sqlx::query("update accounts set category = 'Food', category_observed_at = observed_at where id = $1")
        .bind(known)
        .execute(tracker.pg())
        .await
        .unwrap();
    deliver(&stores, organization).await;
    assert_eq!(days(&stores, organization).await, [0, 400]);
    assert!(has_future_times(&tracker, organization).await);

    let count_wakeups = async || -> i64 {
        tracker.fetch("select count(*) from scrape_wakeups where organization_id = $1", organization).await
    };
    let wakeups = count_wakeups().await;
    let summary = run_repair(&stores).await;
    assert_eq!((&summary["accounts"], &summary["targets"]), (&Value::from(2), &Value::from(2)));
    assert!(summary["videos"].as_i64() > Some(10) && summary["snapshots"].as_i64() > Some(10), "{summary}");
    assert_eq!(days(&stores, organization).await, [0]);
    assert!(!has_future_times(&tracker, organization).await);
    assert_eq!(count_wakeups().await, wakeups + 1, "not one for each target");
    assert_verified(&stores, organization).await;
    assert_eq!(run_repair(&stores).await["snapshots"], 0, "nothing is left to repair");

    let repaired_at = Utc::now();
    tracker.run_by(1, Clock::system());
    for account in [known, new] {
        assert_eq!(tracker.wait_attempted(account).await.failures, 0);
        let observed_at: DateTime<Utc> =
            tracker.fetch("select observed_at from accounts where id = $1", account).await;
        assert!((repaired_at..Utc::now()).contains(&observed_at), "{observed_at}");
        let started: bool = tracker
            .fetch(
                "select tracked_since = (now() at time zone 'UTC')::date from accounts where id = $1",
                account,
            )
            .await;
        assert!(started, "the snapshots of today are the first");
    }
    deliver(&stores, organization).await;
    assert_eq!(days(&stores, organization).await, [0]);
    assert_verified(&stores, organization).await;
}
