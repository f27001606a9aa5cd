//! Rate limits of keys and of addresses that send unknown keys.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::Utc;
use futures_util::future::join_all;
use harness::{Response, TestApi, create_organization, send, wait_until};
use tidemark::app::{RateLimitStore, Settings};
use tidemark::model::key::ApiKey;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::worker::housekeeping;
use tokio_util::sync::CancellationToken;

use crate::authentication::whoami;

/// Asserts that exactly the limit of requests passed in each window and that the headers count down. Returns the rejected
/// responses.
fn assert_exact(responses: Vec<Response>, limit: usize) -> Vec<Response> {
    let mut windows: BTreeMap<String, (Vec<String>, Vec<Response>)> = BTreeMap::new();
    for response in responses {
        let (passed, rejected) = windows.entry(response.header("x-ratelimit-reset").to_owned()).or_default();
        assert_eq!(response.header("x-ratelimit-limit"), limit.to_string(), "{response}");
        match response.status {
            200 | 304 => passed.push(response.header("x-ratelimit-remaining").to_owned()),
            _ => rejected.push(response),
        }
    }
    let mut all_rejected = Vec::new();
    for (reset, (passed, rejected)) in windows {
        assert_eq!(reset.parse::<i64>().unwrap() % 60, 0);
        assert_eq!(passed.len(), limit.min(passed.len() + rejected.len()), "of the window until {reset}");
        // Every remaining count occurs once.
        let mut remaining: Vec<usize> = passed.iter().map(|remaining| remaining.parse().unwrap()).collect();
        remaining.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(remaining, (limit - passed.len()..limit).rev().collect::<Vec<_>>());
        all_rejected.extend(rejected);
    }
    for response in &all_rejected {
        assert_eq!((response.status, response.json["code"].as_str()), (429, Some("RATE_LIMITED")));
        assert_eq!(response.header("x-ratelimit-remaining"), "0");
        assert!((1..=60).contains(&response.header("retry-after").parse::<i64>().unwrap()));
    }
    all_rejected
}

fn postgres_store() -> Settings {
    Settings { rate_limit_store: RateLimitStore::Postgres, ..Settings::default() }
}

#[tokio::test]
async fn processes_share_one_exact_count() {
    let (one, two) =
        (TestApi::start_with(postgres_store()).await, TestApi::start_with(postgres_store()).await);
    let limited = NewKey { rate_limit: Some(77), ..NewKey::named("limited") };
    let key = one.create_key(limited).await;
    let request =
        |api: &TestApi| send(api.stack.client.get(format!("{}/v2/whoami", api.url())).bearer_auth(&key));
    let responses = join_all((0..200).map(|n| request(if n % 2 == 0 { &one } else { &two }))).await;
    // If a minute ends during the test, a second window allows more.
    assert!(assert_exact(responses, 77).len() >= 200 - 2 * 77);
}

#[tokio::test]
async fn failing_rate_limit_store_is_503() {
    let api = TestApi::start_with(postgres_store()).await;
    assert_eq!(api.get("/v2/whoami").await.status, 200);
    // The key is cached, so the counter is the first to need Postgres.
    api.pg().close().await;
    let response = api.get("/v2/whoami").await;
    assert_eq!((response.status, response.header("retry-after")), (503, "1"), "{response}");
    assert_eq!(response.json["code"], "SERVICE_UNAVAILABLE");
}

#[tokio::test]
async fn expired_rate_limit_windows_are_removed() {
    let api = TestApi::start_with(postgres_store()).await;
    let minute = Utc::now().timestamp() / 60;
    let (past, current) = (uuid::Uuid::now_v7(), uuid::Uuid::now_v7());
    // Far enough ahead that it cannot end during the test.
    for (key, minute) in [(past, minute - 1), (current, minute + 10)] {
        sqlx::query("insert into rate_limit_windows (minute, key_id, requests) values ($1, $2, 5)")
            .bind(minute)
            .bind(key)
            .execute(api.pg())
            .await
            .unwrap();
    }
    let stop = CancellationToken::new();
    let housekeeping = tokio::spawn(housekeeping::run(api.stack.databases.clone(), stop.clone()));
    let exists = async |key| {
        let query =
            sqlx::query_scalar::<_, bool>("select exists (select from rate_limit_windows where key_id = $1)");
        query.bind(key).fetch_one(api.pg()).await.unwrap()
    };
    wait_until("the expired window is removed", async || (!exists(past).await).then_some(())).await;
    assert!(exists(current).await);
    stop.cancel();
    housekeeping.await.unwrap();
}

