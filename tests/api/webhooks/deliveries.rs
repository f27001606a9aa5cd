//! What receivers get: every event of their types and filter, in order, signed, in the form of their format.

use std::time::Duration;

use chrono::TimeDelta;
use harness::{IsolatedStores, Organization, ProxiedApi, wait_until};
use serde_json::{Value, json};
use tidemark::app::{Databases, Settings};
use tidemark::model::event::{EventData, EventType};
use tidemark::platforms::webhooks::WebhookClient;
use tidemark::store::Write;
use tidemark::store::records::events::{self, NewEvent};
use tidemark::store::records::webhooks::deliveries;
use tidemark::worker::webhooks;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::receiver::{Answer, Received, Receiver, TestClock};
use crate::accounts::parse_id;

/// Hosts of receivers in tests.
pub const ALLOWED_HOSTS: &str = "127.0.0.1";

/// An organization with an account, the API, and a process that delivers.
pub struct Hooks {
    pub organization: Organization,
    pub account: Uuid,
    pub clock: TestClock,
    pub stores: IsolatedStores,
    _api: ProxiedApi,
}

impl Hooks {
    pub async fn start() -> Self {
        let hooks = Hooks::start_without_worker().await;
        hooks.deliver();
        hooks
    }

    pub async fn start_without_worker() -> Self {
        let (stores, clock) = (IsolatedStores::create_postgres().await, TestClock::start().await);
        let settings = Settings {
            webhook_allowed_hosts: ALLOWED_HOSTS.parse().unwrap(),
            public_url: Some("https://tidemark.example".to_owned()),
            ..Settings::default()
        };
        let service_clock = clock.clock();
        let configure = |databases: &mut Databases| databases.clock = service_clock;
        let api = ProxiedApi::start_on(stores.connection.clone(), settings, configure).await;
        let organization = api.client_for(&stores.unlimited_organization().await);
        let account = json!({"platform": "tiktok", "username": "salt_tide"});
        let account = parse_id(&organization.create("/accounts", account).await);
        Hooks { organization, account, clock, stores, _api: api }
    }

    /// Starts a process's deliveries.
    pub fn deliver(&self) -> CancellationToken {
        let stop = CancellationToken::new();
        let databases = Databases { clock: self.clock.clock(), ..self.stores.databases.clone() };
        let client = WebhookClient::new(ALLOWED_HOSTS.parse().unwrap()).unwrap();
        tokio::spawn(webhooks::run(databases, client, Duration::from_secs(20), stop.clone()));
        stop
    }

    /// Creates a webhook, and returns its path and secret.
    pub async fn create(&self, url: &str, mut body: Value) -> (String, String) {
        body["url"] = url.into();
        let created = self.organization.post("/webhooks", body).await.ok(201);
        (format!("/webhooks/{}", created.text("/data/id")), created.text("/data/secret").to_owned())
    }

    /// Records an event of the account, and returns its id.
    pub async fn record(&self, event_type: EventType) -> String {
        self.record_for(NewEvent::of_account(event_type, self.account, EventData::default())).await
    }

    pub async fn record_for(&self, event: NewEvent) -> String {
        let mut write = Write::begin(self.stores.pg(), self.organization.id).await.unwrap();
        write.record_event(event, self.clock.now());
        write.commit().await.unwrap();
        let last: Uuid = sqlx::query_scalar("select last_event_id from organizations where id = $1")
            .bind(self.organization.id)
            .fetch_one(self.stores.pg())
            .await
            .unwrap();
        last.to_string()
    }

    pub async fn webhook(&self, path: &str) -> Value {
        self.organization.get(path).await.ok(200).at("/data").clone()
    }

    /// The attempts of a webhook, the latest first.
    pub async fn deliveries(&self, path: &str) -> Vec<Value> {
        self.organization.get(&format!("{path}/deliveries?limit=200")).await.ok(200).list("/data").to_vec()
    }

    /// Waits until a webhook has so many attempts, and returns them, the latest first.
    pub async fn wait_deliveries(&self, path: &str, count: usize) -> Vec<Value> {
        wait_until(&format!("{count} attempts are recorded"), || async {
            Some(self.deliveries(path).await).filter(|deliveries| deliveries.len() >= count)
        })
        .await
    }

    /// The events of the feed, the latest first.
    pub async fn events(&self) -> Vec<Value> {
        self.organization.get("/events?limit=200").await.ok(200).list("/data").to_vec()
    }
}

