//! Leases with many accounts and many trackers: fair between organizations, cheap to find, and exclusive.

use std::time::Duration;

use chrono::TimeDelta;
use harness::{assert_derived_tables, wait_until, wake_trackers};
use sandbox::Fault;
use serde_json::Value;
use sqlx::types::Json;
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::records::accounts::change::{self, AccountChange};
use tidemark::store::tracking::leases::{self, LeaseOrder, LeaseRequest};
use tidemark::store::tracking::{targets, wakeups};
use uuid::Uuid;

use crate::recording_source::RecordingSource;
use crate::test_tracker::TestTracker;

#[tokio::test]
async fn small_organization_gets_half_beside_100_000_accounts() {
    let tracker = TestTracker::start().await;
    let (large, small) = (tracker.create_organization().await, tracker.create_organization().await);
    // Targets without accounts: leasing reads no accounts.
    tracker.execute(
        "insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
         select gen_random_uuid(), $1, 'tiktok', 'account', service_now() - interval '1 hour' - n * interval '1 second'
         from generate_series(1, 100000) n",
        large,
    )
    .await;
    wake_trackers(tracker.pg()).await;
    sqlx::raw_sql("analyze scrape_targets; analyze accounts; analyze organizations")
        .execute(tracker.pg())
        .await
        .unwrap();
    for name in &tracker.usernames(Platform::Tiktok)[..3] {
        tracker.add_account(small, Platform::Tiktok, name).await;
    }
    let request = tracker.lease_request(Platform::Tiktok, 4).await;
    for order in [LeaseOrder::OldestFirst, LeaseOrder::NewestFirst] {
        let plan = plan(&tracker, LeaseRequest { order, ..request }).await;
        assert!(!has_seq_scan(&plan, "scrape_targets"), "{plan:#}");
        let pages = plan.pointer("/0/Plan/Shared Hit Blocks").and_then(Value::as_i64).unwrap()
            + plan.pointer("/0/Plan/Shared Read Blocks").and_then(Value::as_i64).unwrap();
        assert!(pages < 400, "{pages} pages for four targets: {plan:#}");
    }
    // As a tracker with four slots does.
    let (first, after) = leases::lease(tracker.pg(), request).await.unwrap();
    let (second, _) =
        leases::lease(tracker.pg(), LeaseRequest { after_organization: after, ..request }).await.unwrap();
    let of_small = |leased: &[leases::LeasedTarget]| {
        leased.iter().filter(|leased| leased.organization_id == small).count()
    };
    assert_eq!((first.len(), second.len()), (4, 4));
    assert_eq!((of_small(&first), of_small(&second)), (2, 1), "half while it has due accounts");
    let (third, _) =
        leases::lease(tracker.pg(), LeaseRequest { after_organization: after, ..request }).await.unwrap();
    assert_eq!((third.len(), of_small(&third)), (4, 0), "then all to the other organization");
}

#[tokio::test]
async fn lease_reads_only_organizations_with_due_targets() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    tracker.add_due_accounts(organization, Platform::Tiktok, 3).await;
    sqlx::raw_sql(
        "insert into organizations (id, name) select gen_random_uuid(), 'idle' from generate_series(1, 2500);
         insert into scrape_targets (id, organization_id, platform, kind, next_attempt_at)
         select gen_random_uuid(), id, 'tiktok', 'account', service_now() + interval '1 day'
         from organizations where name = 'idle';
         insert into scrape_wakeups (organization_id, platform, kind, wake_at)
         select organization_id, platform, kind, min(next_attempt_at) from scrape_targets group by 1, 2, 3;
         analyze organizations; analyze scrape_targets; analyze scrape_wakeups",
    )
    .execute(tracker.pg())
    .await
    .unwrap();
    let request = tracker.lease_request(Platform::Tiktok, 8).await;
    let pages = async || {
        let plan = plan(&tracker, request).await;
        plan.pointer("/0/Plan/Shared Hit Blocks").and_then(Value::as_i64).unwrap()
            + plan.pointer("/0/Plan/Shared Read Blocks").and_then(Value::as_i64).unwrap()
    };
    assert!(pages().await < 200, "{}", pages().await);
    assert_eq!(leases::lease(tracker.pg(), request).await.unwrap().0.len(), 3);
    sqlx::raw_sql("update scrape_wakeups set wake_at = '-infinity'").execute(tracker.pg()).await.unwrap();
    tracker
        .execute(
            "insert into scrape_wakeups (organization_id, platform, kind, wake_at)
             select $1, 'tiktok', 'account', '-infinity' from generate_series(1, 50)",
            organization,
        )
        .await;
    assert!(pages().await > 2_500, "organizations with early wakeups are looked at");
    for _ in 0..4 {
        wakeups::advance(tracker.pg(), Platform::Tiktok, None, request.now).await.unwrap();
    }
    let wakeups: i64 =
        sqlx::query_scalar("select count(*) from scrape_wakeups").fetch_one(tracker.pg()).await.unwrap();
    assert!((2_501..=2_510).contains(&wakeups), "{wakeups} are left");
    assert!(pages().await < 200, "{}", pages().await);
    tracker
        .execute("update scrape_targets set lease_until = null where organization_id = $1", organization)
        .await;
    assert_eq!(leases::lease(tracker.pg(), request).await.unwrap().0.len(), 3);
    let tomorrow = LeaseRequest { now: request.now + TimeDelta::days(2), ..request };
    assert_eq!(leases::lease(tracker.pg(), tomorrow).await.unwrap().0.len(), 8);
}

