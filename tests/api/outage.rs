//! What is answered while a store is out.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::json;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, PgPool};
use tidemark::app::{App, Clock, Databases, Settings};
use tidemark::config::PostgresArgs;
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::model::secret::Secret;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::{Error, Write};
use uuid::Uuid;

use crate::harness::{
    TcpProxy, TestApi, api_database, create_organization, http_client, send, serve, wait_until,
};

/// How long an answer may take that the service gives within five seconds (`http::middleware::request_timeout`), on a machine that has others
/// to serve.
const IN_TIME: Duration = Duration::from_secs(10);

/// How a process reaches the Postgres at the given address.
fn postgres_args(database_url: String, database_connections: u32) -> PostgresArgs {
    PostgresArgs { database_url: Secret::new(database_url), database_connections }
}

/// A process's connections for requests to it.
fn for_requests(database_url: String, database_connections: u32) -> PgPool {
    tidemark::store::postgres::pool::connect_for_requests(&postgres_args(database_url, database_connections))
        .unwrap()
}

/// An API whose Postgres is at the given address.
async fn api_over(api: &TestApi, database_url: String) -> String {
    let stores = Databases {
        pg: for_requests(database_url, 4),
        clickhouse: clickhouse::Client::default().with_url("http://127.0.0.1:1"),
        clock: Clock::system(),
    };
    let readable = ReadablePlatforms::new(Platform::ALL);
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
        let answer = send(http_client().get(format!("{url}/v2/accounts")).bearer_auth(&api.key)).await;
        assert!(started.elapsed() < IN_TIME, "{address} {:?}", started.elapsed());
        assert_eq!(answer.status, 503, "{answer}");
        assert_eq!(answer.json["code"], "SERVICE_UNAVAILABLE");
        assert_eq!(answer.header("retry-after"), "1");
        let health = send(http_client().get(format!("{url}/v2/health"))).await;
        assert_eq!(health.status, 503);
        assert_eq!(health.json["data"]["checks"]["postgres"]["status"], "down");
        assert_eq!(send(http_client().get(format!("{url}/v2/meta"))).await.status, 200);
    }
}

#[tokio::test]
async fn a_postgres_that_refuses_the_role_or_has_no_such_database_is_out() {
    let api = TestApi::start().await;
    let right: url::Url = api.pg().connect_options().to_url_lossy();
    let mut refused = right.clone();
    refused.set_password(Some("another")).unwrap();
    let mut gone = right;
    gone.set_path("/nothing_here");
    for url in [refused, gone] {
        let base = api_over(&api, url.into()).await;
        let answer = send(http_client().get(format!("{base}/v2/accounts")).bearer_auth(&api.key)).await;
        assert_eq!((answer.status, answer.header("retry-after")), (503, "1"), "{answer}");
        assert_eq!(send(http_client().get(format!("{base}/v2/health"))).await.status, 503);
    }
}

#[tokio::test]
async fn what_ends_a_session_is_an_outage_and_what_ends_a_statement_is_none() {
    let pg = api_database().await;
    let error = async |code: &str| {
        let raise = format!("do $$ begin raise sqlstate '{code}'; end $$");
        Error::from(sqlx::raw_sql(AssertSqlSafe(raise)).execute(&pg).await.unwrap_err())
    };
    for code in ["08006", "28000", "28P01", "3D000", "25P03", "53300", "57P01", "57P04", "57P05"] {
        assert!(error(code).await.is_unavailable(), "{code}");
    }
    // A tracker that took these for outages would read the same again and again, and never record why.
    for code in ["57014", "42703", "42P01", "22012"] {
        assert!(!error(code).await.is_unavailable(), "{code}");
    }
}

#[tokio::test]
async fn a_request_whose_statement_somebody_breaks_off_is_to_be_made_again() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "locked"})).await;
    let mut blocking = api.pg().begin().await.unwrap();
    let lock = "select pg_backend_pid() from creators where organization_id = $1 for update";
    let holder: i32 =
        sqlx::query_scalar(lock).bind(api.organization.id).fetch_one(&mut *blocking).await.unwrap();
    let path = format!("/v2/creators/{creator}");
    let asked = api.patch(&path, json!({"name": "x"}));
    let broken_off = wait_until("the request waits and is broken off", async || {
        let cancel =
            "select pg_cancel_backend(pid) from pg_stat_activity where $1 = any (pg_blocking_pids(pid))";
        sqlx::query_scalar::<_, bool>(cancel).bind(holder).fetch_optional(api.pg()).await.unwrap()
    });
    let (answer, _) = tokio::join!(asked, broken_off);
    assert_eq!((answer.status, answer.header("retry-after")), (503, "1"), "{answer}");
    blocking.rollback().await.unwrap();
    assert_eq!(api.patch(&path, json!({"name": "x"})).await.status, 200);
}

#[tokio::test]
async fn a_store_that_stops_answering_within_a_request_is_told_in_time() {
    let api = TestApi::start().await;
    api.create("/v2/creators", json!({"name": "locked"})).await;
    let mut blocking = api.pg().begin().await.unwrap();
    sqlx::query("select from creators where organization_id = $1 for update")
        .bind(api.organization.id)
        .execute(&mut *blocking)
        .await
        .unwrap();
    let creator = api.get("/v2/creators").await.json["data"][0]["id"].as_str().unwrap().to_owned();
    let started = Instant::now();
    let answer = api.patch(&format!("/v2/creators/{creator}"), json!({"name": "x"})).await;
    assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
    assert_eq!((answer.status, answer.header("retry-after")), (503, "1"));
    assert_ne!(answer.header("x-ratelimit-remaining"), "");
    blocking.rollback().await.unwrap();
    assert_eq!(api.patch(&format!("/v2/creators/{creator}"), json!({"name": "y"})).await.status, 200);
}

