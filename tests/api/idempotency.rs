//! Creates with an `Idempotency-Key`.

use futures_util::future::join_all;
use harness::{Response, TestApi, send, wait_until};
use reqwest::Method;
use serde_json::{Value, json};
use tidemark::store::Write;
use tidemark::store::records::idempotency::{IdempotentRequest, claim};
use tidemark::worker::housekeeping;
use tokio_util::sync::CancellationToken;

async fn create(api: &TestApi, path: &str, key: &str, body: Value) -> Response {
    send(api.request(Method::POST, path).header("Idempotency-Key", key).json(&body)).await
}

#[tokio::test]
async fn retry_gets_the_first_response_byte_for_byte() {
    let api = TestApi::start().await;
    let body = json!({"platform": "tiktok", "username": "one", "metadata": {"a": "1", "b": "2"}});
    let first = create(&api, "/v2/accounts", "k-1", body).await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (201, ""));
    api.patch("/v2/accounts/@one", json!({"category": "changed since"})).await;
    let reordered = r#"{"username":"one", "metadata":{"b":"2","a":"1"},"platform":"tiktok"}"#;
    let request = api.request(Method::POST, "/v2/accounts").header("Idempotency-Key", "k-1");
    let retry = send(request.header("Content-Type", "application/json").body(reordered)).await;
    assert_eq!((retry.status, &retry.body), (first.status, &first.body));
    assert_eq!(retry.header("location"), first.header("location"));
    assert_eq!(retry.header("idempotent-replayed"), "true");
    let other = create(&api, "/v2/accounts", "k-1", json!({"platform": "tiktok", "username": "two"})).await;
    assert_eq!(other.fields(), ["Idempotency-Key"]);
    // Another spelling of the path is the same request; another path or organization is not.
    let spelled =
        create(&api, "/v2//%61ccounts/", "k-1", json!({"platform": "tiktok", "username": "two"})).await;
    assert_eq!(spelled.fields(), ["Idempotency-Key"]);
    assert_eq!(create(&api, "/v2/creators", "k-1", json!({"name": "one"})).await.status, 201);
    let foreign = TestApi::start().await;
    let other =
        create(&foreign, "/v2/accounts", "k-1", json!({"platform": "tiktok", "username": "two"})).await;
    assert_eq!(other.status, 201);
}

#[tokio::test]
async fn failed_request_stores_no_response() {
    let api = TestApi::start().await;
    let wrong = create(&api, "/v2/creators", "k", json!({"name": ""})).await;
    assert_eq!(wrong.fields(), ["name"]);
    assert_eq!(create(&api, "/v2/creators", "k", json!({"name": "x"})).await.status, 201);
    let taken = json!({"platform": "tiktok", "username": "one"});
    api.create("/v2/accounts", taken.clone()).await;
    assert_eq!(create(&api, "/v2/accounts", "again", taken.clone()).await.status, 409);
    api.delete("/v2/accounts/@one").await;
    assert_eq!(create(&api, "/v2/accounts", "again", taken).await.status, 201);
    for key in [" ", "a b", "é", &"x".repeat(256)] {
        assert_eq!(
            create(&api, "/v2/creators", key, json!({"name": "x"})).await.fields(),
            ["Idempotency-Key"],
            "{key:?}"
        );
    }
    assert_eq!(create(&api, "/v2/creators", &"~".repeat(255), json!({"name": "x"})).await.status, 201);
}

#[tokio::test]
async fn concurrent_retries_create_one_resource() {
    let api = TestApi::start().await;
    let responses =
        join_all((0..10).map(|_| create(&api, "/v2/creators", "same", json!({"name": "one"})))).await;
    assert!(responses.iter().all(|response| [201, 409].contains(&response.status)));
    let first = responses.iter().find(|response| response.status == 201).unwrap();
    assert!(
        responses
            .iter()
            .filter(|response| response.status == 201)
            .all(|response| response.body == first.body)
    );
    assert_eq!(api.get("/v2/creators").await.json["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn retry_during_the_first_request_is_409() {
    let api = TestApi::start().await;
    let mut first = Write::begin(api.pg(), api.organization.id).await.unwrap();
    let name = IdempotentRequest {
        method: "POST",
        path: "/v2/creators".to_owned(),
        key: "slow".to_owned(),
        body_hash: [0; 32],
    };
    claim(&mut first, &name).await.unwrap();
    let retry = create(&api, "/v2/creators", "slow", json!({"name": "one"})).await;
    assert_eq!((retry.status, retry.json["code"].as_str()), (409, Some("CONFLICT")));
    drop(first);
    let status = wait_until("the key is free", async || {
        let status = create(&api, "/v2/creators", "slow", json!({"name": "one"})).await.status;
        (status != 409).then_some(status)
    })
    .await;
    assert_eq!(status, 201);
}

#[tokio::test]
async fn idempotency_key_is_free_after_a_day() {
    let api = TestApi::start().await;
    create(&api, "/v2/creators", "old", json!({"name": "one"})).await;
    sqlx::query("update idempotency_keys set created_at = created_at - interval '24 hours' where organization_id = $1")
        .bind(api.organization.id)
        .execute(api.pg())
        .await
        .unwrap();
    let again = create(&api, "/v2/creators", "old", json!({"name": "two"})).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, ""));
    let replay = create(&api, "/v2/creators", "old", json!({"name": "two"})).await;
    assert_eq!((replay.body == again.body, replay.header("idempotent-replayed")), (true, "true"));
}

#[tokio::test]
async fn idempotency_keys_are_removed_after_a_day() {
    let api = TestApi::start().await;
    create(&api, "/v2/creators", "old", json!({"name": "one"})).await;
    create(&api, "/v2/creators", "young", json!({"name": "two"})).await;
    for (key, age) in [("old", "24 hours"), ("young", "23 hours 59 minutes")] {
        sqlx::query("update idempotency_keys set created_at = now() - $3::text::interval where organization_id = $1 and key = $2")
            .bind(api.organization.id)
            .bind(key)
            .bind(age)
            .execute(api.pg())
            .await
            .unwrap();
    }
    let stop = CancellationToken::new();
    let housekeeping = tokio::spawn(housekeeping::run(api.stack.databases.clone(), stop.clone()));
    wait_until("only the young key remains", async || {
        let keys: Vec<String> =
            sqlx::query_scalar("select key from idempotency_keys where organization_id = $1")
                .bind(api.organization.id)
                .fetch_all(api.pg())
                .await
                .unwrap();
        (keys == ["young"]).then_some(())
    })
    .await;
    stop.cancel();
    housekeeping.await.unwrap();
}