#[tokio::test]
async fn changed_target_is_leased_at_once() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let account = tracker.add_account(organization, Platform::Tiktok, "some.one").await;
    let request = tracker.lease_request(Platform::Tiktok, 8).await;
    let advance = || wakeups::advance(tracker.pg(), Platform::Tiktok, None, request.now);
    let lease = async || leases::lease(tracker.pg(), request).await.unwrap().0.len();
    let change_account = async |write: &mut Write, change: AccountChange| {
        change::update(write, account, &change).await.unwrap();
    };
    for case in ["enabled", "rescheduled", "restarted", "added"] {
        let mut write = Write::begin(tracker.pg(), organization).await.unwrap();
        match case {
            "enabled" => {
                change_account(&mut write, AccountChange { is_active: Some(false), ..Default::default() })
                    .await;
            }
            "added" => targets::remove(&mut write, &[account]).await.unwrap(),
            _ => {
                let idle = "update scrape_targets set next_attempt_at = service_now() + interval '1 day',
                                last_attempt_at = service_now() - interval '1 day' where id = $1";
                sqlx::query(idle).bind(account).execute(write.connection()).await.unwrap();
            }
        }
        write.commit().await.unwrap();
        let mut write = Write::begin(tracker.pg(), organization).await.unwrap();
        match case {
            "enabled" => {
                change_account(&mut write, AccountChange { is_active: Some(true), ..Default::default() })
                    .await;
            }
            "rescheduled" => targets::set_interval(&mut write, &[account], 6).await.unwrap(),
            "restarted" => targets::restart(&mut write, account, request.now).await.unwrap(),
            _ => targets::add_accounts(&mut write, &[account], request.now).await.unwrap(),
        }
        // The commit writes its wakeup and waits for the organization.
        let mut holder = tracker.pg().begin().await.unwrap();
        let lock = sqlx::query("select from organizations where id = $1 for no key update");
        lock.bind(organization).execute(&mut *holder).await.unwrap();
        let commit = tokio::spawn(write.commit());
        tracker.wait_blocked().await;
        // Replaces the passed wakeup, and does not see the change.
        advance().await.unwrap();
        assert_eq!(lease().await, 0, "{case}");
        holder.rollback().await.unwrap();
        commit.await.unwrap().unwrap();
        advance().await.unwrap();
        assert_eq!(lease().await, 1, "{case}");
        tracker.execute("update scrape_targets set lease_until = null where id = $1", account).await;
        assert_derived_tables(tracker.pg(), organization).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn passed_wakeups_are_replaced_while_all_slots_are_used() {
    let tracker = TestTracker::start().await;
    let (busy, idle) = (tracker.create_organization().await, tracker.create_organization().await);
    for name in &tracker.usernames(Platform::Instagram)[..2] {
        tracker.add_account(busy, Platform::Instagram, name).await;
    }
    tracker
        .execute(
            "insert into scrape_wakeups (organization_id, platform, kind, wake_at)
             values ($1, 'instagram', 'account', service_now() - interval '1 hour')",
            idle,
        )
        .await;
    tracker.sandbox.world.fail_next(sandbox::Platform::Instagram, Fault::Hang, 2);
    let stop = tracker.run(1);
    wait_until("the wakeup is replaced", async || {
        let left: bool = tracker
            .fetch("select exists (select from scrape_wakeups where organization_id = $1)", idle)
            .await;
        (!left).then_some(())
    })
    .await;
    let waiting: i64 = tracker
        .fetch(
            "select count(*) from scrape_targets
             where organization_id = $1 and last_attempt_at is null and lease_owner is null",
            busy,
        )
        .await;
    assert_eq!(waiting, 1, "the slot is not used");
    stop.cancel();
}

/// The plan of a lease.
async fn plan(tracker: &TestTracker, request: LeaseRequest<'_>) -> Value {
    let statement = format!("explain (analyze, buffers, format json) {}", leases::statement(request.order));
    let mut transaction = tracker.pg().begin().await.unwrap();
    let Json(plan): Json<Value> = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .bind(request.owner)
        .bind(request.platform)
        .bind(request.now)
        .bind(request.in_flight)
        .bind(sqlx::postgres::types::PgInterval { months: 0, days: 0, microseconds: 45_000_000 })
        .bind(request.limit as i64)
        .bind(request.after_organization)
        .bind(request.kind)
        .fetch_one(&mut *transaction)
        .await
        .unwrap();
    transaction.rollback().await.unwrap();
    plan
}

/// Whether a plan contains a sequential scan of a table.
fn has_seq_scan(plan: &Value, table: &str) -> bool {
    match plan {
        Value::Array(parts) => parts.iter().any(|part| has_seq_scan(part, table)),
        Value::Object(node) => {
            let whole = node.get("Node Type").is_some_and(|kind| kind == "Seq Scan")
                && node.get("Relation Name").is_some_and(|name| name == table);
            whole || node.values().any(|part| has_seq_scan(part, table))
        }
        _ => false,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trackers_never_fetch_an_account_concurrently() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    tracker.add_due_accounts(organization, Platform::Tiktok, 80).await;
    let source = RecordingSource::new(None);
    let stops: Vec<_> = (0..3).map(|_| tracker.run_with(12, source.sources())).collect();
    for round in 1..=3 {
        wait_until("every account is scraped", async || {
            let left: i64 = tracker
                .fetch(
                    "select count(*) from scrape_targets where organization_id = $1
                        and (last_attempt_at is null or next_attempt_at <= service_now() or lease_owner is not null)",
                    organization,
                )
                .await;
            (left == 0).then_some(())
        })
        .await;
        let counts: Vec<_> = source.fetches.lock().unwrap().counts.values().copied().collect();
        assert_eq!(
            (counts.len(), counts.iter().max(), counts.iter().min()),
            (80, Some(&round), Some(&round))
        );
        tracker.execute("update scrape_targets set next_attempt_at = service_now() - interval '1 minute' where organization_id = $1", organization).await;
        wake_trackers(tracker.pg()).await;
    }
    for stop in stops {
        stop.cancel();
    }
    assert_eq!(source.fetches.lock().unwrap().concurrent, [""; 0]);
}

#[tokio::test]
async fn lease_ends_unless_its_owner_renews_it() {
    let tracker = TestTracker::start().await;
    let (pg, organization) = (tracker.pg(), tracker.create_organization().await);
    let account = tracker.add_account(organization, Platform::Tiktok, "some.one").await;
    let request = tracker.lease_request(Platform::Tiktok, 1).await;
    let other = LeaseRequest { owner: Uuid::now_v7(), ..request };
    let take = async |request| leases::lease(pg, request).await.unwrap().0.len();
    assert_eq!(take(request).await, 1);
    assert_eq!(take(other).await, 0, "a leased target is not leased again");

    let short = Duration::from_millis(300);
    let until = tracker.target(account).await.lease_until.unwrap();
    leases::renew(pg, other.owner, &[account], short).await.unwrap();
    let unchanged = tracker.target(account).await.lease_until;
    assert_eq!(unchanged, Some(until), "another process does not renew it");
    leases::renew(pg, request.owner, &[account], short).await.unwrap();
    wait_until("the lease ends", async || (take(other).await == 1).then_some(())).await;
    assert_eq!(take(request).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn scrape_of_a_killed_tracker_is_taken_over() {
    // Renewed every third of it, even by a process that is slow.
    const LEASE_SECONDS: u32 = 6;
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let names = tracker.usernames(Platform::Instagram);
    tracker.sandbox.world.fail_next(sandbox::Platform::Instagram, Fault::Hang, 1);
    let hanging = tracker.add_account(organization, Platform::Instagram, &names[0]).await;
    let mut killed = tracker.start_process(LEASE_SECONDS);
    wait_until("the scrape hangs", async || (tracker.request_count(Platform::Instagram) == 1).then_some(()))
        .await;
    let leased = tracker.target(hanging).await;
    let (owner, first_end) = (leased.lease_owner.unwrap(), leased.lease_until.unwrap());

    // The first tracker has no free slot.
    let _survivor = tracker.start_process(LEASE_SECONDS);
    let account = tracker.add_account(organization, Platform::Instagram, &names[1]).await;
    tracker.wait_attempted(account).await;
    let renewed = wait_until("the lease outlives its first end", async || {
        let target = tracker.target(hanging).await;
        let renewed_at = target.lease_until.unwrap() - TimeDelta::seconds(LEASE_SECONDS.into());
        (renewed_at > first_end).then_some(target)
    })
    .await;
    assert_eq!(renewed.lease_owner, Some(owner), "a lease was taken from a running tracker");

    killed.kill();
    let taken_over = tracker.wait_attempted(hanging).await;
    assert_eq!((taken_over.failures, taken_over.last_error), (0, None));
}
