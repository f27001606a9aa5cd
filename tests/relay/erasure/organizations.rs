//! Erasure of a deleted organization, despite kills at any step, without effect on others.

use std::fs::{self, File};
use std::path::Path;
use std::process::{ExitStatus, Stdio};

use harness::{IsolatedStores, Stack, rebuild_derived_tables, wait_until};
use sqlx::AssertSqlSafe;
use tidemark::store::lifecycle::ErasureLock;
use tidemark::store::lifecycle::organizations as erasure;
use tidemark::store::outbox::{self, BlockedOrganizations};
use tidemark::store::records::organizations::{self, OrganizationChange};
use tidemark::store::{Error, Write};
use tidemark::worker::erasure::run;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{count_rows, create_history, erase};
use harness::relay::scrape;

/// Counts an organization's rows in each table of Postgres.
async fn count_records(stores: &IsolatedStores, organization: Uuid) -> Vec<(String, i64)> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.columns
         where table_schema = 'public' and column_name = 'organization_id' order by 1",
    )
    .fetch_all(stores.pg())
    .await
    .unwrap();
    assert!(tables.len() > 10, "{tables:?}");
    let mut counts = Vec::new();
    for table in tables {
        let sql = format!("select count(*) from {table} where organization_id = $1");
        let rows =
            sqlx::query_scalar(AssertSqlSafe(sql)).bind(organization).fetch_one(stores.pg()).await.unwrap();
        counts.push((table, rows));
    }
    counts
}

/// Counts an organization's rows in each table of ClickHouse.
async fn count_history(stores: &IsolatedStores, organization: Uuid) -> Vec<u64> {
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
    count_rows(stores, &conditions).await
}

/// Inserts rows into tables that scrapes do not fill.
async fn fill_other_tables(stores: &IsolatedStores, organization: Uuid) {
    for statement in [
        "insert into creators (id, organization_id, name, name_key, added_at, updated_at)
         values (gen_random_uuid(), $1, 'Ann', 'ann', now(), now())",
        "insert into idempotency_keys (organization_id, method, path, key, body_hash, status, body)
         values ($1, 'POST', '/v2/accounts', 'key', '\\x00', 201, '\\x7b7d')",
        "insert into removed_subjects (organization_id, subject_id) values ($1, 0)",
        "insert into scrape_wakeups (organization_id, platform, kind, wake_at) values ($1, 'tiktok', 'video', now())",
        "insert into record_pictures (record_id, organization_id, kind, source)
         values (gen_random_uuid(), $1, 'cover', decode(repeat('00', 16), 'hex'))",
        "insert into uploads (id, organization_id, process_id, lease_until, options, received_at, created_at)
         values (gen_random_uuid(), $1, gen_random_uuid(), now(), '{}', now(), now())",
        "insert into events (organization_id, id, type, data, created_at)
         values ($1, gen_random_uuid(), 'import.ended', '{}', now())",
        "insert into breakout_candidates (organization_id, video_id, age_days, due_at)
         select $1, id, 1, 'infinity' from videos where organization_id = $1 on conflict do nothing",
        "insert into unknown_history (organization_id, after_delivery) values ($1, 0)",
        "insert into ended_attempts (organization_id, minute, succeeded, failed, is_sum) values ($1, now(), 1, 0, false)",
        "with collection as (
             insert into collections (id, organization_id, name, name_key, name_search, added_at, updated_at)
             values (gen_random_uuid(), $1, 'Summer', 'summer', 'summer', now(), now()) returning id)
         insert into collection_marks (organization_id, collection_id, video_id, state)
         select $1, collection.id, v.id, 'included' from collection cross join videos v where v.organization_id = $1",
        "insert into collection_shares
             (id, organization_id, collection_id, name, period, show, hash, expires_at, added_at)
         select gen_random_uuid(), $1, id, 'Acme', '7d', array['content'], decode(repeat('00', 32), 'hex'), now(), now()
         from collections where organization_id = $1",
        "with webhook as (
             insert into webhooks (id, organization_id, url, format, origin, is_active, secret, position, added_at, updated_at)
             values (gen_random_uuid(), $1, 'https://example.com/', 'standard', '', false, '', gen_random_uuid(), now(), now())
             returning id
         ), message as (
             insert into webhook_messages (organization_id, webhook_id, id, event_id, type, body, created_at)
             select $1, webhook.id, e.id, e.id, e.type, 'Ann', now() from webhook cross join events e
             where e.organization_id = $1 returning webhook_id, id
         )
         insert into webhook_attempts (id, organization_id, webhook_id, message_id, attempt, status, duration_ms, attempted_at)
         select gen_random_uuid(), $1, webhook_id, id, 1, 'succeeded', 1, now() from message",
        "update videos set create_time = now(), description = 'Caption', description_key = 'caption'
         where organization_id = $1",
    ] {
        sqlx::query(statement).bind(organization).execute(stores.pg()).await.unwrap();
    }
    rebuild_derived_tables(stores.pg(), organization).await;
}