fn ids(received: &[Received]) -> Vec<String> {
    received.iter().map(Received::id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_delivered_in_order_and_verified() {
    let hooks = Hooks::start_without_worker().await;
    let receiver = Receiver::start().await;
    let before = hooks.record(EventType::AccountFailing).await;
    let (path, secret) = hooks.create(&receiver.url, json!({})).await;
    let mut recorded = Vec::new();
    // More than a batch, from two processes.
    for _ in 0..120 {
        recorded.push(hooks.record(EventType::AccountRecovered).await);
    }
    hooks.deliver();
    hooks.deliver();
    let received = receiver.wait(120).await;
    assert_eq!(ids(&received), recorded);
    assert!(!recorded.contains(&before));
    assert!(received.iter().all(|one| one.is_signed_with(&secret)), "{received:?}");
    assert!(!received[0].is_signed_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw0rKQ9r8GKYo="));
    let events = hooks.events().await;
    let latest = received.last().unwrap();
    let (event, message) = (&events[0], latest.json());
    let expected = json!({"type": event["type"], "timestamp": event["created_at"], "data": event["data"]});
    assert_eq!((message, latest.headers["content-type"].to_str().unwrap()), (expected, "application/json"));

    let deliveries = hooks.wait_deliveries(&path, 120).await;
    let first = &deliveries[0];
    assert_eq!(first["event_id"], recorded.last().unwrap().as_str());
    assert_eq!(
        [
            &first["type"],
            &first["attempt"],
            &first["status"],
            &first["response_code"],
            &first["response_body"]
        ],
        [&json!("account.recovered"), &json!(1), &json!("succeeded"), &json!(204), &json!("")]
    );
    assert!(
        first["error"].is_null() && first["next_attempt_at"].is_null() && first["duration_ms"].is_u64(),
        "{first}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn types_and_filter_select_events() {
    let hooks = Hooks::start_without_worker().await;
    let other = json!({"platform": "tiktok", "username": "other"});
    let other = parse_id(&hooks.organization.create("/accounts", other).await);
    let creator = hooks.organization.create("/creators", json!({"name": "Ann"})).await;
    let linked =
        hooks.organization.patch(&format!("/accounts/{other}"), json!({"creator_id": creator})).await;
    linked.ok(200);
    let rule = json!({"name": "All", "rule": {"account_ids": [other]}});
    let collection = hooks.organization.create("/collections", rule).await;
    let video = json!({"platform": "tiktok", "identifier": "7301234567890123456"});
    let video = parse_id(&hooks.organization.create("/videos", video).await);
    sqlx::query("update videos set account_id = $2 where id = $1")
        .bind(video)
        .bind(other)
        .execute(hooks.stores.pg())
        .await
        .unwrap();
    let receiver = Receiver::start().await;
    for (name, body) in [
        ("all", json!({})),
        ("failing", json!({"types": ["account.failing"]})),
        ("account", json!({"filter": {"account_ids": [hooks.account]}})),
        ("creator", json!({"filter": {"creator_ids": [creator]}})),
        ("collection", json!({"filter": {"collection_ids": [collection]}})),
        ("both", json!({"filter": {"account_ids": [hooks.account], "creator_ids": [creator]}})),
    ] {
        hooks.create(&format!("{}/{name}", receiver.url), body).await;
    }
    let failing = hooks.record(EventType::AccountFailing).await;
    let data = EventData::default;
    let others = hooks.record_for(NewEvent::of_account(EventType::AccountRecovered, other, data())).await;
    let post = hooks.record_for(NewEvent::of_video(EventType::VideoPublished, video, data())).await;
    let import = hooks.record_for(NewEvent::of_import(data())).await;
    let last = hooks.record(EventType::AccountFailing).await;
    hooks.deliver();
    let received = receiver.wait(12).await;
    let of = |name: &str| {
        let path = format!("/hook/{name}");
        received.iter().filter(|one| one.path == path).map(Received::id).collect::<Vec<_>>()
    };
    assert_eq!(of("all"), [&failing, &others, &post, &import, &last].map(String::clone));
    assert_eq!(of("failing"), [&failing, &last].map(String::clone));
    assert_eq!(of("account"), [&failing, &last].map(String::clone));
    assert_eq!(of("creator"), [&others, &post].map(String::clone));
    assert_eq!(of("collection"), [&post].map(String::clone));
    assert_eq!(of("both"), [""; 0]);
    assert_eq!(received.len(), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn inactive_webhook_passes_events_over() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    let (path, secret) = hooks.create(&receiver.url, json!({"is_active": false})).await;
    hooks.record(EventType::AccountFailing).await;
    // A test is sent all the same.
    hooks.organization.post(&format!("{path}/test"), json!({})).await.ok(202);
    let test = receiver.wait(1).await.remove(0);
    assert!(test.is_signed_with(&secret));
    let message = test.json();
    assert_eq!(
        (&message["type"], &message["data"]["webhook"]["type"]),
        (&json!("webhook.test"), &json!("webhook"))
    );
    assert!(message["data"]["webhook"].get("url").is_none(), "{message}");
    let deliveries = hooks.wait_deliveries(&path, 1).await;
    assert_eq!((&deliveries[0]["type"], &deliveries[0]["event_id"]), (&json!("webhook.test"), &Value::Null));
    hooks.organization.patch(&path, json!({"is_active": true})).await.ok(200);
    let recorded = hooks.record(EventType::AccountRecovered).await;
    assert_eq!(ids(&receiver.wait(2).await)[1..], [recorded]);
    assert!(hooks.events().await.iter().all(|event| event["type"] != "webhook.test"));
}

#[tokio::test(flavor = "multi_thread")]
async fn rotated_secrets_both_sign_for_a_day() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    let (path, old) = hooks.create(&receiver.url, json!({})).await;
    let rotated = hooks.organization.post(&format!("{path}/rotate-secret"), json!({})).await.ok(201);
    let new = rotated.text("/data/secret");
    hooks.record(EventType::AccountFailing).await;
    let both = receiver.wait(1).await.remove(0);
    assert!(both.is_signed_with(&old) && both.is_signed_with(new), "{both:?}");
    hooks.clock.advance(TimeDelta::hours(24));
    hooks.record(EventType::AccountRecovered).await;
    let one = receiver.wait(2).await.remove(1);
    assert!(!one.is_signed_with(&old) && one.is_signed_with(new), "{one:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn chats_get_a_line_of_text_that_mentions_nobody() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    for format in ["slack", "discord"] {
        hooks.create(&format!("{}/{format}", receiver.url), json!({"format": format})).await;
    }
    let data =
        EventData { previous_username: Some("<!channel> @everyone".to_owned()), ..EventData::default() };
    hooks.record_for(NewEvent::of_account(EventType::AccountRenamed, hooks.account, data)).await;
    let received = receiver.wait(2).await;
    let of = |path: &str| received.iter().find(|one| one.path == path).unwrap().json();
    let link = format!("https://tidemark.example/accounts/{}", hooks.account);
    let (slack, discord) = (of("/hook/slack"), of("/hook/discord"));
    let text = slack["text"].as_str().unwrap();
    assert!(
        text.contains("&lt;!channel&gt;") && text.ends_with(&format!("<{link}|Open in Tidemark>")),
        "{text}"
    );
    let text = discord["content"].as_str().unwrap();
    assert!(
        text.contains("\\@everyone") && text.ends_with(&format!("[Open in Tidemark](<{link}>)")),
        "{text}"
    );
    assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_account_leaves_no_delivery() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    let (path, _) = hooks.create(&receiver.url, json!({})).await;
    receiver.answer(Answer::Status(500, "salt_tide"));
    hooks.record(EventType::AccountFailing).await;
    hooks.wait_deliveries(&path, 1).await;
    hooks.organization.delete(&format!("/accounts/{}", hooks.account)).await.ok(204);
    assert!(hooks.deliveries(&path).await.is_empty());
    // Its retry is not sent; what follows is.
    hooks.clock.advance(TimeDelta::seconds(5));
    let import = hooks.record_for(NewEvent::of_import(EventData::default())).await;
    assert_eq!(ids(&receiver.wait(2).await)[1..], [import]);
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_kept_for_30_days() {
    let hooks = Hooks::start().await;
    let receiver = Receiver::start().await;
    let (path, _) = hooks.create(&receiver.url, json!({})).await;
    hooks.record(EventType::AccountFailing).await;
    hooks.organization.post(&format!("{path}/test"), json!({})).await.ok(202);
    hooks.wait_deliveries(&path, 2).await;
    let delete_expired = async || {
        let (pg, now) = (hooks.stores.pg(), hooks.clock.now());
        let tests = deliveries::delete_expired_tests(pg, now, 100).await.unwrap();
        events::delete_expired(pg, now, 100).await.unwrap() + tests
    };
    hooks.clock.advance(TimeDelta::days(30) - TimeDelta::milliseconds(1));
    assert_eq!((delete_expired().await, hooks.deliveries(&path).await.len()), (0, 2));
    hooks.clock.advance(TimeDelta::milliseconds(1));
    assert_eq!((delete_expired().await, hooks.deliveries(&path).await.len()), (2, 0));
}
