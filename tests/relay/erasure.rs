//! What was deleted leaves the stores for good: with an organization everything at once, wherever its erasure is killed,
//! and after any other deletion what tombstones cover, what the outbox keeps, and what files put back bring along.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tidemark::app::{Clock, Stores};
use tidemark::sandbox::population::Population;
use tidemark::sandbox::server::start;
use tidemark::sandbox::world::World;
use tidemark::store::erasure::organizations as removing;
use tidemark::store::erasure::vacuum::Vacuumed;
use tidemark::store::event::{self, Event};
use tidemark::store::outbox::{self, Held};
use tidemark::store::{Error, Write, organizations};
use tidemark::worker::erasure::{self, Erased};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::private::command;
use crate::harness::{Stack, eventually};
use crate::setup::{OwnStores, Tenant, delete_account, scrape, scrape_at, track_alone};

/// Some days of history of some accounts, one post of the last of them tracked on its own as well.
async fn some_days(own: &OwnStores, accounts: usize) -> Tenant {
    let tenant = own.organization(accounts).await;
    for day in (1..=3).rev() {
        for (n, account) in tenant.accounts.iter().enumerate() {
            let views = (4 - day) * (100 + n as i64);
            scrape_at(own.pg(), tenant.id, *account, 4, views, Utc::now() - TimeDelta::days(day)).await;
        }
    }
    let last = tenant.accounts[accounts - 1].subject_id;
    track_alone(own.pg(), tenant.id, &format!("{last}{:06}", 0), Utc::now()).await;
    tenant
}

/// Rows in the files of ClickHouse, tombstones and what they cover included, under a condition, table by table.
async fn rows(own: &OwnStores, tables: &[(&str, String)]) -> Vec<u64> {
    let mut rows = Vec::new();
    for (table, condition) in tables {
        let sql = format!("select count() from {table} where {condition}");
        rows.push(own.stores.clickhouse.query_raw(&sql).fetch_one().await.unwrap());
    }
    rows
}

/// Where an account's rows stand.
fn places(organization: Uuid, subject: i64) -> Vec<(&'static str, String)> {
    ["video_snapshots", "account_daily", "accounts", "videos"]
        .map(|table| (table, format!("org_id = '{organization}' and subject_id = {subject}")))
        .into()
}

/// The subjects of which the outbox holds snapshots.
async fn kept_subjects(own: &OwnStores, organization: Uuid) -> BTreeSet<i64> {
    let rows: Vec<Vec<u8>> = sqlx::query_scalar("select events from outbox where organization_id = $1")
        .bind(organization)
        .fetch_all(own.pg())
        .await
        .unwrap();
    rows.iter()
        .flat_map(|bytes| event::decode(bytes).unwrap())
        .flat_map(|event| match event {
            Event::VideoSnapshots(snapshots) => snapshots,
            _ => Vec::new(),
        })
        .map(|snapshot| snapshot.subject_id)
        .collect()
}

