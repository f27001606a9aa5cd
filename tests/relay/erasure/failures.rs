//! Errors of one organization, table or store do not stop the erasure of the others.

use harness::{IsolatedStores, WAIT_TIMEOUT, wait_until};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tidemark::app::Databases;
use tidemark::store::lifecycle::purge::{self, PurgeScope};
use tidemark::store::records::organizations;
use tidemark::worker::erasure;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{account_rows, count_rows, create_history};
use harness::relay::{Tenant, delete_account};

/// Creates an organization with a deleted account. Also returns the account's rows except for video snapshots.
async fn delete_an_account(stores: &IsolatedStores) -> (Tenant, Vec<(&'static str, String)>) {
    let tenant = create_history(stores, 2).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    delete_account(stores.pg(), tenant.id, tenant.accounts[0]).await;
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    let mut others = account_rows(tenant.id, tenant.accounts[0].subject_id);
    others.retain(|(table, _)| *table != "video_snapshots");
    assert!(count_rows(stores, &others).await.iter().all(|rows| *rows > 0), "hidden, but present");
    (tenant, others)
}

#[tokio::test(flavor = "multi_thread")]
async fn postgres_is_purged_while_clickhouse_is_down() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    sqlx::query("insert into removed_subjects (organization_id, subject_id, delivery) values ($1, 0, 0)")
        .bind(tenant.id)
        .execute(stores.pg())
        .await
        .unwrap();
    let mut connection = PgConnection::connect(&stores.connection.database_url).await.unwrap();
    sqlx::query("delete from accounts").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let accounts = async || -> (i64, i64) {
        let sql = "select n_tup_del, vacuum_count from pg_stat_user_tables where relname = 'accounts'";
        sqlx::query_as(sql).fetch_one(stores.pg()).await.unwrap()
    };
    wait_until("the statistics are flushed", async || (accounts().await.0 > 0).then_some(())).await;
    let clickhouse = stores.databases.clickhouse.clone().with_url("http://127.0.0.1:9");
    let databases = Databases { clickhouse, ..stores.databases.clone() };
    let stop = CancellationToken::new();
    let worker = tokio::spawn(erasure::run(databases, stop.clone()));
    wait_until("the table is vacuumed", async || (accounts().await.1 > 0).then_some(())).await;
    let remaining: i64 = sqlx::query_scalar("select count(*) from removed_subjects where erased_at is null")
        .fetch_one(stores.pg())
        .await
        .unwrap();
    assert_eq!(remaining, 0);
    stop.cancel();
    worker.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_error_affects_only_its_organization() {
    let stores = IsolatedStores::create().await;
    let (first, second) = (stores.create_tenant(1).await.id, stores.create_tenant(1).await.id);
    let trigger = format!(
        "create function fail() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$;
         create trigger fail before delete on organizations for each row when (old.id = '{first}')
         execute function fail()"
    );
    sqlx::raw_sql(AssertSqlSafe(trigger)).execute(stores.pg()).await.unwrap();
    for organization in [first, second] {
        organizations::delete(stores.pg(), organization).await.unwrap();
    }
    let stop = CancellationToken::new();
    let worker = tokio::spawn(erasure::run(stores.databases.clone(), stop.clone()));
    wait_until("the other organization is erased", async || {
        let remaining: Vec<Uuid> =
            sqlx::query_scalar("select id from organizations").fetch_all(stores.pg()).await.unwrap();
        (remaining == [first]).then_some(())
    })
    .await;
    stop.cancel();
    worker.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_error_affects_only_its_table() {
    let stores = IsolatedStores::create().await;
    let (_, others) = delete_an_account(&stores).await;
    let gone = Uuid::now_v7();
    sqlx::query("insert into erased_organizations (id, deleted_at) values ($1, now())")
        .bind(gone)
        .execute(stores.pg())
        .await
        .unwrap();
    for statement in [
        "insert into account_snapshots (org_id, subject_id, date, observed_at) values ({org:UUID}, 1, today(), now())",
        // The first table to purge.
        "rename table video_snapshots to missing",
    ] {
        stores.databases.clickhouse.query_raw(statement).param("org", gone).execute().await.unwrap();
    }
    erasure::run_once(&stores.databases, None).await.unwrap_err();
    assert_eq!(count_rows(&stores, &others).await, vec![0; others.len()]);
    let returned = [("account_snapshots", format!("org_id = '{gone}'"))];
    assert_eq!(count_rows(&stores, &returned).await, [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn hanging_mutation_blocks_only_its_table() {
    let stores = IsolatedStores::create().await;
    let (tenant, others) = delete_an_account(&stores).await;
    let clickhouse = &stores.databases.clickhouse;
    let statement =
        "alter table video_snapshots delete where throwIf(subject_id > 0) settings mutations_sync = 0";
    clickhouse.query_raw(statement).execute().await.unwrap();
    let none = vec![0; others.len()];
    wait_until("the other tables are purged", async || {
        let scope = PurgeScope { organization: None, delivered: i64::MAX };
        purge::purge_removed_rows(clickhouse, scope, Instant::now()).await.unwrap_err();
        (count_rows(&stores, &others).await == none).then_some(())
    })
    .await;
    let videos = [("videos", format!("org_id = '{}'", tenant.id))];
    assert!(count_rows(&stores, &videos).await[0] > 0);
    wait_until("the tables after it are purged", async || {
        purge::purge_organization(clickhouse, tenant.id, Instant::now()).await.unwrap_err();
        (count_rows(&stores, &videos).await == [0]).then_some(())
    })
    .await;
    clickhouse.query_raw("kill mutation where database = currentDatabase()").execute().await.unwrap();
    let removed = purge::purge_organization(clickhouse, tenant.id, Instant::now() + WAIT_TIMEOUT).await;
    assert!(removed.unwrap() > 0);
}
