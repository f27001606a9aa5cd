//! What is answered while a store is out.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use sqlx::{ConnectOptions, PgPool};
use tidemark::app::{App, Clock, Settings, Stores};
use tidemark::config::PostgresArgs;
use tidemark::model::platform::{Platform, Readable};
use tidemark::model::secret::Secret;
use tidemark::store::organizations::OrganizationChange;

use crate::harness::{TestApi, client, eventually, postgres, send, serve, tenant};

/// How long an answer may take that the service gives within five seconds (`http::TimeLeft`), on a machine that has others
/// to serve.
const IN_TIME: Duration = Duration::from_secs(10);

/// A process's connections for requests to the Postgres at the given address.
fn for_requests(database_url: String, database_connections: u32) -> PgPool {
    let args = PostgresArgs { database_url: Secret::new(database_url), database_connections };
    tidemark::app::postgres_for_requests(&args).unwrap()
}

/// An API whose Postgres is at the given address.
async fn api_over(api: &TestApi, database_url: String) -> String {
    let stores = Stores {
        pg: for_requests(database_url, 4),
        clickhouse: clickhouse::Client::default().with_url("http://127.0.0.1:1"),
        clock: Clock::new(None),
    };
    let readable = Readable::new(Platform::ALL);
    serve(&App::new(stores, api.app.search.clone(), readable, Settings::default())).await
}

#[tokio::test]
async fn without_postgres_the_answer_is_503_in_time() {
    let api = TestApi::start().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = "127.0.0.1:1".to_owned();
    for address in [closed, silent.local_addr().unwrap().to_string()] {
        let url = api_over(&api, format!("postgres://nobody@{address}/nothing")).await;
        let started = Instant::now();
        let answer = send(client().get(format!("{url}/v2/accounts")).bearer_auth(&api.key)).await;
        assert!(started.elapsed() < IN_TIME, "{address} {:?}", started.elapsed());
        assert_eq!(answer.status, 503, "{}", answer.text);
        assert_eq!(answer.json()["code"], "SERVICE_UNAVAILABLE");
        assert_eq!(answer.header("retry-after"), "1");
        let health = send(client().get(format!("{url}/v2/health"))).await;
        assert_eq!(health.status, 503);
        assert_eq!(health.json()["data"]["checks"]["postgres"]["status"], "down");
        assert_eq!(send(client().get(format!("{url}/v2/meta"))).await.status, 200);
    }
}

#[tokio::test]
async fn a_store_that_stops_answering_within_a_request_is_told_in_time() {
    let api = TestApi::start().await;
    api.create("/v2/creators", json!({"name": "locked"})).await;
    let mut blocking = api.pg.begin().await.unwrap();
    sqlx::query("select from creators where organization_id = $1 for update")
        .bind(api.organization)
        .execute(&mut *blocking)
        .await
        .unwrap();
    let creator = api.get("/v2/creators").await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    let started = Instant::now();
    let answer = api.patch(&format!("/v2/creators/{creator}"), json!({"name": "x"})).await;
    assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
    assert_eq!((answer.status.as_u16(), answer.header("retry-after")), (503, "1"));
    assert_ne!(answer.header("x-ratelimit-remaining"), "");
    blocking.rollback().await.unwrap();
    assert_eq!(api.patch(&format!("/v2/creators/{creator}"), json!({"name": "y"})).await.status, 200);
}

#[tokio::test]
async fn requests_that_wait_for_a_lock_keep_nobody_elses_connections() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "locked"})).await;
    let url = api_over(&api, api.pg.connect_options().to_url_lossy().into()).await;
    let (_, others_key) = tenant(&api.pg, OrganizationChange::default()).await;
    let mut blocking = api.pg.begin().await.unwrap();
    sqlx::query("select from creators where organization_id = $1 for update")
        .bind(api.organization)
        .execute(&mut *blocking)
        .await
        .unwrap();
    let waiting = (0..12).map(|_| {
        let request = client().patch(format!("{url}/v2/creators/{creator}")).bearer_auth(&api.key);
        send(request.json(&json!({"name": "x"})))
    });
    let answers = join_all(waiting).await;
    assert!(answers.iter().all(|answer| answer.status == 503));
    assert!(answers.iter().any(|answer| answer.text.contains("another change was in the way")));
    let started = Instant::now();
    let answer = send(client().get(format!("{url}/v2/creators")).bearer_auth(others_key)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    blocking.rollback().await.unwrap();
}

#[tokio::test]
async fn a_statement_that_is_given_up_ends_and_its_connection_is_anothers() {
    let own = postgres().await;
    let pg = for_requests(own.connect_options().to_url_lossy().into(), 1);
    let (backend, bounds): (i32, Vec<String>) = sqlx::query_as(
        "select pg_backend_pid(), array[current_setting('statement_timeout'), current_setting('lock_timeout'),
             current_setting('idle_in_transaction_session_timeout')]",
    )
    .fetch_one(&pg)
    .await
    .unwrap();
    assert_eq!(bounds, ["5s", "4s", "10s"]);
    let long = sqlx::query("select pg_sleep(4)").execute(&pg);
    assert!(tokio::time::timeout(Duration::from_millis(100), long).await.is_err());
    let given_up = Instant::now();
    let next: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&pg).await.unwrap();
    assert_ne!(next, backend);
    eventually("the statement ends too", async || {
        let there = "select exists (select from pg_stat_activity where pid = $1)";
        let there: bool = sqlx::query_scalar(there).bind(backend).fetch_one(&own).await.unwrap();
        (!there).then_some(())
    })
    .await;
    assert!(given_up.elapsed() < Duration::from_secs(3), "{:?}", given_up.elapsed());
}

#[tokio::test]
async fn records_go_on_without_clickhouse_and_health_says_so() {
    let api = TestApi::start().await;
    let id = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    assert_eq!(api.delete(&format!("/v2/accounts/{id}")).await.status, 204);
    let health = api.get("/v2/health").await;
    let data = health.json()["data"].clone();
    assert_eq!(
        (health.status.as_u16(), &data["type"], &data["status"]),
        (200, &json!("health"), &json!("degraded"))
    );
    for (check, status) in [("postgres", "ok"), ("clickhouse", "down")] {
        assert_eq!(data["checks"][check]["status"], status, "{data}");
        assert!(data["checks"][check]["latency_ms"].is_u64());
    }
    assert!(data["checks"].get("search").is_some() && data["checks"].get("tracker").is_some());
}
