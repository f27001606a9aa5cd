//! The state of tracking in the API: attempts, failures by reason, sources, and the health of the whole service.

use chrono::{SubsecRound, TimeDelta};
use harness::{CapturedLog, assert_derived_tables, rebuild_derived_tables, wait_until};
use sandbox::Fault;
use serde_json::{Value, json};
use sqlx::types::Json;
use tidemark::model::platform::Platform;
use tidemark::store::records::organizations;
use tidemark::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use tidemark::store::tracking::{ended_attempts, queues};

use crate::client::Client;
use crate::test_tracker::TestTracker;

/// The compared parts of a state.
fn parts(state: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), state[*name].clone())).collect()
}

#[tokio::test]
async fn attempts_count_for_a_day_and_failures_by_reason() {
    let tracker = TestTracker::start().await;
    tracker.sandbox.world.stop_clock().unwrap();
    let started = tracker.databases.clock.now().await;
    let (client, other) = (Client::start(&tracker).await, Client::start(&tracker).await);
    let names = tracker.usernames(Platform::Tiktok);
    let missing = tracker.add_account(client.organization, Platform::Tiktok, "nobody.has.this").await;
    let good = tracker.add_account(client.organization, Platform::Tiktok, &names[0]).await;
    let shared = tracker.add_account(other.organization, Platform::Tiktok, &names[0]).await;
    let stop = tracker.run(1);
    for account in [missing, good, shared] {
        tracker.wait_attempted(account).await;
    }
    stop.cancel();
    let expected = json!({
        "due": 0, "in_flight": 0, "lag_seconds": 0, "scrapes_24h": {"succeeded": 1, "failed": 1},
        "failures": [{"reason": "not_found", "accounts": 1, "videos": 0, "since": started.trunc_subsecs(6)}],
    });
    let names = ["due", "in_flight", "lag_seconds", "scrapes_24h", "failures"];
    let state = client.state().await;
    assert_eq!(parts(&state, &names), expected);
    assert_eq!((&state["accounts"]["active"], &state["accounts"]["failing"]), (&json!(1), &json!(1)));
    // One response served both organizations.
    let counts = json!({"succeeded": 1, "failed": 0});
    assert_eq!(other.state().await["scrapes_24h"], counts);

    // Housekeeping changes no number until they are a day old.
    let pg = tracker.pg();
    assert_eq!(ended_attempts::TABLE.compact(pg, 100).await.unwrap(), 3);
    tracker.sandbox.world.advance(24.0).unwrap();
    let now = tracker.databases.clock.now().await;
    assert_eq!(ended_attempts::delete_expired(pg, now, 100).await.unwrap(), 0);
    assert_eq!(client.state().await["scrapes_24h"], expected["scrapes_24h"]);
    tracker.sandbox.world.advance(0.05).unwrap();
    assert_eq!(client.state().await["scrapes_24h"], json!({"succeeded": 0, "failed": 0}));
    let now = tracker.databases.clock.now().await;
    assert_eq!(ended_attempts::delete_expired(pg, now, 100).await.unwrap(), 2);
    // The failed one was to be retried after two minutes, the good one is due within a day.
    let state = client.state().await;
    assert_eq!(state["due"], 2);
    assert!(state["lag_seconds"].as_i64().unwrap() > 23 * 3600, "{state}");
    // Another failure does not change since when it fails.
    let stop = tracker.run(1);
    wait_until("it is attempted again", async || {
        let target = tracker.target(missing).await;
        (target.last_attempt_at > Some(started) && target.lease_owner.is_none()).then_some(())
    })
    .await;
    stop.cancel();
    assert_eq!(client.state().await["failures"], expected["failures"]);
}

