//! Conflicting transactions, and a read-only Postgres.

use harness::{Response, TestApi, send, wait_until};
use reqwest::Method;
use serde_json::json;
use sqlx::{PgPool, Postgres, Transaction};
use tidemark::app::{App, Databases, Settings};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use uuid::Uuid;

/// A transaction of another client, which holds its locks until it ends.
struct OtherTransaction {
    pg: PgPool,
    transaction: Transaction<'static, Postgres>,
}

/// An API whose Postgres connections have this setting.
async fn start_with_setting(name: &str, value: &str) -> TestApi {
    let api = TestApi::start().await;
    let options = (*api.pg().connect_options()).clone().options([(name, value)]);
    let stores = Databases {
        pg: PgPool::connect_lazy_with(options),
        clickhouse: clickhouse::Client::default().with_url("http://127.0.0.1:1"),
        clock: api.app.clock.clone(),
    };
    let readable = ReadablePlatforms::new(Platform::ALL);
    api.start_another(App::new(stores, api.app.search.clone(), readable, Settings::default())).await
}

impl OtherTransaction {
    async fn lock_row(pg: &PgPool, statement: &'static str, id: Uuid) -> Self {
        let mut transaction = pg.begin().await.unwrap();
        // The first to detect the deadlock is aborted; that must be the request.
        sqlx::query("set local deadlock_timeout = '1min'").execute(&mut *transaction).await.unwrap();
        let mut other = OtherTransaction { pg: pg.clone(), transaction };
        other.lock(statement, id).await;
        other
    }

    async fn lock(&mut self, statement: &'static str, id: Uuid) {
        sqlx::query(statement).bind(id).execute(&mut *self.transaction).await.unwrap();
    }

    /// Waits until another session waits for its locks.
    async fn wait_until_blocking(&mut self) {
        let own: i32 =
            sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *self.transaction).await.unwrap();
        let waiting = "select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))";
        wait_until("a session waits", async || {
            let is_blocking: bool = sqlx::query_scalar(waiting).bind(own).fetch_one(&self.pg).await.unwrap();
            is_blocking.then_some(())
        })
        .await;
    }

    /// Locks a creator that a request has locked while that request waits for this transaction: a deadlock.
    async fn deadlock(mut self, creator: Uuid) {
        self.wait_until_blocking().await;
        self.lock("update creators set updated_at = now() where id = $1", creator).await;
        self.transaction.commit().await.unwrap();
    }
}

async fn create(api: &TestApi, creator: &str) -> Response {
    let body = json!({"platform": "tiktok", "username": "one", "creator_id": creator});
    send(api.request(Method::POST, "/v2/accounts").header("Idempotency-Key", "once").json(&body)).await
}

#[tokio::test]
async fn aborted_transaction_is_retried() {
    // Postgres checks for a deadlock once, so the other transaction has to wait by then.
    let api = start_with_setting("deadlock_timeout", "2500ms").await;
    let creator = api.create("/v2/creators", json!({"name": "wanted by both"})).await;
    let id = creator.parse().unwrap();
    let organization = "select from organizations where id = $1 for update";
    let other = OtherTransaction::lock_row(api.pg(), organization, api.organization.id).await;
    let (created, ()) = tokio::join!(create(&api, &creator), other.deadlock(id));
    assert_eq!(created.status, 201, "{created}");
    let repeated = create(&api, &creator).await;
    assert_eq!((&repeated.body, repeated.header("idempotent-replayed")), (&created.body, "true"));
    let account = created.json["data"]["id"].as_str().unwrap().to_owned();
    let locked = "select from accounts where id = $1 for update";
    let other = OtherTransaction::lock_row(api.pg(), locked, account.parse().unwrap()).await;
    let path = format!("/v2/accounts/{account}");
    let (changed, ()) = tokio::join!(api.patch(&path, json!({"category": "x"})), other.deadlock(id));
    assert_eq!(changed.status, 200, "{changed}");
    assert_eq!(changed.json["data"]["category"], "x");
}

#[tokio::test]
async fn waiting_for_a_creator_holds_no_account_lock() {
    let api = TestApi::start().await;
    let first = api.create("/v2/creators", json!({"name": "first"})).await;
    let second = api.create("/v2/creators", json!({"name": "second"})).await;
    let body = json!({"platform": "tiktok", "username": "one", "creator_id": first});
    let account = api.create("/v2/accounts", body).await;
    let id = account.parse().unwrap();
    let busy = "select from creators where id = $1 for no key update";
    let mut busy = OtherTransaction::lock_row(api.pg(), busy, second.parse().unwrap()).await;
    let free = "select from accounts where id = $1 for update nowait";
    let mut moving = OtherTransaction::lock_row(api.pg(), free, id).await;
    let path = format!("/v2/accounts/{account}");
    let between = async {
        // It has read the first creator, and waits for the account.
        moving.wait_until_blocking().await;
        let link_second = "update accounts set creator_id = (
                 select id from creators where organization_id = accounts.organization_id and name = 'second')
             where id = $1";
        moving.lock(link_second, id).await;
        moving.transaction.commit().await.unwrap();
        busy.wait_until_blocking().await;
        drop(OtherTransaction::lock_row(api.pg(), free, id).await);
        busy.transaction.rollback().await.unwrap();
    };
    let (changed, ()) = tokio::join!(api.patch(&path, json!({"category": "x"})), between);
    assert_eq!(changed.status, 200, "{changed}");
    let data = changed.json["data"].clone();
    assert_eq!((&data["category"], &data["creator_id"]), (&json!("x"), &json!(second)));
}

#[tokio::test]
async fn read_only_postgres_rejects_writes_and_serves_reads() {
    let api = start_with_setting("default_transaction_read_only", "on").await;
    let request = |method| api.request(method, "/v2/creators");
    let rejected = send(request(Method::POST).json(&json!({"name": "x"}))).await;
    assert_eq!((rejected.status, rejected.header("retry-after")), (503, "30"));
    assert!(rejected.json["detail"].as_str().unwrap().contains("writes are unavailable"), "{rejected}");
    assert_eq!(send(request(Method::GET)).await.status, 200);
}
