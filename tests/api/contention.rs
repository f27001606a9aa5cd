//! Changes that are in each other's way, and a Postgres that takes none.

use reqwest::Method;
use serde_json::json;
use sqlx::{PgPool, Postgres, Transaction};
use tidemark::app::{App, Databases, Settings};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use uuid::Uuid;

use crate::harness::{Response, TestApi, send, wait_until};

/// A change by somebody else, which holds what it locked until it ends.
struct Other {
    pg: PgPool,
    transaction: Transaction<'static, Postgres>,
}

/// An API whose connections have a setting of the test's choice.
async fn with_setting(name: &str, value: &str) -> TestApi {
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

impl Other {
    async fn locks(pg: &PgPool, statement: &'static str, id: Uuid) -> Self {
        let mut transaction = pg.begin().await.unwrap();
        // Who looks is who gives way, and that is to be the request.
        sqlx::query("set local deadlock_timeout = '1min'").execute(&mut *transaction).await.unwrap();
        let mut other = Other { pg: pg.clone(), transaction };
        other.lock(statement, id).await;
        other
    }

    async fn lock(&mut self, statement: &'static str, id: Uuid) {
        sqlx::query(statement).bind(id).execute(&mut *self.transaction).await.unwrap();
    }

    /// Waits until somebody waits for it.
    async fn is_waited_for(&mut self) {
        let own: i32 =
            sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *self.transaction).await.unwrap();
        let waiting = "select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)))";
        wait_until("somebody waits", async || {
            let some: bool = sqlx::query_scalar(waiting).bind(own).fetch_one(&self.pg).await.unwrap();
            some.then_some(())
        })
        .await;
    }

    /// Wants a creator while a request that has it wants what this one has: the request is made to give way.
    async fn crosses(mut self, creator: Uuid) {
        self.is_waited_for().await;
        self.lock("update creators set updated_at = now() where id = $1", creator).await;
        self.transaction.commit().await.unwrap();
    }
}

async fn create(api: &TestApi, creator: &str) -> Response {
    let body = json!({"platform": "tiktok", "username": "one", "creator_id": creator});
    send(api.request(Method::POST, "/v2/accounts").header("Idempotency-Key", "once").json(&body)).await
}

#[tokio::test]
async fn a_change_that_gave_way_to_another_is_made_again() {
    // It looks once whether it waits for what waits for it, and until then the other one has to come.
    let api = with_setting("deadlock_timeout", "2500ms").await;
    let creator = api.create("/v2/creators", json!({"name": "wanted by both"})).await;
    let id = creator.parse().unwrap();
    let organization = "select from organizations where id = $1 for update";
    let other = Other::locks(api.pg(), organization, api.organization.id).await;
    let (created, ()) = tokio::join!(create(&api, &creator), other.crosses(id));
    assert_eq!(created.status, 201, "{created}");
    let repeated = create(&api, &creator).await;
    assert_eq!((&repeated.body, repeated.header("idempotent-replayed")), (&created.body, "true"));
    let account = created.json["data"]["id"].as_str().unwrap().to_owned();
    let locked = "select from accounts where id = $1 for update";
    let other = Other::locks(api.pg(), locked, account.parse().unwrap()).await;
    let path = format!("/v2/accounts/{account}");
    let (changed, ()) = tokio::join!(api.patch(&path, json!({"category": "x"})), other.crosses(id));
    assert_eq!(changed.status, 200, "{changed}");
    assert_eq!(changed.json["data"]["category"], "x");
}

#[tokio::test]
async fn who_waits_for_a_creator_has_not_locked_its_account() {
    let api = TestApi::start().await;
    let first = api.create("/v2/creators", json!({"name": "first"})).await;
    let second = api.create("/v2/creators", json!({"name": "second"})).await;
    let body = json!({"platform": "tiktok", "username": "one", "creator_id": first});
    let account = api.create("/v2/accounts", body).await;
    let id = account.parse().unwrap();
    let busy = "select from creators where id = $1 for no key update";
    let mut busy = Other::locks(api.pg(), busy, second.parse().unwrap()).await;
    let free = "select from accounts where id = $1 for update nowait";
    let mut moving = Other::locks(api.pg(), free, id).await;
    let path = format!("/v2/accounts/{account}");
    let between = async {
        // It knows the creator from before, and waits for the account.
        moving.is_waited_for().await;
        let to_the_second = "update accounts set creator_id = (
                 select id from creators where organization_id = accounts.organization_id and name = 'second')
             where id = $1";
        moving.lock(to_the_second, id).await;
        moving.transaction.commit().await.unwrap();
        busy.is_waited_for().await;
        drop(Other::locks(api.pg(), free, id).await);
        busy.transaction.rollback().await.unwrap();
    };
    let (changed, ()) = tokio::join!(api.patch(&path, json!({"category": "x"})), between);
    assert_eq!(changed.status, 200, "{changed}");
    let data = changed.json["data"].clone();
    assert_eq!((&data["category"], &data["creator_id"]), (&json!("x"), &json!(second)));
}

#[tokio::test]
async fn a_postgres_that_takes_no_changes_says_so_and_is_read() {
    let api = with_setting("default_transaction_read_only", "on").await;
    let asked = |method| api.request(method, "/v2/creators");
    let refused = send(asked(Method::POST).json(&json!({"name": "x"}))).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "30"));
    assert!(refused.json["detail"].as_str().unwrap().contains("writes are unavailable"), "{refused}");
    assert_eq!(send(asked(Method::GET)).await.status, 200);
}
