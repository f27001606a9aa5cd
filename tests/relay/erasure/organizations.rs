//! With an organization goes all that it had, wherever its erasure is killed, and others lose nothing.

use std::fs::{self, File};
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use sqlx::AssertSqlSafe;
use tidemark::store::lifecycle::organizations as removing;
use tidemark::store::outbox::{self, BlockedOrganizations};
use tidemark::store::records::organizations;
use tidemark::store::{Error, Write};
use uuid::Uuid;

use super::{erase, rows, some_days};
use crate::harness::{IsolatedStores, Stack};
use crate::setup::scrape;

/// Every table of Postgres that has rows of organizations, and how many of this one.
async fn records(stores: &IsolatedStores, organization: Uuid) -> Vec<(String, i64)> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.columns
         where table_schema = 'public' and column_name = 'organization_id' order by 1",
    )
    .fetch_all(stores.pg())
    .await
    .unwrap();
    assert!(tables.len() > 10, "{tables:?}");
    let mut records = Vec::new();
    for table in tables {
        let sql = format!("select count(*) from {table} where organization_id = $1");
        let rows =
            sqlx::query_scalar(AssertSqlSafe(sql)).bind(organization).fetch_one(stores.pg()).await.unwrap();
        records.push((table, rows));
    }
    records
}

/// Rows of an organization in every table of ClickHouse that has any of organizations.
async fn history(stores: &IsolatedStores, organization: Uuid) -> Vec<u64> {
    let tables: Vec<String> = stores
        .databases
        .clickhouse
        .query_raw(
            "select distinct table from system.columns where database = currentDatabase() and name = 'org_id' order by table",
        )
        .fetch_all()
        .await
        .unwrap();
    assert!(tables.len() >= 6, "{tables:?}");
    let conditions: Vec<_> =
        tables.iter().map(|table| (table.as_str(), format!("org_id = '{organization}'"))).collect();
    rows(stores, &conditions).await
}

/// Gives an organization what the scrapes of these tests do not.
async fn give_some_of_everything(stores: &IsolatedStores, organization: Uuid) {
    for statement in [
        "insert into creators (id, organization_id, name, name_key, added_at, updated_at)
         values (gen_random_uuid(), $1, 'Ann', 'ann', now(), now())",
        "insert into idempotency_keys (organization_id, method, path, key, body_hash, status, body)
         values ($1, 'POST', '/v2/accounts', 'key', '\\x00', 201, '\\x7b7d')",
        "insert into removed_subjects (organization_id, subject_id) values ($1, 0)",
        "update videos set create_time = now(), description = 'Caption', description_key = 'caption'
         where organization_id = $1",
    ] {
        sqlx::query(statement).bind(organization).execute(stores.pg()).await.unwrap();
    }
}