async fn erase(own: &OwnStores) -> Erased {
    erasure::now(&own.stores, &own.database_url, None).await.unwrap().expect("nobody else erases")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_leaves_the_files_and_no_number_changes() {
    let own = OwnStores::create().await;
    let tenant = some_days(&own, 3).await;
    let [deleted, stays, divided] = tenant.accounts[..] else { unreachable!() };
    let relay = own.relay();
    own.applied(tenant.id).await;
    own.keep_files("older").await;
    delete_account(own.pg(), tenant.id, deleted).await;
    // The post that is tracked alone stays, under a place of its own.
    delete_account(own.pg(), tenant.id, divided).await;
    own.applied(tenant.id).await;
    let before = own.figures(tenant.id).await;
    let mut gone = [places(tenant.id, divided.subject_id), places(tenant.id, deleted.subject_id)].concat();
    // The post that stays has a row of before as well.
    gone.retain(|(table, condition)| {
        *table != "videos" || !condition.ends_with(&format!(" {}", divided.subject_id))
    });
    let there = rows(&own, &gone).await;
    assert!(there.iter().all(|rows| *rows > 0), "covered, and still there: {there:?}");
    let subjects = [deleted, stays, divided].map(|account| account.subject_id);
    assert_eq!(kept_subjects(&own, tenant.id).await, BTreeSet::from(subjects));

    let erased = erase(&own).await;
    assert_eq!(rows(&own, &gone).await, vec![0; gone.len()]);
    assert_eq!(own.figures(tenant.id).await, before);
    assert!(erased.history_rows >= there.iter().sum(), "{erased:?}, {there:?}");
    // A snapshot of the post that stayed is told under the account that it was found on.
    let kept = [stays, divided].map(|account| account.subject_id);
    assert_eq!(kept_subjects(&own, tenant.id).await, BTreeSet::from(kept));
    assert_eq!(erase(&own).await, Erased { outbox_rows: 0, history_rows: 0 });
    relay.stop().await;

    // Files of before the deletion: what is delivered again removes it again, without what was taken out of the outbox.
    let last = own.recorded().await;
    own.put_files_back("older").await;
    let relay = own.relay();
    eventually("what was lost is delivered again", || async { (own.recorded().await > last).then_some(()) })
        .await;
    own.applied(tenant.id).await;
    assert_eq!(own.figures(tenant.id).await, before);
    assert!(erase(&own).await.history_rows > 0);
    assert_eq!(rows(&own, &gone).await, vec![0; gone.len()]);
    assert_eq!(own.figures(tenant.id).await, before);

    // From nothing at all the outbox brings back what it still holds, which is nothing of what was deleted.
    let last = own.recorded().await;
    own.lose_files().await;
    eventually("all is delivered again", || async { (own.recorded().await > last).then_some(()) }).await;
    own.applied(tenant.id).await;
    assert_eq!(own.figures(tenant.id).await, before);
    relay.stop().await;
}

/// Every table of Postgres that has rows of organizations, and how many of this one.
async fn records(own: &OwnStores, organization: Uuid) -> Vec<(String, i64)> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.columns
         where table_schema = 'public' and column_name = 'organization_id' order by 1",
    )
    .fetch_all(own.pg())
    .await
    .unwrap();
    assert!(tables.len() > 10, "{tables:?}");
    let mut records = Vec::new();
    for table in tables {
        let sql = format!("select count(*) from {table} where organization_id = $1");
        let rows =
            sqlx::query_scalar(AssertSqlSafe(sql)).bind(organization).fetch_one(own.pg()).await.unwrap();
        records.push((table, rows));
    }
    records
}

/// Rows of an organization in every table of ClickHouse that has any of organizations.
async fn history(own: &OwnStores, organization: Uuid) -> Vec<u64> {
    let tables: Vec<String> = own
        .stores
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
    rows(own, &conditions).await
}

/// Gives an organization what the scrapes of these tests do not.
async fn give_some_of_everything(own: &OwnStores, organization: Uuid) {
    for statement in [
        "insert into creators (id, organization_id, name, name_key, added_at, updated_at)
         values (gen_random_uuid(), $1, 'Ann', 'ann', now(), now())",
        "insert into idempotency_keys (organization_id, method, path, key, body_hash, status, body)
         values ($1, 'POST', '/v2/accounts', 'key', '\\x00', 201, '\\x7b7d')",
        "insert into removed_subjects (organization_id, subject_id) values ($1, 0)",
        "update videos set create_time = now(), description = 'Caption', description_key = 'caption'
         where organization_id = $1",
    ] {
        sqlx::query(statement).bind(organization).execute(own.pg()).await.unwrap();
    }
}

