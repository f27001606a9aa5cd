//! Webhooks: records and secrets, and what receivers get.

mod deliveries;
mod examples;
mod failures;
mod receiver;
mod restarts;

use harness::{Organization, Response, TestApi, send};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::app::Settings;
use tidemark::model::organization::Scope;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::webhooks as records;
use uuid::Uuid;

use super::accounts::parse_id;

const URL: &str = "https://example.com/hook?token=sentinel-of-a-url";

async fn create_with_key(api: &TestApi, path: &str, key: &str, body: &Value) -> Response {
    send(api.request(Method::POST, path).header("Idempotency-Key", key).json(body)).await
}

#[tokio::test]
async fn created_webhook_has_all_fields() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    let body = json!({
        "url": URL, "types": ["video.breakout", "account.failing"], "filter": {"account_ids": [account]},
        "format": "slack", "description": "Breakouts",
    });
    let created = api.post("/v2/webhooks", body).await.ok(201);
    let id = created.text("/data/id").to_owned();
    assert_eq!(created.header("location"), format!("/v2/webhooks/{id}"));
    let mut expected = created.at("/data").clone();
    let secret = expected["secret"].take();
    let secret = secret.as_str().unwrap();
    assert!(secret.starts_with("whsec_") && secret.len() == 50, "{secret}");
    assert_eq!(
        expected,
        json!({
            "id": id, "type": "webhook", "url": URL, "types": ["video.breakout", "account.failing"],
            "filter": {"account_ids": [account], "creator_ids": null, "collection_ids": null}, "format": "slack",
            "description": "Breakouts", "is_active": true, "status": "ok", "failing_since": null, "secret": null,
            "added_at": expected["added_at"], "updated_at": expected["added_at"],
        })
    );
    assert_eq!(api.get(&format!("/v2/webhooks/{id}")).await.ok(200).at("/data"), &expected);
    let minimal = api.post("/v2/webhooks", json!({"url": "https://example.com/"})).await.ok(201);
    assert_eq!((minimal.text("/data/format"), minimal.at("/data/types")), ("standard", &Value::Null));
    let list = api.get("/v2/webhooks").await.ok(200);
    assert_eq!(list.at("/data/1"), &expected);
    assert_eq!(list.text("/data/0/id"), minimal.text("/data/id"));
}

#[tokio::test]
async fn links_lead_to_the_host_that_created_the_webhook() {
    let api = TestApi::start().await;
    let id = api.create("/v2/webhooks", json!({"url": URL, "format": "slack"})).await;
    let origin: String = sqlx::query_scalar("select origin from webhooks where id = $1")
        .bind(parse_id(&id))
        .fetch_one(api.pg())
        .await
        .unwrap();
    assert_eq!(origin, api.url());
}

#[tokio::test]
async fn webhook_is_changed_and_deleted() {
    let api = TestApi::start().await;
    let id = api.create("/v2/webhooks", json!({"url": URL, "types": ["video.breakout"]})).await;
    let path = format!("/v2/webhooks/{id}");
    let change =
        json!({"types": null, "description": "All", "format": "discord", "url": "https://example.org/"});
    let changed = api.patch(&path, change).await.ok(200);
    assert_eq!((changed.at("/data/types"), changed.text("/data/description")), (&Value::Null, "All"));
    assert_eq!(
        (changed.text("/data/format"), changed.text("/data/url")),
        ("discord", "https://example.org/")
    );
    assert!(changed.at("/data/secret").is_null());
    let paused = api.patch(&path, json!({"is_active": false, "description": null})).await.ok(200);
    assert_eq!((paused.at("/data/is_active"), paused.text("/data/status")), (&json!(false), "ok"));
    let active = api.patch(&path, json!({"is_active": true})).await.ok(200);
    assert_eq!((active.at("/data/is_active"), active.at("/data/description")), (&json!(true), &Value::Null));
    assert_eq!(api.patch(&path, json!({})).await.ok(200).json, active.json);
    api.delete(&path).await.ok(204);
    for request in [api.get(&path).await, api.patch(&path, json!({})).await, api.delete(&path).await] {
        request.problem(404, "NOT_FOUND");
    }
    for action in ["rotate-secret", "test", &format!("deliveries/{id}/retry")] {
        api.post(&format!("{path}/{action}"), json!({})).await.problem(404, "NOT_FOUND");
    }
    api.get(&format!("{path}/deliveries")).await.problem(404, "NOT_FOUND");
}

