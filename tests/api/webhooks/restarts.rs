//! Deliveries survive processes that are killed at any step, and clocks that jump.

use std::fs::File;

use chrono::TimeDelta;
use harness::wait_until;
use serde_json::json;
use tempfile::TempDir;
use tidemark::model::event::EventType;

use super::deliveries::{ALLOWED_HOSTS, Hooks};
use super::receiver::{Answer, Receiver};

fn environment(hooks: &Hooks, failpoints: &TempDir) -> [(&'static str, String); 3] {
    [
        ("TIDEMARK_FAILPOINTS", failpoints.path().display().to_string()),
        ("TIDEMARK_WEBHOOK_ALLOWED_HOSTS", ALLOWED_HOSTS.to_owned()),
        ("TIDEMARK_CLOCK_URL", hooks.clock.url.clone()),
    ]
}

/// Another process waits for the end of the lease, by Postgres' clock.
async fn expire_leases(hooks: &Hooks) {
    sqlx::query("update webhooks set lease_until = now() where lease_until > now()")
        .execute(hooks.stores.pg())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_processes_lose_no_event() {
    let hooks = Hooks::start_without_worker().await;
    let receiver = Receiver::start().await;
    let (path, _) = hooks.create(&receiver.url, json!({})).await;
    let armed = tempfile::tempdir().unwrap();
    let environment = environment(&hooks, &armed);
    let mut recorded = Vec::new();
    for step in ["webhook-enqueued", "webhook-sent", "webhook-attempt-recorded"] {
        File::create(armed.path().join(step)).unwrap();
        recorded.push(hooks.record(EventType::AccountFailing).await);
        let mut tracker = hooks.stores.track(&environment);
        assert_ne!(tracker.wait().await, Some(0), "{step}: {}", tracker.log());
        assert!(!armed.path().join(step).exists(), "{step}");
        expire_leases(&hooks).await;
    }
    recorded.push(hooks.record(EventType::AccountRecovered).await);
    let mut tracker = hooks.stores.track(&environment);
    let received = wait_until("all events are received", || async {
        let received: Vec<_> = receiver.received().iter().map(|one| one.id()).collect();
        recorded.iter().all(|id| received.contains(id)).then_some(received)
    })
    .await;
    // One was sent before its process was killed, and again; the order is that of the events.
    assert!(received.is_sorted(), "{received:?}");
    assert_eq!(received.len(), recorded.len() + 1, "{received:?}");
    hooks.wait_deliveries(&path, recorded.len()).await;
    assert_eq!(tracker.stop().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_processes_disable_a_webhook_once() {
    let hooks = Hooks::start_without_worker().await;
    let receiver = Receiver::start().await;
    receiver.answer(Answer::Status(410, ""));
    // Nothing else is written.
    let account = format!("/accounts/{}", hooks.account);
    hooks.organization.patch(&account, json!({"is_active": false})).await.ok(200);
    let armed = tempfile::tempdir().unwrap();
    let environment = environment(&hooks, &armed);
    for (n, step) in ["events-appended", "write-uncommitted", "write-committed"].into_iter().enumerate() {
        let (path, _) = hooks.create(&receiver.url, json!({})).await;
        File::create(armed.path().join(step)).unwrap();
        hooks.record(EventType::AccountFailing).await;
        let mut tracker = hooks.stores.track(&environment);
        assert_ne!(tracker.wait().await, Some(0), "{step}: {}", tracker.log());
        assert!(!armed.path().join(step).exists(), "{step}");
        let is_committed = hooks.webhook(&path).await["status"] == "disabled";
        assert_eq!(is_committed, step == "write-committed", "{step}");
        expire_leases(&hooks).await;
        let _tracker = hooks.stores.track(&environment);
        wait_until("the webhook is disabled", || async {
            (hooks.webhook(&path).await["status"] == "disabled").then_some(())
        })
        .await;
        let events = hooks.events().await;
        let disabled = events.iter().filter(|event| event["type"] == "webhook.disabled").count();
        assert_eq!(disabled, n + 1, "{step}: {events:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_process_finishes_what_it_sent() {
    let hooks = Hooks::start_without_worker().await;
    let receiver = Receiver::start().await;
    let (path, _) = hooks.create(&receiver.url, json!({})).await;
    let stop = hooks.deliver();
    for _ in 0..20 {
        hooks.record(EventType::AccountFailing).await;
    }
    receiver.wait(1).await;
    stop.cancel();
    hooks.deliver();
    receiver.wait(20).await;
    let deliveries = hooks.wait_deliveries(&path, 20).await;
    assert_eq!((deliveries.len(), receiver.received().len()), (20, 20), "nothing is sent twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_that_goes_back_delays_no_new_event() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    let (path, _) = hooks.create(&receiver.url, json!({})).await;
    receiver.answer_next(Answer::Status(500, ""));
    let first = hooks.record(EventType::AccountFailing).await;
    hooks.wait_deliveries(&path, 1).await;
    hooks.clock.advance(-TimeDelta::days(2));
    let second = hooks.record(EventType::AccountRecovered).await;
    receiver.wait(2).await;
    hooks.clock.advance(TimeDelta::days(40));
    let received: Vec<_> = receiver.wait(3).await.iter().map(|one| one.id()).collect();
    assert_eq!(received, [first.clone(), second, first]);
}