/// Runs the command in a process that dies at an armed step.
fn delete_organization(own: &OwnStores, organization: Uuid, armed: &Path) -> ExitStatus {
    let connection = Stack::shared().connection;
    command()
        .args(["org", "delete", &organization.to_string(), "--yes", "--json"])
        .env("TIDEMARK_DATABASE_URL", &own.database_url)
        .env("TIDEMARK_CLICKHOUSE_URL", &connection.clickhouse_url)
        .env("TIDEMARK_CLICKHOUSE_USER", &connection.clickhouse_user)
        .env("TIDEMARK_CLICKHOUSE_PASSWORD", &connection.clickhouse_password)
        .env("TIDEMARK_CLICKHOUSE_DATABASE", own.database_url.rsplit('/').next().unwrap())
        .env("TIDEMARK_FAILPOINTS", armed)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_organization_goes_wherever_its_erasure_is_killed() {
    let own = OwnStores::create().await;
    let (tenant, other) = (some_days(&own, 2).await, some_days(&own, 2).await);
    let relay = own.relay();
    own.applied(tenant.id).await;
    own.applied(other.id).await;
    relay.stop().await;
    give_some_of_everything(&own, tenant.id).await;
    // Some of it is still to be delivered, and is not any more.
    scrape(own.pg(), tenant.id, tenant.accounts[0], 4, 5_000).await;
    let others = (own.figures(other.id).await, records(&own, other.id).await);
    let had = records(&own, tenant.id).await;
    assert!(had.iter().all(|(_, rows)| *rows > 0), "{had:?}");
    assert!(history(&own, tenant.id).await.iter().sum::<u64>() > 0);

    let armed = tempfile::tempdir().unwrap();
    for step in ["erasure-records", "erasure-outbox", "erasure-history"] {
        File::create(armed.path().join(step)).unwrap();
        let status = delete_organization(&own, tenant.id, armed.path());
        assert!(!status.success() && !armed.path().join(step).exists(), "{step}: {status}");
        // Whatever is left of it takes nothing more in.
        let write = Write::begin(own.pg(), tenant.id).await.unwrap();
        assert!(matches!(write.commit().await, Err(Error::NotFound("organization"))));
        assert!(organizations::list(own.pg()).await.unwrap().iter().all(|listed| listed.id != tenant.id));
    }
    assert!(delete_organization(&own, tenant.id, armed.path()).success());
    assert!(fs::read_dir(armed.path()).unwrap().next().is_none());
    let left = records(&own, tenant.id).await;
    assert!(left.iter().all(|(_, rows)| *rows == 0), "{left:?}");
    assert_eq!(history(&own, tenant.id).await.iter().sum::<u64>(), 0);
    assert!(!delete_organization(&own, tenant.id, armed.path()).success(), "there is no such organization");
    assert_eq!((own.figures(other.id).await, records(&own, other.id).await), others);

    // Rows that come back with files of before are noticed by the next sweep.
    own.stores
        .clickhouse
        .query_raw("insert into account_snapshots (org_id, subject_id, date, observed_at) values ({org:UUID}, 1, today(), now())")
        .param("org", tenant.id)
        .execute()
        .await
        .unwrap();
    assert_eq!(erase(&own).await.history_rows, 1);
    assert_eq!(history(&own, tenant.id).await.iter().sum::<u64>(), 0);
    assert_eq!(own.figures(other.id).await, others.0);

    // Whoever still takes its key for what it was is told that it is gone.
    let late = sqlx::query(
        "insert into creators (id, organization_id, name, name_key, added_at, updated_at)
         values (gen_random_uuid(), $1, 'Ann', 'ann', now(), now())",
    )
    .bind(tenant.id)
    .execute(own.pg())
    .await;
    assert!(matches!(late.map_err(Error::from), Err(Error::NotFound("organization"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_relay_has_in_hand_of_a_deleted_organization_is_waited_for() {
    let own = OwnStores::create().await;
    let tenant = own.organization(1).await;
    scrape(own.pg(), tenant.id, tenant.accounts[0], 2, 100).await;
    let delivery = outbox::next(own.pg(), i64::MAX, &mut Held::default()).await.unwrap().unwrap();
    organizations::delete(own.pg(), tenant.id).await.unwrap();
    let in_hand = async || {
        let next = removing::remove_some_events(own.pg(), tenant.id, 0).await.unwrap();
        (next, removing::in_hand(own.pg(), tenant.id).await.unwrap())
    };
    let (next, first) = in_hand().await;
    assert_eq!((next > first, first), (true, Some(delivery.first)));
    outbox::finish(own.pg(), &delivery).await.unwrap();
    assert_eq!(in_hand().await, (next, None));
    let left: i64 = sqlx::query_scalar("select count(*) from outbox").fetch_one(own.pg()).await.unwrap();
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_change_sequence_is_never_empty_while_an_organization_goes() {
    let own = OwnStores::create().await;
    let tenant = own.organization(1).await;
    scrape(own.pg(), tenant.id, tenant.accounts[0], 2, 100).await;
    let changes = async || -> Vec<String> {
        sqlx::query_scalar("select entity from search_changes").fetch_all(own.pg()).await.unwrap()
    };
    let before = changes().await.len();
    organizations::delete(own.pg(), tenant.id).await.unwrap();
    while removing::remove_some_records(own.pg(), tenant.id).await.unwrap() {}
    let kept = changes().await.len();
    assert!(0 < kept && kept < before, "{kept} of {before}");
    removing::remove(own.pg(), tenant.id).await.unwrap();
    assert_eq!(changes().await, ["organization"]);
}

/// By the service's clock, which goes on by a day.
#[tokio::test(flavor = "multi_thread")]
async fn a_day_after_a_deletion_nothing_of_it_is_left() {
    let own = OwnStores::create().await;
    let tenant = some_days(&own, 2).await;
    let world = World::open(Population::new(5, 2), None, Some(Utc::now())).unwrap();
    let sandbox = start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap();
    let clock = Clock::new(Some(format!("{}/_clock", sandbox.url)));
    let stores = Stores { clock, ..own.stores.clone() };
    sqlx::query("insert into removed_subjects (organization_id, subject_id, delivery) values ($1, 0, 0)")
        .bind(tenant.id)
        .execute(own.pg())
        .await
        .unwrap();
    let stop = CancellationToken::new();
    let worker = tokio::spawn(erasure::run(stores, own.database_url.clone(), stop.clone()));
    let swept = |at_least: i64| {
        let own = &own;
        eventually("there was a sweep", move || async move {
            let erased: i64 =
                sqlx::query_scalar("select count(*) from removed_subjects where erased_at is not null")
                    .fetch_one(own.pg())
                    .await
                    .unwrap();
            (erased >= at_least).then_some(())
        })
    };
    let relay = own.relay();
    // The first sweep is when the process starts, the next not before half a day is over.
    swept(1).await;
    delete_account(own.pg(), tenant.id, tenant.accounts[0]).await;
    own.applied(tenant.id).await;
    let gone = places(tenant.id, tenant.accounts[0].subject_id);
    sandbox.world.advance(24.0).unwrap();
    swept(2).await;
    eventually("the files hold nothing of it", || async {
        rows(&own, &gone).await.iter().all(|rows| *rows == 0).then_some(())
    })
    .await;
    stop.cancel();
    worker.await.unwrap();
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_rows_were_deleted_of_are_vacuumed_once() {
    let own = OwnStores::create().await;
    let tenant = own.organization(1).await;
    // Postgres tells of what a connection deleted when that ends, or after a while.
    let mut connection = PgConnection::connect(&own.database_url).await.unwrap();
    sqlx::query("delete from accounts where organization_id = $1")
        .bind(tenant.id)
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let vacuumed = Mutex::new(Vacuumed::default());
    let again = async || vacuumed.lock().await.again(own.pg()).await.unwrap();
    eventually("a table is vacuumed", || async { (again().await > 0).then_some(()) }).await;
    let dead: (i64, i64) =
        sqlx::query_as("select vacuum_count, n_dead_tup from pg_stat_user_tables where relname = 'accounts'")
            .fetch_one(own.pg())
            .await
            .unwrap();
    assert_eq!(dead, (1, 0));
    assert_eq!(again().await, 0);
}