#[tokio::test]
async fn filter_has_records_of_the_organization() {
    let api = TestApi::start().await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    for name in ["account_ids", "creator_ids", "collection_ids"] {
        let body = json!({"url": URL, "filter": {name: [Uuid::now_v7()]}});
        api.post("/v2/webhooks", body).await.problem(404, "NOT_FOUND");
    }
    let filter = json!({"account_ids": [account, account], "creator_ids": null});
    let id = api.create("/v2/webhooks", json!({"url": URL, "filter": filter})).await;
    api.delete(&format!("/v2/accounts/{account}")).await.ok(204);
    // What a stored filter has may stay.
    let kept = json!({"filter": {"account_ids": [account]}});
    api.patch(&format!("/v2/webhooks/{id}"), kept.clone()).await.ok(200);
    api.patch(&format!("/v2/webhooks/{id}"), json!({"filter": null})).await.ok(200);
    api.patch(&format!("/v2/webhooks/{id}"), kept).await.problem(404, "NOT_FOUND");
    let refused =
        api.post("/v2/webhooks", json!({"url": URL, "filter": {"account_ids": [], "x": 1}})).await.ok(422);
    assert_eq!(refused.fields(), ["filter.account_ids", "filter.x"]);
}

#[tokio::test]
async fn private_addresses_and_http_are_for_allowed_hosts() {
    let api = TestApi::start().await;
    let id = api.create("/v2/webhooks", json!({"url": URL})).await;
    for url in [
        "http://example.com/",
        "https://127.0.0.1/",
        "https://10.1.2.3/",
        "https://169.254.169.254/latest",
        "https://2130706433/",
        "https://[::1]/",
        "https://[::ffff:192.168.0.1]/",
        "https://localhost/",
        "ftp://example.com/",
        "example.com",
    ] {
        let refused = api.post("/v2/webhooks", json!({"url": url})).await.ok(422);
        assert_eq!(refused.fields(), ["url"], "{url}");
        assert_eq!(api.patch(&format!("/v2/webhooks/{id}"), json!({"url": url})).await.status, 422, "{url}");
    }
    let webhook_allowed_hosts = "127.0.0.1, hooks.internal:8080".parse().unwrap();
    let api = TestApi::start_with(Settings { webhook_allowed_hosts, ..Settings::default() }).await;
    for (url, status) in [
        ("http://127.0.0.1:9/", 201),
        ("http://hooks.internal:8080/a", 201),
        ("http://hooks.internal/a", 422),
        ("http://127.0.0.2/", 422),
        ("ftp://127.0.0.1/", 422),
    ] {
        assert_eq!(api.post("/v2/webhooks", json!({"url": url})).await.status, status, "{url}");
    }
}

#[tokio::test]
async fn organization_has_at_most_20_webhooks() {
    let api = TestApi::start().await;
    for _ in 0..18 {
        api.create("/v2/webhooks", json!({"url": URL})).await;
    }
    let last = (0..6).map(|_| api.post("/v2/webhooks", json!({"url": URL})));
    let created = futures_util::future::join_all(last).await;
    let refused: Vec<_> = created.iter().filter(|response| response.status == 409).collect();
    assert_eq!(refused.len(), 4);
    assert!(refused[0].text("/detail").contains("20 webhooks"), "{}", refused[0]);
    assert_eq!(api.get("/v2/webhooks?include_total=true").await.integer("/pagination/total_count"), 20);
    let page = api.get("/v2/webhooks?limit=15").await.ok(200);
    let cursor = page.text("/pagination/next_cursor");
    assert_eq!(
        api.get(&format!("/v2/webhooks?limit=15&cursor={cursor}")).await.ok(200).list("/data").len(),
        5
    );
}