#[tokio::test]
async fn requests_that_wait_for_a_lock_keep_nobody_elses_connections() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "locked"})).await;
    let url = api_over(&api, api.pg().connect_options().to_url_lossy().into()).await;
    let (_, others_key) = create_organization(api.pg(), OrganizationChange::default()).await;
    let mut blocking = api.pg().begin().await.unwrap();
    sqlx::query("select from creators where organization_id = $1 for update")
        .bind(api.organization.id)
        .execute(&mut *blocking)
        .await
        .unwrap();
    let waiting = (0..12).map(|_| {
        let request = http_client().patch(format!("{url}/v2/creators/{creator}")).bearer_auth(&api.key);
        send(request.json(&json!({"name": "x"})))
    });
    let answers = join_all(waiting).await;
    assert!(answers.iter().all(|answer| answer.status == 503));
    assert!(answers.iter().any(|answer| answer.body_text().contains("conflict with a concurrent change")));
    let started = Instant::now();
    send(http_client().get(format!("{url}/v2/creators")).bearer_auth(others_key)).await.ok(200);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    blocking.rollback().await.unwrap();
}

#[tokio::test]
async fn a_statement_that_is_given_up_ends_and_its_connection_is_anothers() {
    let own = api_database().await;
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
    wait_until("the statement ends too", async || {
        let there = "select exists (select from pg_stat_activity where pid = $1)";
        let there: bool = sqlx::query_scalar(there).bind(backend).fetch_one(&own).await.unwrap();
        (!there).then_some(())
    })
    .await;
    assert!(given_up.elapsed() < Duration::from_secs(3), "{:?}", given_up.elapsed());
}

/// Pools of one connection to where an address says, of requests and of whatever else there is.
fn single(url: &PgConnectOptions) -> [PgPool; 2] {
    let args = postgres_args(url.to_url_lossy().into(), 1);
    [
        tidemark::store::postgres::pool::connect_for_requests(&args).unwrap(),
        tidemark::store::postgres::pool::connect(&args).unwrap(),
    ]
}

/// Gives a statement up while it waits, and says in which session it was.
async fn give_up(statement: &'static str, write: &mut Write) -> i32 {
    let backend = sqlx::query_scalar("select pg_backend_pid()");
    let backend = backend.fetch_one(write.connection()).await.unwrap();
    let waiting = sqlx::query(statement).execute(write.connection());
    assert!(tokio::time::timeout(Duration::from_millis(100), waiting).await.is_err());
    backend
}

#[tokio::test]
async fn a_unit_of_work_that_is_given_up_behind_a_lock_leaves_its_place_and_ends() {
    let own = api_database().await;
    let mut blocking = own.begin().await.unwrap();
    sqlx::query("select pg_advisory_xact_lock(4716)").execute(&mut *blocking).await.unwrap();
    for pg in single(&own.connect_options()) {
        let mut write = Write::begin(&pg, Uuid::now_v7()).await.unwrap();
        let backend = give_up("select pg_advisory_xact_lock(4716)", &mut write).await;
        let given_up = Instant::now();
        drop(write);
        let next: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&pg).await.unwrap();
        assert!(given_up.elapsed() < Duration::from_secs(2), "{:?}", given_up.elapsed());
        assert_ne!(next, backend);
        wait_until("the unit of work ends too", async || {
            let there = "select exists (select from pg_stat_activity where pid = $1)";
            let there: bool = sqlx::query_scalar(there).bind(backend).fetch_one(&own).await.unwrap();
            (!there).then_some(())
        })
        .await;
        // For a lock it would wait four seconds, were it not ended with its connection.
        assert!(given_up.elapsed() < Duration::from_secs(3), "{:?}", given_up.elapsed());
    }
    blocking.rollback().await.unwrap();
}

#[tokio::test]
async fn what_a_postgres_that_is_gone_never_answers_keeps_no_place() {
    let own = api_database().await;
    let server = own.connect_options();
    let line = TcpProxy::start(server.get_host(), server.get_port()).await;
    for pg in single(&server.as_ref().clone().host("127.0.0.1").port(line.port)) {
        for in_transaction in [false, true] {
            if in_transaction {
                let mut write = Write::begin(&pg, Uuid::now_v7()).await.unwrap();
                line.silence();
                let asked = sqlx::query("select 1").execute(write.connection());
                assert!(tokio::time::timeout(Duration::from_millis(100), asked).await.is_err());
            } else {
                let mut connection = pg.acquire().await.unwrap();
                line.silence();
                let asked = sqlx::query("select 1").execute(&mut *connection);
                assert!(tokio::time::timeout(Duration::from_millis(100), asked).await.is_err());
            }
            let given_up = Instant::now();
            sqlx::query("select 1").execute(&pg).await.unwrap();
            assert!(given_up.elapsed() < Duration::from_secs(2), "{:?}", given_up.elapsed());
        }
    }
}

#[tokio::test]
async fn records_go_on_without_clickhouse_and_health_says_so() {
    let api = TestApi::start().await;
    let id = api.create("/v2/accounts", json!({"platform": "tiktok", "username": "one"})).await;
    assert_eq!(api.delete(&format!("/v2/accounts/{id}")).await.status, 204);
    let health = api.get("/v2/health").await;
    let data = health.json["data"].clone();
    assert_eq!((health.status, &data["type"], &data["status"]), (200, &json!("health"), &json!("degraded")));
    for (check, status) in [("postgres", "ok"), ("clickhouse", "down")] {
        assert_eq!(data["checks"][check]["status"], status, "{data}");
        assert!(data["checks"][check]["latency_ms"].is_u64());
    }
    assert!(data["checks"].get("search").is_some() && data["checks"].get("tracker").is_some());
}