/// Runs `org delete` in a process that dies at an armed failpoint.
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
async fn organization_is_erased_despite_kills_at_any_step() {
    let stores = IsolatedStores::create().await;
    let (tenant, other) = (create_history(&stores, 2).await, create_history(&stores, 2).await);
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    stores.wait_applied(other.id).await;
    relay.stop().await;
    fill_other_tables(&stores, tenant.id).await;
    // This scrape is not delivered before the deletion.
    scrape(stores.pg(), tenant.id, tenant.accounts[0], 4, 5_000).await;
    let others = (stores.clickhouse_state(other.id).await, count_records(&stores, other.id).await);
    let counts = count_records(&stores, tenant.id).await;
    assert!(counts.iter().all(|(_, rows)| *rows > 0), "{counts:?}");
    assert!(count_history(&stores, tenant.id).await.iter().sum::<u64>() > 0);

    let armed = tempfile::tempdir().unwrap();
    for step in ["erasure-records", "erasure-outbox", "erasure-history"] {
        File::create(armed.path().join(step)).unwrap();
        let status = delete_organization(&stores, tenant.id, armed.path());
        assert!(!status.success() && !armed.path().join(step).exists(), "{step}: {status}");
        // It rejects writes.
        let write = Write::begin(stores.pg(), tenant.id).await.unwrap();
        assert!(matches!(write.commit().await, Err(Error::NotFound("organization"))));
        assert!(organizations::list(stores.pg()).await.unwrap().iter().all(|listed| listed.id != tenant.id));
    }
    assert!(delete_organization(&stores, tenant.id, armed.path()).success());
    assert!(fs::read_dir(armed.path()).unwrap().next().is_none());
    let counts = count_records(&stores, tenant.id).await;
    assert!(counts.iter().all(|(_, rows)| *rows == 0), "{counts:?}");
    assert_eq!(count_history(&stores, tenant.id).await.iter().sum::<u64>(), 0);
    assert!(
        !delete_organization(&stores, tenant.id, armed.path()).success(),
        "there is no such organization"
    );
    assert_eq!((stores.clickhouse_state(other.id).await, count_records(&stores, other.id).await), others);

    // The next purge deletes rows that a restored ClickHouse brings back.
    stores.databases
        .clickhouse
        .query_raw("insert into account_snapshots (org_id, subject_id, date, observed_at) values ({org:UUID}, 1, today(), now())")
        .param("org", tenant.id)
        .execute()
        .await
        .unwrap();
    assert_eq!(erase(&stores).await.history_rows, 1);
    assert_eq!(count_history(&stores, tenant.id).await.iter().sum::<u64>(), 0);
    assert_eq!(stores.clickhouse_state(other.id).await, others.0);

    // A request with a cached key gets an error.
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
async fn deleted_organization_does_not_wait_for_retention() {
    let stores = IsolatedStores::create().await;
    let (retained, deleted) = (stores.create_tenant(1).await.id, stores.create_tenant(1).await.id);
    let change = OrganizationChange { retention_days: Some(Some(30)), ..OrganizationChange::default() };
    organizations::update(stores.pg(), retained, &change).await.unwrap();
    let stop = CancellationToken::new();
    let worker = tokio::spawn(run(stores.databases.clone(), stop.clone()));
    let fetch = async |sql| -> bool { sqlx::query_scalar(sql).fetch_one(stores.pg()).await.unwrap() };
    // Without a relay, retention waits for the organization's changes.
    wait_until("retention runs", async || {
        fetch("select exists (select from organizations where history_since is not null)").await.then_some(())
    })
    .await;
    organizations::delete(stores.pg(), deleted).await.unwrap();
    wait_until("the organization is erased", async || {
        fetch("select exists (select from erased_organizations)").await.then_some(())
    })
    .await;
    let lock = ErasureLock::try_acquire(stores.pg()).await.unwrap();
    assert!(lock.is_none(), "retention still runs");
    stop.cancel();
    worker.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn erasure_waits_for_rows_that_are_being_delivered() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    scrape(stores.pg(), tenant.id, tenant.accounts[0], 2, 100).await;
    let mut connection = stores.pg().acquire().await.unwrap();
    let delivery = outbox::begin_delivery(&mut connection, i64::MAX, &mut BlockedOrganizations::default())
        .await
        .unwrap()
        .unwrap();
    organizations::delete(stores.pg(), tenant.id).await.unwrap();
    let delete_batch = async || {
        let next = erasure::delete_outbox_batch(stores.pg(), tenant.id, 0).await.unwrap();
        (next, erasure::first_unapplied_position(stores.pg(), tenant.id).await.unwrap())
    };
    let (next, first) = delete_batch().await;
    assert_eq!((next > first, first), (true, Some(delivery.first_position)));
    outbox::finish_delivery(stores.pg(), &delivery).await.unwrap();
    assert_eq!(delete_batch().await, (next, None));
    let left: i64 = sqlx::query_scalar("select count(*) from outbox").fetch_one(stores.pg()).await.unwrap();
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn search_changes_are_never_empty_during_an_erasure() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    scrape(stores.pg(), tenant.id, tenant.accounts[0], 2, 100).await;
    let changes = async || -> Vec<String> {
        sqlx::query_scalar("select entity from search_changes").fetch_all(stores.pg()).await.unwrap()
    };
    let before = changes().await.len();
    organizations::delete(stores.pg(), tenant.id).await.unwrap();
    while erasure::delete_record_batch(stores.pg(), tenant.id).await.unwrap() {}
    let remaining = changes().await.len();
    assert!(0 < remaining && remaining < before, "{remaining} of {before}");
    erasure::delete(stores.pg(), tenant.id).await.unwrap();
    assert_eq!(changes().await, ["organization"]);
}
