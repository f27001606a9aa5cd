//! Postgres errors of a full disk, and a read-only Postgres: reads work, writes answer 503. `full_disk` fills real disks.

use std::sync::Arc;

use harness::{TestApi, api_database, wait_until};
use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPoolOptions;
use tidemark::app::{App, RateLimitStore, Settings};
use tidemark::http::Problem;
use tidemark::store::Error;

#[tokio::test]
async fn disk_full_and_read_only_errors_are_503() {
    let pg = api_database().await;
    let status = async |code: &str| {
        let statement = format!("do $$ begin raise exception using errcode = '{code}'; end $$");
        let raised = sqlx::query(AssertSqlSafe(statement)).execute(&pg).await.unwrap_err();
        Problem::from(Error::from(raised)).status().as_u16()
    };
    // disk_full, out_of_memory, configuration_limit_exceeded, read_only_sql_transaction
    for code in ["53100", "53200", "53400", "25006"] {
        assert_eq!(status(code).await, 503, "{code}");
    }
    for code in ["22012", "23514", "25001"] {
        assert_eq!(status(code).await, 500, "{code}");
    }
}

#[tokio::test]
async fn read_only_postgres_serves_reads_and_rejects_writes() {
    let api = TestApi::start_with_search().await;
    let creator = api.create("/v2/creators", json!({"name": "Created before"})).await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "before"})).await;
    let options = (*api.pg().connect_options()).clone().options([("default_transaction_read_only", "on")]);
    let pg = PgPoolOptions::new().max_connections(2).connect_with(options).await.unwrap();
    // Rate limits in Postgres cannot be counted.
    let settings = Settings { rate_limit_store: RateLimitStore::Postgres, ..Settings::default() };
    let full = api.start_another(App { pg, settings: Arc::new(settings), ..api.app.clone() }).await;

    let creator = format!("/v2/creators/{creator}");
    for path in ["/v2/accounts", "/v2/creators", "/v2/account-videos", "/v2/whoami", "/v2/health", &creator] {
        let response = full.get(path).await;
        assert_eq!(response.status, 200, "{path}: {response}");
    }
    wait_until("search finds it", async || {
        let found = full.get("/v2/search?q=created+before").await.ok(200);
        (found.json["data"]["creators"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
    let link = format!("{creator}/accounts/{account}");
    for response in [
        full.post("/v2/creators", json!({"name": "no room"})).await,
        full.post("/v2/accounts", json!({"platform": "tiktok", "username": "no.room"})).await,
        full.patch(&creator, json!({"name": "no room"})).await,
        full.put(&link).await,
        full.delete(&creator).await,
    ] {
        assert_eq!((response.status, response.header("retry-after")), (503, "30"), "{response}");
        assert_eq!(response.json["code"], "SERVICE_UNAVAILABLE");
    }
    let postgres = full.get("/v2/health").await.ok(200).json["data"]["checks"]["postgres"].clone();
    assert_eq!(postgres["status"], "degraded");
    assert!(postgres["detail"].as_str().unwrap().contains("rejects writes"), "{postgres}");
    // Through the writable server, which shares the state, Postgres accepts writes again.
    for _ in 0..2 {
        let health = api.get("/v2/health").await.ok(200);
        assert_eq!(health.json["data"]["checks"]["postgres"]["status"], "ok", "{health}");
    }
    // Nothing was written, and the writable server works.
    assert_eq!(api.get(&creator).await.json["data"]["name"], "Created before");
    assert_eq!(api.get("/v2/creators?include_total=true").await.json["pagination"]["total_count"], 1);
    assert_eq!(api.patch(&creator, json!({"name": "room"})).await.status, 200);
    assert_eq!(api.put(&link).await.status, 201);
}
