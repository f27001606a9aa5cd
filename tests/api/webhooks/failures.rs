//! Receivers that fail: retries, the end of deliveries, and addresses that are not requested.

use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::Instant;

use chrono::TimeDelta;
use harness::{create_organization, wait_until};
use serde_json::{Value, json};
use tidemark::model::event::{EventData, EventType};
use tidemark::platforms::webhooks::SEND_TIMEOUT;
use tidemark::store::Write;
use tidemark::store::records::events::NewEvent;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::records::webhooks as records;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::deliveries::Hooks;
use super::receiver::{Answer, Receiver};

#[tokio::test(flavor = "multi_thread")]
async fn failed_event_is_retried_by_schedule_with_the_same_id_and_body() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    let (path, secret) = hooks.create(&receiver.url, json!({})).await;
    receiver.answer(Answer::Status(503, "upstream connect error"));
    hooks.record(EventType::AccountFailing).await;
    let delays = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    for (attempts, delay) in delays.into_iter().enumerate() {
        let latest = hooks.wait_deliveries(&path, attempts + 1).await.remove(0);
        let attempted_at = hooks.clock.now();
        assert_eq!(latest["attempt"], json!(attempts + 1));
        assert_eq!(
            [&latest["status"], &latest["response_code"], &latest["response_body"], &latest["error"]],
            [&json!("failed"), &json!(503), &json!("upstream connect error"), &json!("HTTP 503")]
        );
        let next =
            latest["next_attempt_at"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap();
        assert_eq!(next - attempted_at, TimeDelta::seconds(delay));
        assert_eq!(hooks.webhook(&path).await["status"], "failing");
        hooks.clock.advance(TimeDelta::seconds(delay) - TimeDelta::milliseconds(1));
        // Later events are not held up, and a success makes it ok.
        if attempts == 2 {
            receiver.answer_next(Answer::Status(200, ""));
            hooks.record(EventType::AccountRecovered).await;
            wait_until("the later event is delivered", || async {
                (hooks.webhook(&path).await["status"] == "ok").then_some(())
            })
            .await;
            let deliveries = hooks.deliveries(&path).await;
            assert_eq!((deliveries.len(), &deliveries[0]["type"]), (4, &json!("account.recovered")));
            // Below, only the attempts of the first event are counted.
            sqlx::query("delete from events where type = 'account.recovered'")
                .execute(hooks.stores.pg())
                .await
                .unwrap();
        }
        hooks.clock.advance(TimeDelta::milliseconds(1));
    }
    let last = hooks.wait_deliveries(&path, 10).await.remove(0);
    assert!(last["next_attempt_at"].is_null(), "{last}");
    let received = receiver.received();
    let first = &received[0];
    let retries: Vec<_> = received.iter().filter(|one| one.id() == first.id()).collect();
    assert_eq!((received.len(), retries.len()), (11, 10));
    assert!(retries.iter().all(|retry| retry.body == first.body && retry.is_signed_with(&secret)));

    // A requested retry is beyond the schedule.
    receiver.answer(Answer::Status(200, "thanks"));
    let delivery = last["id"].as_str().unwrap();
    hooks.organization.post(&format!("{path}/deliveries/{delivery}/retry"), json!({})).await.ok(202);
    let retried = hooks.wait_deliveries(&path, 11).await.remove(0);
    assert_eq!((&retried["attempt"], &retried["status"]), (&json!(11), &json!("succeeded")));
    assert_eq!(hooks.webhook(&path).await["status"], "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn requested_retry_keeps_the_schedule_until_it_succeeds() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    let (path, _) = hooks.create(&receiver.url, json!({})).await;
    receiver.answer(Answer::Status(500, ""));
    hooks.record(EventType::AccountFailing).await;
    let first = hooks.wait_deliveries(&path, 1).await.remove(0);
    let retry = format!("{path}/deliveries/{}/retry", first["id"].as_str().unwrap());
    hooks.organization.post(&retry, json!({})).await.ok(202);
    let second = hooks.wait_deliveries(&path, 2).await.remove(0);
    assert_eq!(second["next_attempt_at"], first["next_attempt_at"]);
    receiver.answer(Answer::Status(204, ""));
    hooks.organization.post(&retry, json!({})).await.ok(202);
    let third = hooks.wait_deliveries(&path, 3).await;
    assert!(third.iter().all(|delivery| delivery["next_attempt_at"].is_null()), "{third:?}");
    // The schedule has ended: what follows is the next event.
    hooks.clock.advance(TimeDelta::hours(1));
    hooks.record(EventType::AccountRecovered).await;
    let deliveries = hooks.wait_deliveries(&path, 4).await;
    assert_eq!((deliveries.len(), &deliveries[0]["type"]), (4, &json!("account.recovered")));
}

/// Asserts that a webhook had so many attempts, and that no message of any is due, now or later.
async fn assert_no_more_attempts(hooks: &Hooks, path: &str, count: usize) {
    let deliveries = hooks.wait_deliveries(path, count).await;
    assert_eq!(deliveries.len(), count);
    assert!(deliveries.iter().all(|delivery| delivery["next_attempt_at"].is_null()), "{deliveries:?}");
    let next = records::attempts::fetch_next_due(hooks.stores.pg(), hooks.clock.now()).await.unwrap();
    assert_eq!(next, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn attempt_under_way_is_the_last_once_its_webhook_is_switched_off() {
    for status in [500, 410] {
        let hooks = Hooks::start().await;
        let receiver = Receiver::start().await;
        let (path, _) = hooks.create(&receiver.url, json!({})).await;
        let release = Arc::new(Notify::new());
        receiver.answer_next(Answer::Held(Arc::clone(&release), status));
        hooks.record(EventType::AccountFailing).await;
        receiver.wait(1).await;
        hooks.organization.patch(&path, json!({"is_active": false})).await.ok(200);
        release.notify_one();
        assert_no_more_attempts(&hooks, &path, 1).await;
        assert_eq!(hooks.deliveries(&path).await[0]["response_code"], status);
        hooks.clock.advance(TimeDelta::hours(80));
        hooks.organization.patch(&path, json!({"is_active": true})).await.ok(200);
        let later = hooks.record(EventType::AccountRecovered).await;
        assert_eq!(receiver.wait(2).await[1].id(), later);
        assert_no_more_attempts(&hooks, &path, 2).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_requested_during_an_attempt_follows_its_failure() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    let (path, _) = hooks.create(&receiver.url, json!({})).await;
    let release = Arc::new(Notify::new());
    receiver.answer_next(Answer::Status(500, ""));
    for _ in 0..2 {
        receiver.answer_next(Answer::Held(Arc::clone(&release), 500));
    }
    hooks.record(EventType::AccountFailing).await;
    let first = hooks.wait_deliveries(&path, 1).await.remove(0);
    hooks.clock.advance(TimeDelta::seconds(5));
    receiver.wait(2).await;
    let retry = format!("{path}/deliveries/{}/retry", first["id"].as_str().unwrap());
    hooks.organization.post(&retry, json!({})).await.ok(202);
    release.notify_one();
    receiver.wait(3).await;
    hooks.organization.patch(&path, json!({"is_active": false})).await.ok(200);
    release.notify_one();
    assert_no_more_attempts(&hooks, &path, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gone_receiver_is_disabled_at_once() {
    let hooks = Hooks::start().await;
    let (gone, other) = (Receiver::start().await, Receiver::start().await);
    let (path, _) = hooks.create(&gone.url, json!({"description": "Old"})).await;
    hooks.create(&other.url, json!({"types": ["webhook.disabled"]})).await;
    gone.answer(Answer::Status(410, ""));
    hooks.record(EventType::AccountFailing).await;
    let disabled = other.wait(1).await.remove(0).json();
    assert_eq!(disabled["type"], "webhook.disabled");
    let id = path.rsplit('/').next().unwrap();
    assert_eq!(
        disabled["data"],
        json!({"webhook": {"id": id, "type": "webhook", "format": "standard", "description": "Old"}})
    );
    let webhook = hooks.webhook(&path).await;
    assert_eq!((&webhook["is_active"], &webhook["status"]), (&json!(false), &json!("disabled")));
    let deliveries = hooks.deliveries(&path).await;
    assert!(deliveries.len() == 1 && deliveries[0]["next_attempt_at"].is_null(), "{deliveries:?}");
    hooks.record(EventType::AccountFailing).await;
    gone.answer(Answer::Status(204, ""));
    let enabled = hooks.organization.patch(&path, json!({"is_active": true})).await.ok(200);
    assert_eq!(enabled.text("/data/status"), "ok");
    let recorded = hooks.record(EventType::AccountRecovered).await;
    let received = gone.wait(2).await;
    assert_eq!((received.len(), received[1].id()), (2, recorded));
}

#[tokio::test(flavor = "multi_thread")]
async fn receiver_that_fails_for_five_days_is_disabled() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    let (path, _) = hooks.create(&receiver.url, json!({})).await;
    receiver.answer(Answer::Status(500, ""));
    hooks.record(EventType::AccountFailing).await;
    hooks.wait_deliveries(&path, 1).await;
    hooks.clock.advance(TimeDelta::days(5) - TimeDelta::milliseconds(1));
    hooks.wait_deliveries(&path, 2).await;
    assert_eq!(hooks.webhook(&path).await["status"], "failing");
    // A failed test and a success elsewhere decide nothing.
    hooks.organization.post(&format!("{path}/test"), json!({})).await.ok(202);
    hooks.wait_deliveries(&path, 3).await;
    hooks.clock.advance(TimeDelta::milliseconds(1));
    assert_eq!(hooks.webhook(&path).await["status"], "failing");
    hooks.record(EventType::AccountFailing).await;
    wait_until("the webhook is disabled", || async {
        (hooks.webhook(&path).await["status"] == "disabled").then_some(())
    })
    .await;
    let events = hooks.events().await;
    assert_eq!(events[0]["type"], "webhook.disabled");
    assert_eq!(events.iter().filter(|event| event["type"] == "webhook.disabled").count(), 1);
    let deliveries = hooks.deliveries(&path).await;
    assert!(deliveries.iter().all(|delivery| delivery["next_attempt_at"].is_null()), "{deliveries:?}");
    assert_operators_see_the_end(&hooks, path.rsplit('/').next().unwrap()).await;
}

/// Asserts that doctor and the metrics of a tracker tell that failures ended the deliveries of the only webhook.
async fn assert_operators_see_the_end(hooks: &Hooks, webhook: &str) {
    let environment = [("TIDEMARK_CLOCK_URL", hooks.clock.url.clone())];
    let doctor = hooks.stores.command(&environment).args(["doctor", "--json"]).output().unwrap();
    let findings: Vec<Value> = serde_json::from_slice(&doctor.stdout).unwrap();
    let finding = findings.iter().find(|finding| finding["check"] == "webhooks").expect("a finding");
    let message = finding["message"].as_str().unwrap();
    assert_eq!(finding["status"], "warn");
    for part in [webhook, "was disabled, it fails since", "HTTP 500"] {
        assert!(message.contains(part), "{message}");
    }
    let tracker = hooks.stores.track(&environment);
    wait_until("the metrics tell it", || async {
        let (_, page) = tracker.page("/metrics").await;
        let line =
            page.lines().find(|line| line.starts_with("tidemark_webhooks{") && line.contains("disabled"))?;
        line.ends_with(" 1").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_receivers_delay_no_other() {
    let hooks = Hooks::start().await;
    let (silent, receiver) = (Receiver::start().await, Receiver::start().await);
    silent.answer(Answer::Silence);
    let mut paths = Vec::new();
    for _ in 0..6 {
        paths.push(hooks.create(&silent.url, json!({})).await.0);
    }
    hooks.create(&receiver.url, json!({})).await;
    for _ in 0..3 {
        hooks.record(EventType::AccountFailing).await;
    }
    silent.wait(6).await;
    let started = Instant::now();
    receiver.wait(3).await;
    for _ in 0..30 {
        hooks.record(EventType::AccountRecovered).await;
    }
    receiver.wait(33).await;
    assert!(started.elapsed().as_secs() < 13, "{:?}", started.elapsed());
    // One request at a time goes to each.
    assert_eq!(silent.received().len(), 6);
    let delivery = hooks.wait_deliveries(&paths[0], 1).await.remove(0);
    assert_eq!(
        [&delivery["response_code"], &delivery["response_body"], &delivery["error"]],
        [&Value::Null, &Value::Null, &json!("no response within 15 s")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hundred_dead_receivers_of_a_thousand_delay_no_other() {
    let hooks = Hooks::start_without_worker().await;
    let (dead, receiver) = (Receiver::start().await, Receiver::start().await);
    dead.answer(Answer::Silence);
    let pg = hooks.stores.pg();
    let key = records::fetch_secret_key(pg).await.unwrap();
    // Twenty in each organization, the most that it may have.
    for _ in 0..50 {
        let (organization, _) = create_organization(pg, OrganizationChange::default()).await;
        let mut write = Write::begin(pg, organization).await.unwrap();
        for n in 0..20 {
            let url = if n % 10 == 7 { &dead.url } else { &receiver.url };
            let new = serde_json::from_value(json!({"url": url})).unwrap();
            records::create(&mut write, &key, &new, "https://tidemark.example").await.unwrap();
        }
        write.record_event(NewEvent::of_import(EventData::default()), hooks.clock.now());
        write.commit().await.unwrap();
    }
    hooks.deliver();
    dead.wait(100).await;
    let received = receiver.wait(900).await;
    // However slow this machine is, nothing waited for a timeout.
    let times = received.iter().map(|one| one.at).collect::<Vec<_>>();
    let longest = times.windows(2).map(|two| two[1].saturating_duration_since(two[0])).max().unwrap();
    assert!(longest < SEND_TIMEOUT / 2, "nothing was received for {longest:?}");
}

/// A name other than localhost, which is refused before it is resolved.
fn name_of_this_machine() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let names = ["localhost.".to_owned(), host.trim().to_owned(), "ip6-localhost".to_owned()];
    let resolves = |name: &String| (name.as_str(), 0).to_socket_addrs().is_ok_and(|found| found.count() > 0);
    names.into_iter().find(resolves).expect("this machine has a name")
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_and_redirects_are_not_requested() {
    let hooks = Hooks::start().await;
    let private = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = private.local_addr().unwrap().port();
    // A name that resolves to this machine, and addresses that were stored before the host was disallowed.
    let name = name_of_this_machine();
    let urls = [
        format!("https://{name}:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("http://127.0.0.2:{port}/"),
    ];
    let mut paths = Vec::new();
    for url in urls {
        let (path, _) = hooks.create("https://example.com/", json!({})).await;
        sqlx::query("update webhooks set url = $2 where id = $1")
            .bind(super::parse_id(path.rsplit('/').next().unwrap()))
            .bind(url)
            .execute(hooks.stores.pg())
            .await
            .unwrap();
        paths.push(path);
    }
    let (redirecting, target) = (Receiver::start().await, Receiver::start().await);
    redirecting.answer(Answer::Redirect(target.url.clone()));
    paths.push(hooks.create(&redirecting.url, json!({})).await.0);
    hooks.record(EventType::AccountFailing).await;
    let mut errors = Vec::new();
    for path in &paths {
        errors.push(hooks.wait_deliveries(path, 1).await[0]["error"].as_str().unwrap().to_owned());
    }
    assert!(errors[0].contains("no public address"), "{name}: {errors:?}");
    assert!(errors[1].contains("private address"), "{errors:?}");
    assert!(errors[2].contains("https://"), "{errors:?}");
    assert_eq!(errors[3], "HTTP 307");
    assert!(target.received().is_empty());
    let accepted = tokio::time::timeout(std::time::Duration::ZERO, private.accept()).await;
    assert!(accepted.is_err(), "a private address was requested");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_response_is_read_to_its_first_kibibyte() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    let (path, _) = hooks.create(&receiver.url, json!({})).await;
    let long: &str = Box::leak(format!("\0{}", "é".repeat(1 << 20)).into_boxed_str());
    receiver.answer(Answer::Status(200, long));
    hooks.record(EventType::AccountFailing).await;
    let delivery = hooks.wait_deliveries(&path, 1).await.remove(0);
    let body = delivery["response_body"].as_str().unwrap();
    assert!(body.starts_with("\u{fffd}éé") && body.chars().count() < 600, "{}", body.len());
    assert_eq!(delivery["status"], "succeeded");
}
