//! A Postgres without room on its disk, or told to let itself be read only because there is little left: reads go on, and
//! writes are told to come back. What happens on disks that are really full is in `full_disk`.

use std::sync::Arc;

use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgPoolOptions;
use tidemark::app::{App, RateLimitStore, Settings};
use tidemark::http::Problem;
use tidemark::store::Error;

use crate::harness::{TestApi, api_database, wait_until};

#[tokio::test]
async fn what_a_full_disk_makes_postgres_say_is_an_outage_and_nothing_else_is() {
    let pg = api_database().await;
    let status = async |code: &str| {
        let statement = format!("do $$ begin raise exception using errcode = '{code}'; end $$");
        let raised = sqlx::query(AssertSqlSafe(statement)).execute(&pg).await.unwrap_err();
        Problem::from(Error::from(raised)).status().as_u16()
    };
    // No room on the disk, no memory, more than is configured; and a server that may only be read.
    for code in ["53100", "53200", "53400", "25006"] {
        assert_eq!(status(code).await, 503, "{code}");
    }
    for code in ["22012", "23514", "25001"] {
        assert_eq!(status(code).await, 500, "{code}");
    }
}

#[tokio::test]
async fn while_postgres_may_only_be_read_reads_go_on_and_writes_answer_503() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "Kept on a full disk"})).await;
    let account = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "kept"})).await;
    let options = (*api.pg().connect_options()).clone().options([("default_transaction_read_only", "on")]);
    let pg = PgPoolOptions::new().max_connections(2).connect_with(options).await.unwrap();
    // Where requests are counted in Postgres, they are not any more.
    let settings = Settings { rate_limit_store: RateLimitStore::Postgres, ..Settings::default() };
    let full = api.start_another(App { pg, settings: Arc::new(settings), ..api.app.clone() }).await;

    let creator = format!("/v2/creators/{creator}");
    for path in ["/v2/accounts", "/v2/creators", "/v2/account-videos", "/v2/whoami", "/v2/health", &creator] {
        let answer = full.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {answer}");
    }
    wait_until("search finds it", async || {
        let found = full.get("/v2/search?q=kept+on").await.ok(200);
        (found.json["data"]["creators"].as_array().unwrap().len() == 1).then_some(())
    })
    .await;
    let link = format!("{creator}/accounts/{account}");
    for answer in [
        full.post("/v2/creators", json!({"name": "no room"})).await,
        full.post("/v2/accounts", json!({"platform": "tiktok", "username": "no.room"})).await,
        full.patch(&creator, json!({"name": "no room"})).await,
        full.put(&link).await,
        full.delete(&creator).await,
    ] {
        assert_eq!((answer.status, answer.header("retry-after")), (503, "30"), "{answer}");
        assert_eq!(answer.json["code"], "SERVICE_UNAVAILABLE");
    }
    // Nothing of it was kept, and with room again all of it works.
    assert_eq!(api.get(&creator).await.json["data"]["name"], "Kept on a full disk");
    assert_eq!(api.get("/v2/creators?include_total=true").await.json["pagination"]["total_count"], 1);
    assert_eq!(api.patch(&creator, json!({"name": "room"})).await.status, 200);
    assert_eq!(api.put(&link).await.status, 201);
}