#[tokio::test]
async fn reasons_of_failures_follow_from_the_responses() {
    let tracker = TestTracker::start_with(&["--instagram-sources=instagram-graph"]).await;
    let client = Client::start(&tracker).await;
    for (fault, reason) in
        [(Fault::Error, "transient"), (Fault::Html, "malformed"), (Fault::Truncate, "transient")]
    {
        let name = &tracker.usernames(Platform::Instagram)[0];
        let account = tracker.add_account(client.organization, Platform::Instagram, name).await;
        tracker.sandbox.world.fail_next(sandbox::Platform::Instagram, fault, 20);
        let stop = tracker.run(1);
        let target = tracker.wait_attempted(account).await;
        stop.cancel();
        let state = client.state().await;
        let shown: Vec<_> = state["failures"].as_array().unwrap().iter().map(|f| &f["reason"]).collect();
        assert_eq!(shown, [reason], "{fault:?}: {target:?}");
        assert_derived_tables(tracker.pg(), client.organization).await;
        tracker.sandbox.world.fail_next(sandbox::Platform::Instagram, fault, 0);
        tracker.execute("delete from accounts where id = $1", account).await;
        tracker.execute("delete from scrape_targets where id = $1", account).await;
        rebuild_derived_tables(tracker.pg(), client.organization).await;
    }
}

#[tokio::test]
async fn running_attempt_is_in_flight_and_a_lost_one_does_not_count() {
    let (log, _guard) = CapturedLog::start("tidemark=warn");
    let tracker = TestTracker::start().await;
    let client = Client::start(&tracker).await;
    let name = &tracker.usernames(Platform::Tiktok)[0];
    let account = tracker.add_account(client.organization, Platform::Tiktok, name).await;
    let state = client.state().await;
    assert_eq!((&state["due"], &state["in_flight"]), (&json!(1), &json!(0)));
    let lock = tracker.lock_account(client.organization, account).await;
    let stop = tracker.run(1);
    tracker.wait_blocked().await;
    let state = client.state().await;
    assert_eq!(
        (&state["due"], &state["in_flight"], &state["lag_seconds"]),
        (&json!(0), &json!(1), &json!(0))
    );
    // Another process takes over.
    tracker.execute("update scrape_targets set lease_owner = gen_random_uuid() where id = $1", account).await;
    stop.cancel();
    drop(lock);
    wait_until("the scrape is dropped", async || {
        log.take().iter().any(|line| line.contains("lease lost")).then_some(())
    })
    .await;
    assert_eq!(client.state().await["scrapes_24h"], json!({"succeeded": 0, "failed": 0}));
}

#[tokio::test]
async fn running_refresh_is_in_flight_although_it_is_not_due() {
    let tracker = TestTracker::start().await;
    let client = Client::start(&tracker).await;
    let name = &tracker.usernames(Platform::Tiktok)[0];
    let account = tracker.add_account(client.organization, Platform::Tiktok, name).await;
    let not_due =
        "update scrape_targets set next_attempt_at = service_now() + interval '1 year' where id = $1";
    tracker.execute(not_due, account).await;
    client.post_nothing(&format!("/accounts/{account}/refresh")).await.ok(202);
    let names = ["due", "in_flight", "lag_seconds"];
    let waiting = json!({"due": 0, "in_flight": 0, "lag_seconds": 0});
    assert_eq!(parts(&client.state().await, &names), waiting);
    let _lock = tracker.lock_account(client.organization, account).await;
    tracker.run(1);
    tracker.wait_blocked().await;
    let running = json!({"due": 0, "in_flight": 1, "lag_seconds": 0});
    assert_eq!(parts(&client.state().await, &names), running);
    let now = tracker.databases.clock.now().await;
    let queues = queues::fetch_all(tracker.pg(), now).await.unwrap();
    assert_eq!(queues.iter().map(|queue| (queue.due, queue.leased)).collect::<Vec<_>>(), [(0, 0), (0, 1)]);
}