#[tokio::test]
async fn every_operation_needs_the_write_scope() {
    let api = TestApi::start().await;
    let id = api.create("/v2/webhooks", json!({"url": URL})).await;
    let key = api.create_key(NewKey { scopes: vec![Scope::Read], ..NewKey::named("reader") }).await;
    let reader = Organization { key, ..api.organization.clone() };
    for path in ["/v2/webhooks", &format!("/v2/webhooks/{id}"), &format!("/v2/webhooks/{id}/deliveries")] {
        reader.get(path).await.problem(403, "INSUFFICIENT_SCOPE");
    }
    reader.post(&format!("/v2/webhooks/{id}/test"), json!({})).await.problem(403, "INSUFFICIENT_SCOPE");
    let key = api.create_key(NewKey { scopes: vec![Scope::Write], ..NewKey::named("writer") }).await;
    let writer = Organization { key, ..api.organization.clone() };
    writer.get("/v2/webhooks").await.ok(200);
    let other = api.stack.organization().await;
    other.get(&format!("/v2/webhooks/{id}")).await.problem(404, "NOT_FOUND");
}

/// Everything about an organization's webhooks that is in Postgres.
async fn stored_text(api: &TestApi) -> String {
    let rows: Vec<String> = sqlx::query_scalar(
        "select row_to_json(w)::text || encode(secret, 'escape') || coalesce(encode(previous_secret, 'escape'), '')
         from webhooks w where organization_id = $1
         union all select encode(body, 'escape') from idempotency_keys where organization_id = $1",
    )
    .bind(api.organization.id)
    .fetch_all(api.pg())
    .await
    .unwrap();
    rows.join("\n")
}

#[tokio::test]
async fn secret_is_shown_once_and_stored_encrypted() {
    let api = TestApi::start().await;
    let body = json!({"url": URL});
    let first = create_with_key(&api, "/v2/webhooks", "k", &body).await.ok(201);
    let path = format!("/v2/webhooks/{}", first.text("/data/id"));
    let rotated = create_with_key(&api, &format!("{path}/rotate-secret"), "k", &json!({})).await.ok(201);
    assert_eq!(rotated.header("location"), path);
    let replayed = create_with_key(&api, "/v2/webhooks", "k", &body).await.ok(201);
    assert_eq!((&replayed.body, replayed.header("idempotent-replayed")), (&first.body, "true"));
    let replayed = create_with_key(&api, &format!("{path}/rotate-secret"), "k", &json!({})).await.ok(201);
    assert_eq!(replayed.body, rotated.body);
    let secrets = [first.text("/data/secret"), rotated.text("/data/secret")];
    assert_ne!(secrets[0], secrets[1]);
    let stored = stored_text(&api).await;
    for secret in secrets {
        assert!(!stored.contains(secret.trim_start_matches("whsec_")), "{stored}");
    }
    // What is stored is what was shown.
    let key = records::fetch_secret_key(api.pg()).await.unwrap();
    let (secret, previous): (Vec<u8>, Vec<u8>) =
        sqlx::query_as("select secret, previous_secret from webhooks where organization_id = $1")
            .bind(api.organization.id)
            .fetch_one(api.pg())
            .await
            .unwrap();
    let id = parse_id(first.text("/data/id"));
    for (encrypted, shown) in [(secret, secrets[1]), (previous, secrets[0])] {
        assert_eq!(key.decrypt(id.as_bytes(), &encrypted).unwrap(), shown.as_bytes());
    }
}
