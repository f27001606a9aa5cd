//! Requests while a database is down or does not respond.

use std::time::Duration;

use futures_util::future::join_all;
use harness::{TcpProxy, TestApi, api_database, create_organization, http_client, send, serve, wait_until};
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

fn postgres_args(database_url: String, database_connections: u32) -> PostgresArgs {
    PostgresArgs { database_url: Secret::new(database_url), database_connections }
}

/// A pool like the API's.
fn request_pool(database_url: String, database_connections: u32) -> PgPool {
    tidemark::store::postgres::pool::connect_for_requests(&postgres_args(database_url, database_connections))
        .unwrap()
}

/// Serves the API on the Postgres at this URL.
async fn serve_on(api: &TestApi, database_url: String) -> String {
    let stores = Databases {
        pg: request_pool(database_url, 4),
        clickhouse: clickhouse::Client::default().with_url("http://127.0.0.1:1"),
        clock: Clock::system(),
    };
    let readable = ReadablePlatforms::new(Platform::ALL);
    serve(&App::new(stores, api.app.search.clone(), readable, Settings::default())).await
}

#[tokio::test]
async fn unreachable_postgres_is_503() {
    let api = TestApi::start().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = "127.0.0.1:1".to_owned();
    for address in [closed, silent.local_addr().unwrap().to_string()] {
        let url = serve_on(&api, format!("postgres://user@{address}/nothing")).await;
        // In time, because `http::deadline` asserts that a request may wait for less than 5 s.
        let response = send(http_client().get(format!("{url}/v2/accounts")).bearer_auth(&api.key)).await;
        assert_eq!(response.status, 503, "{response}");
        assert_eq!(response.json["code"], "SERVICE_UNAVAILABLE");
        assert_eq!(response.header("retry-after"), "1");
        let health = send(http_client().get(format!("{url}/v2/health"))).await;
        assert_eq!(health.status, 503);
        assert_eq!(health.json["data"]["checks"]["postgres"]["status"], "down");
        assert_eq!(send(http_client().get(format!("{url}/v2/meta"))).await.status, 200);
    }
}

#[tokio::test]
async fn missing_role_or_database_is_503() {
    let api = TestApi::start().await;
    let right: url::Url = api.pg().connect_options().to_url_lossy();
    let mut rejected = right.clone();
    rejected.set_password(Some("another")).unwrap();
    let mut gone = right;
    gone.set_path("/nothing_here");
    for url in [rejected, gone] {
        let base = serve_on(&api, url.into()).await;
        let response = send(http_client().get(format!("{base}/v2/accounts")).bearer_auth(&api.key)).await;
        assert_eq!((response.status, response.header("retry-after")), (503, "1"), "{response}");
        assert_eq!(send(http_client().get(format!("{base}/v2/health"))).await.status, 503);
    }
}

#[tokio::test]
async fn terminated_session_is_503() {
    let pg = api_database().await;
    let error = async |code: &str| {
        let raise = format!("do $$ begin raise sqlstate '{code}'; end $$");
        Error::from(sqlx::raw_sql(AssertSqlSafe(raise)).execute(&pg).await.unwrap_err())
    };
    for code in ["08006", "28000", "28P01", "3D000", "25P03", "53300", "57P01", "57P04", "57P05"] {
        assert!(error(code).await.is_unavailable(), "{code}");
    }
    // A tracker that treats these as outages would retry forever without recording the error.
    for code in ["57014", "42703", "42P01", "22012"] {
        assert!(!error(code).await.is_unavailable(), "{code}");
    }
}

#[tokio::test]
async fn cancelled_statement_is_503_with_retry_after() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "locked"})).await;
    let mut blocking = api.pg().begin().await.unwrap();
    let lock = "select pg_backend_pid() from creators where organization_id = $1 for update";
    let holder: i32 =
        sqlx::query_scalar(lock).bind(api.organization.id).fetch_one(&mut *blocking).await.unwrap();
    let path = format!("/v2/creators/{creator}");
    let request = api.patch(&path, json!({"name": "x"}));
    let cancel = wait_until("the request waits and is cancelled", async || {
        let cancel =
            "select pg_cancel_backend(pid) from pg_stat_activity where $1 = any (pg_blocking_pids(pid))";
        sqlx::query_scalar::<_, bool>(cancel).bind(holder).fetch_optional(api.pg()).await.unwrap()
    });
    let (response, _) = tokio::join!(request, cancel);
    assert_eq!((response.status, response.header("retry-after")), (503, "1"), "{response}");
    blocking.rollback().await.unwrap();
    assert_eq!(api.patch(&path, json!({"name": "x"})).await.status, 200);
}

#[tokio::test]
async fn postgres_that_hangs_during_a_request_is_503() {
    let api = TestApi::start().await;
    api.create("/v2/creators", json!({"name": "locked"})).await;
    let mut blocking = api.pg().begin().await.unwrap();
    sqlx::query("select from creators where organization_id = $1 for update")
        .bind(api.organization.id)
        .execute(&mut *blocking)
        .await
        .unwrap();
    let creator = api.get("/v2/creators").await.json["data"][0]["id"].as_str().unwrap().to_owned();
    let response = api.patch(&format!("/v2/creators/{creator}"), json!({"name": "x"})).await;
    assert_eq!((response.status, response.header("retry-after")), (503, "1"));
    assert_ne!(response.header("x-ratelimit-remaining"), "");
    blocking.rollback().await.unwrap();
    assert_eq!(api.patch(&format!("/v2/creators/{creator}"), json!({"name": "y"})).await.status, 200);
}