#[tokio::test]
async fn exactly_the_limit_passes_per_minute() {
    let api = TestApi::start().await;
    let limited = NewKey { rate_limit: Some(10), ..NewKey::named("limited") };
    let key = api.create_key(limited).await;
    let request = |n: usize| {
        let request = api.stack.client.get(format!("{}/v2/whoami", api.url())).bearer_auth(&key);
        // A conditional request counts like any other.
        send(if n.is_multiple_of(2) { request } else { request.header("If-None-Match", "*") })
    };
    assert!(assert_exact(join_all((0..40).map(request)).await, 10).len() >= 20);
    for public in ["/v2/health", "/v2/meta"] {
        assert_eq!(api.get(public).await.header("x-ratelimit-limit"), "");
    }
}

#[tokio::test]
async fn organization_limit_applies_to_keys_without_own_limit() {
    let api = TestApi::start().await;
    let options = OrganizationChange { rate_limit: Some(Some(3)), ..Default::default() };
    let (_, key) = create_organization(api.pg(), options).await;
    let who = whoami(&api, &format!("Bearer {key}")).await;
    assert_eq!(who.json["data"]["rate_limit"], 3);
    assert_eq!(who.header("x-ratelimit-limit"), "3");
}

/// Waits until the clock minute has at least 15 s left.
async fn wait_for_time_in_minute() {
    while Utc::now().timestamp() % 60 > 45 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn unknown_keys_are_limited_by_address() {
    let settings = Settings {
        auth_failure_limit: 2,
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        ..Settings::default()
    };
    let api = TestApi::start_with(settings).await;
    let attempt = |key: String, client: &'static str| {
        let request = api.stack.client.get(format!("{}/v2/whoami", api.url())).bearer_auth(key);
        send(request.header("X-Forwarded-For", format!("203.0.113.9, {client}")))
    };
    let unknown = || ApiKey::generate().unwrap().reveal().to_owned();
    wait_for_time_in_minute().await;
    for _ in 0..5 {
        assert_eq!(attempt("tdm_malformed".to_owned(), "192.0.2.1").await.status, 401);
    }
    for expected in [401, 401, 429, 429] {
        let response = attempt(unknown(), "192.0.2.1").await;
        assert_eq!(response.status, expected);
        assert_eq!(response.header("retry-after").is_empty(), expected == 401);
    }
    assert_eq!(attempt(unknown(), "192.0.2.2").await.status, 401);
    assert_eq!(attempt(api.key.clone(), "192.0.2.1").await.status, 200);
    // IPv6 addresses are limited by their /64 network.
    for (address, expected) in
        [("2001:db8::1", 401), ("2001:db8::2", 401), ("2001:db8::ffff:0:0:3", 429), ("2001:db8:0:1::1", 401)]
    {
        assert_eq!(attempt(unknown(), address).await.status, expected, "{address}");
    }
}

#[tokio::test]
async fn client_headers_do_not_evade_the_address_limit() {
    let settings = Settings {
        auth_failure_limit: 2,
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        ..Settings::default()
    };
    let api = TestApi::start_with(settings).await;
    let attempt = |head: &[(&'static str, String)]| {
        let key = ApiKey::generate().unwrap().reveal().to_owned();
        let request = api.stack.client.get(format!("{}/v2/whoami", api.url())).bearer_auth(key);
        send(head.iter().fold(request, |request, (name, value)| request.header(*name, value)))
    };
    wait_for_time_in_minute().await;
    // A proxy may pass on one of the two headers as the client sent it, so these count against the proxy.
    let forged = [("Forwarded", "for="), ("X-Forwarded-For", "")];
    let real = [("X-Forwarded-For", "192.0.2.1".to_owned()), ("Forwarded", "for=192.0.2.1".to_owned())];
    for n in 0..6 {
        let (header, prefix) = forged[n % 2];
        let response = attempt(&[(header, format!("{prefix}203.0.113.{n}")), real[n % 2].clone()]).await;
        assert_eq!(response.status, if n < 2 { 401 } else { 429 }, "{n}");
    }
    // One header alone, or two that agree, give the address of the client.
    assert_eq!(attempt(&real[..1]).await.status, 401);
    assert_eq!(attempt(&real[1..]).await.status, 401);
    for head in [&real[..1], &real[1..], &real] {
        assert_eq!(attempt(head).await.status, 429);
    }
    assert_eq!(attempt(&[("Forwarded", "for=192.0.2.2".to_owned())]).await.status, 401);
}
