//! Authentication with API keys, and their scopes.

use chrono::{TimeDelta, Utc};
use harness::{Response, TestApi, send, wait_until};
use reqwest::Method;
use serde_json::json;
use tidemark::model::key::ApiKey;
use tidemark::model::organization::{KeyStatus, Scope, Subscription};
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::records::organizations::{self, OrganizationChange};

pub(crate) async fn whoami(api: &TestApi, authorization: &str) -> Response {
    let request = api.stack.client.get(format!("{}/v2/whoami", api.url()));
    send(request.header("Authorization", authorization)).await
}

#[tokio::test]
async fn whoami_returns_organization_scopes_and_limit() {
    let api = TestApi::start().await;
    let who = api.get("/v2/whoami").await;
    let organization = api.organization.id;
    assert_eq!(
        who.json["data"],
        json!({"type": "whoami", "organization_id": organization, "organization": {"id": organization, "name": "test"},
               "api_key_name": "test key", "scopes": ["read", "write", "admin"], "rate_limit": 600,
               "usage": {"accounts": 0, "account_cap": null}})
    );
    let writer = NewKey { scopes: vec![Scope::Write], rate_limit: Some(7), ..NewKey::named("writer") };
    let who = whoami(&api, &format!("bEARER {}", api.create_key(writer).await)).await;
    assert_eq!(who.json["data"]["scopes"], json!(["read", "write"]));
    assert_eq!(who.json["data"]["rate_limit"], 7);
}

#[tokio::test]
async fn whoami_counts_accounts_against_the_cap() {
    let (api, other) = (TestApi::start().await, TestApi::start().await);
    other.create("/v2/accounts", json!({"platform": "tiktok", "username": "theirs"})).await;
    let change = OrganizationChange {
        name: Some("Renamed".to_owned()),
        account_cap: Some(Some(2)),
        ..OrganizationChange::default()
    };
    organizations::update(api.pg(), api.organization.id, &change).await.unwrap();
    for (count, active) in [(1, true), (2, false)] {
        let body = json!({"platform": "tiktok", "username": format!("user{count}"), "is_active": active});
        api.create("/v2/accounts", body).await;
        let who = api.get("/v2/whoami").await.ok(200);
        assert_eq!(who.at("/data/usage"), &json!({"accounts": count, "account_cap": 2}));
        assert_eq!(who.text("/data/organization/name"), "Renamed");
    }
    organizations::delete(api.pg(), api.organization.id).await.unwrap();
    api.get("/v2/whoami").await.problem(401, "UNAUTHORIZED");
}

#[tokio::test]
async fn every_invalid_key_gets_the_same_401() {
    let api = TestApi::start().await;
    let unknown = ApiKey::generate().unwrap().reveal().to_owned();
    let expired = NewKey { expires_at: Some(Utc::now() - TimeDelta::hours(1)), ..NewKey::named("old") };
    let expired = api.create_key(expired).await;
    let mut details = Vec::new();
    for authorization in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {}", api.key),
        format!("Bearer {}x", api.key),
        format!("Bearer {}", &api.key[..40]),
        format!("Bearer {unknown}"),
        format!("Bearer {expired}"),
    ] {
        let response = whoami(&api, &authorization).await;
        assert_eq!(response.status, 401, "{authorization}");
        assert_eq!(response.header("www-authenticate"), "Bearer");
        assert_eq!(response.json["code"], "UNAUTHORIZED");
        assert_eq!(response.header("x-ratelimit-limit"), "");
        details.push(response.json["detail"].as_str().unwrap().to_owned());
    }
    details.dedup();
    assert_eq!(details.len(), 1, "{details:?}");
}

#[tokio::test]
async fn inactive_key_or_subscription_becomes_403() {
    let api = TestApi::start().await;
    let key = keys::create(api.pg(), api.organization.id, &NewKey::named("switched")).await.unwrap();
    let authorization = format!("Bearer {}", key.key);
    assert_eq!(whoami(&api, &authorization).await.status, 200);
    for status in [KeyStatus::Inactive, KeyStatus::Disabled, KeyStatus::Active] {
        keys::set_status(api.pg(), key.record.id, status).await.unwrap();
        let expected = if status == KeyStatus::Active { 200 } else { 403 };
        let response = wait_for_status(&api, &authorization, expected).await;
        assert_eq!(response.header("x-ratelimit-limit").is_empty(), expected == 403);
    }
    let change = |subscription| OrganizationChange { subscription: Some(subscription), ..Default::default() };
    organizations::update(api.pg(), api.organization.id, &change(Subscription::Inactive)).await.unwrap();
    let response = wait_for_status(&api, &authorization, 403).await;
    assert_eq!(response.json["code"], "FORBIDDEN");
}

/// Polls until a change of a key takes effect: within 5 s, as `http::middleware::authenticate` asserts.
async fn wait_for_status(api: &TestApi, authorization: &str, expected: u16) -> Response {
    wait_until("the change of the key takes effect", async || {
        let response = whoami(api, authorization).await;
        (response.status == expected).then_some(response)
    })
    .await
}

#[tokio::test]
async fn read_only_key_cannot_write() {
    let api = TestApi::start().await;
    let reader = NewKey { scopes: vec![Scope::Read], ..NewKey::named("reader") };
    let reader = api.create_key(reader).await;
    let id = uuid::Uuid::now_v7();
    for (method, path) in [
        (Method::POST, "/v2/accounts".to_owned()),
        (Method::PATCH, format!("/v2/accounts/{id}")),
        (Method::DELETE, format!("/v2/accounts/{id}")),
        (Method::POST, "/v2/creators".to_owned()),
        (Method::PATCH, format!("/v2/creators/{id}")),
        (Method::DELETE, format!("/v2/creators/{id}")),
        (Method::PUT, format!("/v2/creators/{id}/accounts/{id}")),
        (Method::DELETE, format!("/v2/creators/{id}/accounts/{id}")),
    ] {
        let request =
            api.stack.client.request(method.clone(), format!("{}{path}", api.url())).bearer_auth(&reader);
        let response = send(request).await;
        assert_eq!(response.status, 403, "{method} {path}");
        assert_eq!(response.json["code"], "INSUFFICIENT_SCOPE");
        assert_ne!(response.header("x-ratelimit-remaining"), "");
    }
    let read = send(api.stack.client.get(format!("{}/v2/accounts", api.url())).bearer_auth(&reader)).await;
    assert_eq!(read.status, 200);
}