/// Runs the command in a process that dies at an armed step.
fn delete_organization(stores: &IsolatedStores, organization: Uuid, armed: &Path) -> ExitStatus {
    let connection = Stack::shared().connection;
    connection
        .command()
        .args(["org", "delete", &organization.to_string(), "--yes", "--json"])
        .env("TIDEMARK_DATABASE_URL", &stores.connection.database_url)
        .env("TIDEMARK_CLICKHOUSE_DATABASE", stores.connection.database_url.rsplit('/').next().unwrap())
        .env("TIDEMARK_FAILPOINTS", armed)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_organization_goes_wherever_its_erasure_is_killed() {
    let stores = IsolatedStores::create().await;
    let (tenant, other) = (some_days(&stores, 2).await, some_days(&stores, 2).await);
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    stores.wait_applied(other.id).await;
    relay.stop().await;
    give_some_of_everything(&stores, tenant.id).await;
    // Some of it is still to be delivered, and is not any more.
    scrape(stores.pg(), tenant.id, tenant.accounts[0], 4, 5_000).await;
    let others = (stores.clickhouse_state(other.id).await, records(&stores, other.id).await);
    let had = records(&stores, tenant.id).await;
    assert!(had.iter().all(|(_, rows)| *rows > 0), "{had:?}");
    assert!(history(&stores, tenant.id).await.iter().sum::<u64>() > 0);

    let armed = tempfile::tempdir().unwrap();
    for step in ["erasure-records", "erasure-outbox", "erasure-history"] {
        File::create(armed.path().join(step)).unwrap();
        let status = delete_organization(&stores, tenant.id, armed.path());
        assert!(!status.success() && !armed.path().join(step).exists(), "{step}: {status}");
        // Whatever is left of it takes nothing more in.
        let write = Write::begin(stores.pg(), tenant.id).await.unwrap();
        assert!(matches!(write.commit().await, Err(Error::NotFound("organization"))));
        assert!(organizations::list(stores.pg()).await.unwrap().iter().all(|listed| listed.id != tenant.id));
    }
    assert!(delete_organization(&stores, tenant.id, armed.path()).success());
    assert!(fs::read_dir(armed.path()).unwrap().next().is_none());
    let left = records(&stores, tenant.id).await;
    assert!(left.iter().all(|(_, rows)| *rows == 0), "{left:?}");
    assert_eq!(history(&stores, tenant.id).await.iter().sum::<u64>(), 0);
    assert!(
        !delete_organization(&stores, tenant.id, armed.path()).success(),
        "there is no such organization"
    );
    assert_eq!((stores.clickhouse_state(other.id).await, records(&stores, other.id).await), others);

    // Rows that come back with files of before are noticed by the next sweep.
    stores.databases
        .clickhouse
        .query_raw("insert into account_snapshots (org_id, subject_id, date, observed_at) values ({org:UUID}, 1, today(), now())")
        .param("org", tenant.id)
        .execute()
        .await
        .unwrap();
    assert_eq!(erase(&stores).await.history_rows, 1);
    assert_eq!(history(&stores, tenant.id).await.iter().sum::<u64>(), 0);
    assert_eq!(stores.clickhouse_state(other.id).await, others.0);

    // Whoever still takes its key for what it was is told that it is gone.
    let late = sqlx::query(
        "insert into creators (id, organization_id, name, name_key, added_at, updated_at)
         values (gen_random_uuid(), $1, 'Ann', 'ann', now(), now())",
    )
    .bind(tenant.id)
    .execute(stores.pg())
    .await;
    assert!(matches!(late.map_err(Error::from), Err(Error::NotFound("organization"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_relay_has_in_hand_of_a_deleted_organization_is_waited_for() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    scrape(stores.pg(), tenant.id, tenant.accounts[0], 2, 100).await;
    let delivery = outbox::begin_delivery(stores.pg(), i64::MAX, &mut BlockedOrganizations::default())
        .await
        .unwrap()
        .unwrap();
    organizations::delete(stores.pg(), tenant.id).await.unwrap();
    let in_hand = async || {
        let next = removing::delete_outbox_batch(stores.pg(), tenant.id, 0).await.unwrap();
        (next, removing::first_unapplied_position(stores.pg(), tenant.id).await.unwrap())
    };
    let (next, first) = in_hand().await;
    assert_eq!((next > first, first), (true, Some(delivery.first_position)));
    outbox::finish_delivery(stores.pg(), &delivery).await.unwrap();
    assert_eq!(in_hand().await, (next, None));
    let left: i64 = sqlx::query_scalar("select count(*) from outbox").fetch_one(stores.pg()).await.unwrap();
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_change_sequence_is_never_empty_while_an_organization_goes() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    scrape(stores.pg(), tenant.id, tenant.accounts[0], 2, 100).await;
    let changes = async || -> Vec<String> {
        sqlx::query_scalar("select entity from search_changes").fetch_all(stores.pg()).await.unwrap()
    };
    let before = changes().await.len();
    organizations::delete(stores.pg(), tenant.id).await.unwrap();
    while removing::delete_record_batch(stores.pg(), tenant.id).await.unwrap() {}
    let kept = changes().await.len();
    assert!(0 < kept && kept < before, "{kept} of {before}");
    removing::delete(stores.pg(), tenant.id).await.unwrap();
    assert_eq!(changes().await, ["organization"]);
}