#[tokio::test]
async fn sources_are_active_paused_or_unconfigured() {
    let tracker = TestTracker::start_with(&["--tiktok-sources=http,tiktok-research"]).await;
    let client = Client::start(&tracker).await;
    let source = |platform: &str, name: &str, status: &str, until: Value, reason: Value| {
        let source = json!({"platform": platform, "name": name, "status": status});
        let mut source = source.as_object().unwrap().clone();
        source.extend([("paused_until".to_owned(), until), ("reason".to_owned(), reason)]);
        Value::Object(source)
    };
    let active = |platform: &str, name: &str| source(platform, name, "active", Value::Null, Value::Null);
    let mut expected = vec![
        active("instagram", "instagram-graph"),
        active("instagram", "http"),
        active("tiktok", "http"),
        active("tiktok", "tiktok-research"),
    ];
    assert_eq!(client.state().await["sources"], json!(expected));
    let now = tracker.databases.clock.now().await;
    let until = now + TimeDelta::minutes(5);
    for (platform, name, cause) in [
        (Platform::Instagram, "http", PauseCause::RateLimit),
        (Platform::Tiktok, "tiktok-research", PauseCause::Credentials),
    ] {
        let reason = "the response about another organization's account".to_owned();
        let pause = SourcePause { platform, source: name.to_owned(), until, cause, reason };
        source_pauses::start(tracker.pg(), &pause, now).await.unwrap();
    }
    expected[1] = source("instagram", "http", "paused", json!(until), json!("rate_limit"));
    expected[3] = source("tiktok", "tiktok-research", "paused", json!(until), json!("credentials"));
    assert_eq!(client.state().await["sources"], json!(expected));
    // A limit is over with its time, rejected credentials only with a success.
    tracker.sandbox.world.advance(0.2).unwrap();
    expected[1] = active("instagram", "http");
    assert_eq!(client.state().await["sources"], json!(expected));
}

#[tokio::test]
async fn source_that_is_not_listed_is_unconfigured() {
    let tracker =
        TestTracker::start_with(&["--instagram-sources=none", "--tiktok-sources=tiktok-research"]).await;
    let client = Client::start(&tracker).await;
    let now = tracker.databases.clock.now().await;
    let pause = SourcePause {
        platform: Platform::Tiktok,
        source: "http".to_owned(),
        until: now + TimeDelta::hours(1),
        cause: PauseCause::Credentials,
        reason: "of a former configuration".to_owned(),
    };
    source_pauses::start(tracker.pg(), &pause, now).await.unwrap();
    let state = client.state().await;
    let shown: Vec<_> = state["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|source| [&source["platform"], &source["name"], &source["status"], &source["paused_until"]])
        .collect();
    assert_eq!(
        json!(shown),
        json!([
            ["instagram", "instagram-graph", "unconfigured", null],
            ["instagram", "http", "unconfigured", null],
            ["tiktok", "tiktok-research", "active", null],
            ["tiktok", "http", "unconfigured", null],
        ])
    );
}

#[tokio::test]
async fn health_shows_the_queue_and_the_outbox_of_the_service() {
    let tracker = TestTracker::start().await;
    let queue = |checks: &Value| parts(&checks["tracker"], &["due", "failing"]);
    let checks = tracker.health_checks(&Platform::ALL).await;
    assert_eq!(queue(&checks), json!({"due": 0, "failing": 0}));
    assert_eq!(checks["tracker"]["lag_seconds"], 0);
    assert_eq!(
        parts(&checks["clickhouse"], &["outbox_pending", "outbox_lag_seconds"]),
        json!({"outbox_pending": 0, "outbox_lag_seconds": 0})
    );
    for platform in Platform::ALL {
        let organization = tracker.create_organization().await;
        tracker.add_due_accounts(organization, platform, 3).await;
        let name = &tracker.usernames(platform)[0];
        let account = tracker.add_account(organization, platform, name).await;
        tracker
            .execute(
                "update scrape_targets set failures = 1, next_attempt_at = service_now() + interval '1 hour' where id = $1",
                account,
            )
            .await;
    }
    sqlx::query("update outbox set created_at = now() - interval '90 seconds'")
        .execute(tracker.pg())
        .await
        .unwrap();
    let checks = tracker.health_checks(&Platform::ALL).await;
    assert_eq!(queue(&checks), json!({"due": 6, "failing": 2}));
    let lag = checks["tracker"]["lag_seconds"].as_i64().unwrap();
    assert!((3_600..3_700).contains(&lag), "{checks}");
    assert_eq!(checks["clickhouse"]["outbox_pending"], 2);
    assert!((90..120).contains(&checks["clickhouse"]["outbox_lag_seconds"].as_i64().unwrap()), "{checks}");
}

#[tokio::test]
async fn health_leaves_out_platforms_that_no_source_reads() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    tracker.add_due_accounts(organization, Platform::Instagram, 3).await;
    for (readable, status, due) in [(Platform::Instagram, "degraded", 3), (Platform::Tiktok, "ok", 0)] {
        let checks = tracker.health_checks(&[readable]).await;
        assert_eq!(parts(&checks["tracker"], &["status", "due"]), json!({"status": status, "due": due}));
    }
}