#[tokio::test]
async fn requests_waiting_for_a_lock_leave_connections_free() {
    let api = TestApi::start().await;
    let creator = api.create("/v2/creators", json!({"name": "locked"})).await;
    let url = serve_on(&api, api.pg().connect_options().to_url_lossy().into()).await;
    let (_, other_key) = create_organization(api.pg(), OrganizationChange::default()).await;
    // Opens the connections, because a lock is waited for almost as long as a request may take.
    let list = || send(http_client().get(format!("{url}/v2/creators")).bearer_auth(&other_key));
    assert!(join_all((0..4).map(|_| list())).await.iter().all(|response| response.status == 200));
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
    let responses = join_all(waiting).await;
    assert!(responses.iter().all(|response| response.status == 503));
    assert!(
        responses.iter().any(|response| response.body_text().contains("conflict with a concurrent change"))
    );
    // A request that gets no connection is 503.
    list().await.ok(200);
    blocking.rollback().await.unwrap();
}

#[tokio::test]
async fn cancelled_statement_frees_its_connection() {
    let own = api_database().await;
    let pg = request_pool(own.connect_options().to_url_lossy().into(), 1);
    let (backend, bounds): (i32, Vec<String>) = sqlx::query_as(
        "select pg_backend_pid(), array[current_setting('statement_timeout'), current_setting('lock_timeout'),
             current_setting('idle_in_transaction_session_timeout')]",
    )
    .fetch_one(&pg)
    .await
    .unwrap();
    assert_eq!(bounds, ["5s", "4s", "10s"]);
    // Only the cancellation ends it.
    sqlx::query("set statement_timeout = 0").execute(&pg).await.unwrap();
    let long = sqlx::query("select pg_sleep(600)").execute(&pg);
    assert!(tokio::time::timeout(Duration::from_millis(100), long).await.is_err());
    let next: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&pg).await.unwrap();
    assert_ne!(next, backend);
    wait_until("the session ends", async || {
        let exists = "select exists (select from pg_stat_activity where pid = $1)";
        let exists: bool = sqlx::query_scalar(exists).bind(backend).fetch_one(&own).await.unwrap();
        (!exists).then_some(())
    })
    .await;
}

/// Pools of one connection: of the API, and of other processes.
fn single_connection_pools(url: &PgConnectOptions) -> [PgPool; 2] {
    let args = postgres_args(url.to_url_lossy().into(), 1);
    [
        tidemark::store::postgres::pool::connect_for_requests(&args).unwrap(),
        tidemark::store::postgres::pool::connect(&args).unwrap(),
    ]
}

/// Cancels a statement while it waits, and returns its session. Nothing else ends the statement.
async fn cancel_waiting(statement: &'static str, write: &mut Write) -> i32 {
    let backend = sqlx::query_scalar("select pg_backend_pid()");
    let backend = backend.fetch_one(write.connection()).await.unwrap();
    let unlimited = sqlx::raw_sql("set local lock_timeout = 0; set local statement_timeout = 0");
    unlimited.execute(write.connection()).await.unwrap();
    let waiting = sqlx::query(statement).execute(write.connection());
    assert!(tokio::time::timeout(Duration::from_millis(100), waiting).await.is_err());
    backend
}

#[tokio::test]
async fn cancelled_transaction_releases_its_lock() {
    let own = api_database().await;
    let mut blocking = own.begin().await.unwrap();
    sqlx::query("select pg_advisory_xact_lock(4716)").execute(&mut *blocking).await.unwrap();
    for pg in single_connection_pools(&own.connect_options()) {
        let mut write = Write::begin(&pg, Uuid::now_v7()).await.unwrap();
        let backend = cancel_waiting("select pg_advisory_xact_lock(4716)", &mut write).await;
        drop(write);
        let next: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&pg).await.unwrap();
        assert_ne!(next, backend);
        wait_until("the session ends", async || {
            let exists = "select exists (select from pg_stat_activity where pid = $1)";
            let exists: bool = sqlx::query_scalar(exists).bind(backend).fetch_one(&own).await.unwrap();
            (!exists).then_some(())
        })
        .await;
    }
    blocking.rollback().await.unwrap();
}

#[tokio::test]
async fn lost_postgres_frees_its_connections() {
    let own = api_database().await;
    let server = own.connect_options();
    let proxy = TcpProxy::start(server.get_host(), server.get_port()).await;
    for pg in single_connection_pools(&server.as_ref().clone().host("127.0.0.1").port(proxy.port)) {
        for in_transaction in [false, true] {
            if in_transaction {
                let mut write = Write::begin(&pg, Uuid::now_v7()).await.unwrap();
                proxy.silence();
                let query = sqlx::query("select 1").execute(write.connection());
                assert!(tokio::time::timeout(Duration::from_millis(100), query).await.is_err());
            } else {
                let mut connection = pg.acquire().await.unwrap();
                proxy.silence();
                let query = sqlx::query("select 1").execute(&mut *connection);
                assert!(tokio::time::timeout(Duration::from_millis(100), query).await.is_err());
            }
            sqlx::query("select 1").execute(&pg).await.expect("the pool opens another connection");
        }
    }
}

#[tokio::test]
async fn idle_connection_to_a_lost_postgres_is_replaced() {
    let server = api_database().await.connect_options();
    let proxy = TcpProxy::start(server.get_host(), server.get_port()).await;
    for pg in single_connection_pools(&server.as_ref().clone().host("127.0.0.1").port(proxy.port)) {
        sqlx::query("select 1").execute(&pg).await.unwrap();
        // A connection that was idle for less is used without a ping.
        tokio::time::sleep(Duration::from_millis(600)).await;
        proxy.silence();
        sqlx::query("select 1").execute(&pg).await.expect("the pool opens another connection");
    }
}

#[tokio::test]
async fn records_work_without_clickhouse() {
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
