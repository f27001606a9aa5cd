//! How often a key may ask, and an address may try keys.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::Utc;
use futures_util::future::join_all;
use tidemark::app::{RateLimitStore, Settings};
use tidemark::model::key::ApiKey;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::worker::housekeeping;
use tokio_util::sync::CancellationToken;

use crate::authentication::whoami;
use crate::harness::{Response, TestApi, create_organization, send, wait_until};

/// Asserts that of the requests in each window exactly as many passed as the limit allows, and that the answers say
/// what is left. Returns the answers that were refused.
fn assert_exact(answers: Vec<Response>, limit: usize) -> Vec<Response> {
    let mut windows: BTreeMap<String, (Vec<String>, Vec<Response>)> = BTreeMap::new();
    for answer in answers {
        let (passed, refused) = windows.entry(answer.header("x-ratelimit-reset").to_owned()).or_default();
        assert_eq!(answer.header("x-ratelimit-limit"), limit.to_string(), "{answer}");
        match answer.status {
            200 | 304 => passed.push(answer.header("x-ratelimit-remaining").to_owned()),
            _ => refused.push(answer),
        }
    }
    let mut all_refused = Vec::new();
    for (reset, (passed, refused)) in windows {
        assert_eq!(reset.parse::<i64>().unwrap() % 60, 0);
        assert_eq!(passed.len(), limit.min(passed.len() + refused.len()), "of the window until {reset}");
        // Every place in the window was given once.
        let mut remaining: Vec<usize> = passed.iter().map(|remaining| remaining.parse().unwrap()).collect();
        remaining.sort_unstable_by(|a, b| b.cmp(a));
        assert_eq!(remaining, (limit - passed.len()..limit).rev().collect::<Vec<_>>());
        all_refused.extend(refused);
    }
    for answer in &all_refused {
        assert_eq!((answer.status, answer.json["code"].as_str()), (429, Some("RATE_LIMITED")));
        assert_eq!(answer.header("x-ratelimit-remaining"), "0");
        assert!((1..=60).contains(&answer.header("retry-after").parse::<i64>().unwrap()));
    }
    all_refused
}

fn shared() -> Settings {
    Settings { rate_limit_store: RateLimitStore::Postgres, ..Settings::default() }
}

#[tokio::test]
async fn several_processes_share_one_exact_count() {
    let (one, two) = (TestApi::start_with(shared()).await, TestApi::start_with(shared()).await);
    let limited = NewKey { rate_limit: Some(77), ..NewKey::named("limited") };
    let key = one.create_key(limited).await;
    let ask =
        |api: &TestApi| send(api.stack.client.get(format!("{}/v2/whoami", api.url())).bearer_auth(&key));
    let answers = join_all((0..200).map(|n| ask(if n % 2 == 0 { &one } else { &two }))).await;
    // Were the minute to end meanwhile, the second window would have room for some more.
    assert!(assert_exact(answers, 77).len() >= 200 - 2 * 77);
}

#[tokio::test]
async fn a_store_that_does_not_count_is_an_outage_and_never_a_free_pass() {
    let api = TestApi::start_with(shared()).await;
    assert_eq!(api.get("/v2/whoami").await.status, 200);
    // The key is still remembered, so the count is the first to miss Postgres.
    api.pg().close().await;
    let answer = api.get("/v2/whoami").await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "1"), "{answer}");
    assert_eq!(answer.json["code"], "SERVICE_UNAVAILABLE");
}

#[tokio::test]
async fn windows_that_are_over_are_removed_and_the_running_one_stays() {
    let api = TestApi::start_with(shared()).await;
    let minute = Utc::now().timestamp() / 60;
    let (past, running) = (uuid::Uuid::now_v7(), uuid::Uuid::now_v7());
    // Far enough ahead that it cannot end during the test.
    for (key, minute) in [(past, minute - 1), (running, minute + 10)] {
        sqlx::query("insert into rate_limit_windows (minute, key_id, requests) values ($1, $2, 5)")
            .bind(minute)
            .bind(key)
            .execute(api.pg())
            .await
            .unwrap();
    }
    let stop = CancellationToken::new();
    let housekeeping = tokio::spawn(housekeeping::run(api.pg().clone(), stop.clone()));
    let known = async |key| {
        let query =
            sqlx::query_scalar::<_, bool>("select exists (select from rate_limit_windows where key_id = $1)");
        query.bind(key).fetch_one(api.pg()).await.unwrap()
    };
    wait_until("the window that is over is removed", async || (!known(past).await).then_some(())).await;
    assert!(known(running).await);
    stop.cancel();
    housekeeping.await.unwrap();
}

#[tokio::test]
async fn exactly_the_limit_passes_in_a_minute() {
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
async fn a_limit_of_the_organization_holds_for_keys_without_one_of_their_own() {
    let api = TestApi::start().await;
    let options = OrganizationChange { rate_limit: Some(Some(3)), ..Default::default() };
    let (_, key) = create_organization(api.pg(), options).await;
    let who = whoami(&api, &format!("Bearer {key}")).await;
    assert_eq!(who.json["data"]["rate_limit"], 3);
    assert_eq!(who.header("x-ratelimit-limit"), "3");
}

/// Waits for a clock minute that has enough left for a test about one.
async fn enough_of_a_minute() {
    while Utc::now().timestamp() % 60 > 45 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test]
async fn unknown_keys_are_limited_by_address_and_never_cost_a_valid_one() {
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
    enough_of_a_minute().await;
    for _ in 0..5 {
        assert_eq!(attempt("tdm_malformed".to_owned(), "192.0.2.1").await.status, 401);
    }
    for expected in [401, 401, 429, 429] {
        let answer = attempt(unknown(), "192.0.2.1").await;
        assert_eq!(answer.status, expected);
        assert_eq!(answer.header("retry-after").is_empty(), expected == 401);
    }
    assert_eq!(attempt(unknown(), "192.0.2.2").await.status, 401);
    assert_eq!(attempt(api.key.clone(), "192.0.2.1").await.status, 200);
    // Who has one address of IPv6 has a network of them.
    for (address, expected) in
        [("2001:db8::1", 401), ("2001:db8::2", 401), ("2001:db8::ffff:0:0:3", 429), ("2001:db8:0:1::1", 401)]
    {
        assert_eq!(attempt(unknown(), address).await.status, expected, "{address}");
    }
}

#[tokio::test]
async fn no_header_of_a_clients_own_escapes_the_limit_by_address() {
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
    enough_of_a_minute().await;
    // A proxy that keeps one of the two passes the other on as the client made it: all of these count as the proxy's.
    let made_up = [("Forwarded", "for="), ("X-Forwarded-For", "")];
    let real = [("X-Forwarded-For", "192.0.2.1".to_owned()), ("Forwarded", "for=192.0.2.1".to_owned())];
    for n in 0..6 {
        let (header, prefix) = made_up[n % 2];
        let answer = attempt(&[(header, format!("{prefix}203.0.113.{n}")), real[n % 2].clone()]).await;
        assert_eq!(answer.status, if n < 2 { 401 } else { 429 }, "{n}");
    }
    // Each alone is the client's address, and so are both together where they are of one mind.
    assert_eq!(attempt(&real[..1]).await.status, 401);
    assert_eq!(attempt(&real[1..]).await.status, 401);
    for head in [&real[..1], &real[1..], &real] {
        assert_eq!(attempt(head).await.status, 429);
    }
    assert_eq!(attempt(&[("Forwarded", "for=192.0.2.2".to_owned())]).await.status, 401);
}