#[tokio::test]
async fn health_leaves_out_targets_of_deleted_organizations() {
    let tracker = TestTracker::start().await;
    let (deleted, other) = (tracker.create_organization().await, tracker.create_organization().await);
    tracker.add_due_accounts(deleted, Platform::Instagram, 3).await;
    tracker.execute("update scrape_targets set failures = 1 where organization_id = $1", deleted).await;
    organizations::delete(tracker.pg(), deleted).await.unwrap();
    let state = |checks: &Value| parts(&checks["tracker"], &["status", "due", "failing", "lag_seconds"]);
    let idle = json!({"status": "ok", "due": 0, "failing": 0, "lag_seconds": 0});
    assert_eq!(state(&tracker.health_checks(&Platform::ALL).await), idle);
    tracker.add_due_accounts(other, Platform::Instagram, 2).await;
    let checks = tracker.health_checks(&Platform::ALL).await;
    let now = tracker.databases.clock.now().await;
    let own = queues::fetch_organization(tracker.pg(), other, &Platform::ALL, now).await.unwrap();
    assert_eq!((checks["tracker"]["due"].as_i64(), own.due), (Some(2), 2));
}

/// The index scans of a plan, with the rows that they read.
fn index_scans(plan: &Value, scans: &mut Vec<(String, f64)>) {
    match plan {
        Value::Array(parts) => parts.iter().for_each(|part| index_scans(part, scans)),
        Value::Object(node) => {
            if node.get("Node Type").is_some_and(|kind| kind == "Seq Scan") {
                scans.push(("sequential".to_owned(), f64::INFINITY));
            }
            if let Some(name) = node.get("Index Name").and_then(Value::as_str) {
                let count = |name: &str| node.get(name).and_then(Value::as_f64).unwrap_or_default();
                let rows = count("Actual Rows") + count("Rows Removed by Filter");
                scans.push((name.to_owned(), rows * count("Actual Loops")));
            }
            node.values().for_each(|part| index_scans(part, scans));
        }
        _ => {}
    }
}

#[tokio::test]
async fn queue_of_a_small_organization_is_read_past_a_large_backlog() {
    let tracker = TestTracker::start().await;
    let (large, small) = (tracker.create_organization().await, tracker.create_organization().await);
    for platform in Platform::ALL {
        tracker.add_due_accounts(large, platform, 5_000).await;
    }
    tracker.add_due_accounts(small, Platform::Tiktok, 3).await;
    sqlx::query("analyze scrape_targets").execute(tracker.pg()).await.unwrap();
    let now = tracker.databases.clock.now().await;
    let statement = format!("explain (analyze, format json) {}", queues::ORGANIZATION_QUEUE);
    let Json(plan): Json<Value> = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .bind(small)
        .bind(now)
        .bind(Platform::ALL.map(Platform::as_str))
        .fetch_one(tracker.pg())
        .await
        .unwrap();
    let mut scans = Vec::new();
    index_scans(&plan, &mut scans);
    let indexes =
        ["scrape_targets_due_of_organization", "scrape_targets_organization", "scrape_targets_refreshes"];
    let is_narrow = |(name, rows): &(String, f64)| indexes.contains(&name.as_str()) && *rows <= 3.0;
    assert!(scans.iter().all(is_narrow), "{scans:?}: {plan:#}");
    let queue = queues::fetch_organization(tracker.pg(), large, &Platform::ALL, now).await.unwrap();
    assert_eq!((queue.due, queue.in_flight), (10_000, 0));
}
