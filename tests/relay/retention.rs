//! Retention: history before the cutoff is deleted, despite kills at any step and restored ClickHouse data.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use chrono::{Days, TimeDelta};
use clickhouse::Client;
use harness::{
    CapturedLog, ClickhouseProxy, IsolatedStores, Stack, WAIT_TIMEOUT, create_organization, wait_until,
};
use sqlx::AssertSqlSafe;
use tidemark::app::Databases;
use tidemark::model::counters::ProfileCounters;
use tidemark::rollup::verify;
use tidemark::store::lifecycle::{ErasureLock, retention};
use tidemark::store::records::organizations::{self, OrganizationChange};
use tidemark::store::{Error, Write};
use tidemark::worker;
use tidemark::worker::erasure::{self, ErasedRows};
use tokio::time::Instant;
use uuid::Uuid;

use harness::relay::scrape_at;

/// Counts the snapshots before a day, and those of them with views.
async fn count_old_snapshots(stores: &IsolatedStores, organization: Uuid) -> (u64, u64) {
    let sql = "select count(), countIf(view_count is not null) from video_snapshots
               where org_id = {org:UUID} and date < {before:Date}";
    let query = stores.databases.clickhouse.query_raw(sql).param("org", organization);
    query.param("before", (harness::now() - Days::new(61)).date_naive()).fetch_one().await.unwrap()
}

async fn erase(stores: &IsolatedStores) -> ErasedRows {
    let run = async || erasure::run_once(&stores.databases, None).await.unwrap();
    wait_until("the erasure lock is free", run).await
}

async fn assert_rollup_matches(stores: &IsolatedStores, organization: Uuid) {
    let report = verify::verify(&stores.databases, organization, false).await.unwrap();
    assert_eq!(report.differences, [], "{report:?}");
}

/// Sets the cutoff of organizations to one or two months ago.
async fn set_cutoff(stores: &IsolatedStores, ids: &[Uuid]) {
    let change = OrganizationChange { retention_days: Some(Some(30)), ..OrganizationChange::default() };
    for id in ids {
        organizations::update(stores.pg(), *id, &change).await.unwrap();
    }
    retention::advance_cutoffs(stores.pg(), None, harness::now().date_naive(), true).await.unwrap();
    end_grace(stores).await;
}

/// No request uses an earlier cutoff any more.
async fn end_grace(stores: &IsolatedStores) {
    sqlx::query("update organizations set history_since_set_at = now() - interval '1 minute'")
        .execute(stores.pg())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_survives_kills_and_keeps_later_totals() {
    let stores = IsolatedStores::create().await;
    // More subjects than are compacted at a time.
    let (tenant, other) = (stores.create_tenant(60).await, stores.create_tenant(1).await);
    for day in [100, 90, 80, 70, 20, 3] {
        let at = harness::now() - TimeDelta::days(day);
        for account in &tenant.accounts {
            scrape_at(stores.pg(), tenant.id, *account, 2, 1_000 - day, at).await;
        }
        scrape_at(stores.pg(), other.id, other.accounts[0], 2, 1_000 - day, at).await;
    }
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    stores.wait_applied(other.id).await;
    let (totals, others) = (stores.totals(tenant.id).await, stores.clickhouse_state(other.id).await);
    stores.back_up_clickhouse("older").await;

    set_cutoff(&stores, &[tenant.id]).await;
    // A snapshot before the cutoff is rejected.
    let mut write = Write::begin(stores.pg(), tenant.id).await.unwrap();
    write.record_account_snapshot(tidemark::model::snapshot::AccountSnapshot {
        subject_id: tenant.accounts[0].subject_id,
        observed_at: harness::now() - Days::new(90),
        counters: ProfileCounters { follower_count: Some(1), ..ProfileCounters::default() },
    });
    assert!(matches!(write.commit().await, Err(Error::Conflict(_))));

    assert_eq!(count_old_snapshots(&stores, tenant.id).await, (60 * 2 * 4, 60 * 2 * 4));
    let armed = tempfile::tempdir().unwrap();
    for step in ["retention-compacted", "retention-purged", "retention-recomputed"] {
        File::create(armed.path().join(step)).unwrap();
        let status = Stack::shared()
            .connection
            .command()
            .arg("erase")
            .env("TIDEMARK_DATABASE_URL", &stores.connection.database_url)
            .env("TIDEMARK_CLICKHOUSE_DATABASE", stores.connection.database_url.rsplit('/').next().unwrap())
            .env("TIDEMARK_FAILPOINTS", armed.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(!status.success() && !armed.path().join(step).exists(), "{step}: {status}");
        stores.wait_applied(tenant.id).await;
        assert_eq!(stores.totals(tenant.id).await, totals, "{step}");
    }
    erase(&stores).await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(count_old_snapshots(&stores, tenant.id).await, (60 * 2 * 2, 60 * 2));
    assert_eq!(stores.totals(tenant.id).await, totals);
    assert_eq!(stores.clickhouse_state(other.id).await, others);
    assert_rollup_matches(&stores, tenant.id).await;
    // The deleted rollup days leave tombstones to the next purge. After it nothing is left.
    erase(&stores).await;
    assert_eq!(erase(&stores).await, ErasedRows { outbox_rows: 0, history_rows: 0 });
    let compacted = stores.clickhouse_state(tenant.id).await;
    relay.stop().await;

    // The next run purges restored history.
    let relay = stores.restore_clickhouse_and_relay("older").await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(stores.totals(tenant.id).await, totals);
    assert!(count_old_snapshots(&stores, tenant.id).await.0 > 60 * 2 * 2);
    erase(&stores).await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(
        (stores.clickhouse_state(tenant.id).await, stores.clickhouse_state(other.id).await),
        (compacted, others)
    );
    assert_rollup_matches(&stores, tenant.id).await;
    relay.stop().await;
}

/// Compacts the histories of two organizations while a trigger changes the first one's row. Returns the result, and which of
/// them are compacted.
async fn compact_two(change: &str) -> (Result<u64, Error>, [bool; 2]) {
    let stores = IsolatedStores::create().await;
    let mut tenants = [stores.create_tenant(1).await, stores.create_tenant(1).await];
    tenants.sort_by_key(|tenant| tenant.id);
    for tenant in &tenants {
        for day in [100, 90, 80, 3] {
            let at = harness::now() - TimeDelta::days(day);
            scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 2, 1_000 - day, at).await;
        }
    }
    let relay = stores.start_relay();
    let both = tenants.each_ref().map(|tenant| tenant.id);
    for organization in both {
        stores.wait_applied(organization).await;
    }
    set_cutoff(&stores, &both).await;
    let trigger = format!(
        "create function change_row() returns trigger language plpgsql as $$ begin {change}; return new; end $$;
         create trigger change_row before update of history_compacted_before on organizations
         for each row when (old.id = '{}') execute function change_row()",
        both[0]
    );
    sqlx::raw_sql(AssertSqlSafe(trigger)).execute(stores.pg()).await.unwrap();
    let mut lock = ErasureLock::try_acquire(stores.pg()).await.unwrap().expect("the lock is free");
    let deadline = Instant::now() + WAIT_TIMEOUT;
    let result = worker::retention::purge_expired(&stores.databases, &mut lock, None, deadline).await;
    let cutoffs = retention::fetch_cutoffs(stores.pg(), None).await.unwrap();
    relay.stop().await;
    let is_compacted = |id| cutoffs.iter().any(|cutoff| cutoff.organization == id && cutoff.is_compacted);
    (result, both.map(is_compacted))
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_skips_a_concurrently_deleted_organization() {
    let (result, compacted) = compact_two("new.deleted_at := now()").await;
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(compacted, [false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn compaction_error_affects_only_its_organization() {
    let (result, compacted) = compact_two("raise exception 'not this one'").await;
    assert!(matches!(result, Err(Error::Postgres(_))), "{result:?}");
    assert_eq!(compacted, [false, true]);
}

/// Writes four days of history before the cutoff, in ClickHouse alone.
async fn insert_old_history(
    stores: &IsolatedStores,
    organization: Uuid,
    videos: u32,
    videos_per_subject: u32,
) {
    let sql = "insert into video_snapshots (org_id, subject_id, video_id, date, observed_at, view_count)
               select {org:UUID}, 1 + intDiv(number, {per_subject:UInt32}), number, day, day, 100
               from numbers({videos:UInt32})
               array join arrayMap(days -> {today:Date} - days, [100, 90, 80, 70]) as day";
    let query = stores.databases.clickhouse.query_raw(sql).param("org", organization);
    let query = query.param("videos", videos).param("per_subject", videos_per_subject);
    query.param("today", harness::now().date_naive()).execute().await.unwrap();
}

#[tokio::test]
async fn history_that_exceeds_memory_is_purged_in_parts() {
    let stores = IsolatedStores::create().await;
    let proxy = ClickhouseProxy::start(&stores.connection.clickhouse_url).await;
    proxy.replace("max_memory_usage=1000000000", "max_memory_usage=0040000000");
    let clickhouse = stores.databases.clickhouse.clone().with_url(&proxy.url);
    let databases = Databases { clickhouse, ..stores.databases.clone() };
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(create_organization(stores.pg(), OrganizationChange::default()).await.0);
    }
    let [divisible, indivisible, small] = ids[..] else { unreachable!() };
    insert_old_history(&stores, divisible, 40_000, 100).await;
    // Of one subject.
    insert_old_history(&stores, indivisible, 40_000, 40_000).await;
    insert_old_history(&stores, small, 10, 5).await;
    set_cutoff(&stores, &ids).await;
    let (log, _guard) = CapturedLog::start("tidemark=warn");
    let mut lock = ErasureLock::try_acquire(stores.pg()).await.unwrap().unwrap();
    let deadline = Instant::now() + WAIT_TIMEOUT;
    let purged = worker::retention::purge_expired(&databases, &mut lock, None, deadline).await;
    assert!(purged.as_ref().is_err_and(Error::exceeds_query_limit), "{purged:?}");
    assert_eq!(count_old_snapshots(&stores, divisible).await, (80_000, 40_000));
    assert_eq!(count_old_snapshots(&stores, indivisible).await, (160_000, 160_000));
    assert_eq!(count_old_snapshots(&stores, small).await, (20, 10));
    let failures = log.take();
    assert!(!failures.is_empty(), "the log names the organization");
    for line in failures {
        assert!(line.contains(&indivisible.to_string()) && line.contains("count=1 "), "{line}");
    }
    assert_eq!(retention::fetch_overdue(stores.pg()).await.unwrap(), []);
    sqlx::query("update organizations set history_since_set_at = now() - interval '2 hours'")
        .execute(stores.pg())
        .await
        .unwrap();
    let overdue = retention::fetch_overdue(stores.pg()).await.unwrap();
    assert_eq!(overdue.iter().map(|overdue| overdue.organization).collect::<Vec<_>>(), [indivisible]);
}

/// Creates organizations with a retention limit and without history.
async fn create_idle_organizations(stores: &IsolatedStores, count: i32) {
    sqlx::query(
        "insert into organizations (id, name, retention_days)
         select gen_random_uuid(), 'idle', 30 from generate_series(1, $1)",
    )
    .bind(count)
    .execute(stores.pg())
    .await
    .unwrap();
}

#[tokio::test]
async fn sweep_has_as_many_statements_for_many_idle_organizations() {
    let stores = IsolatedStores::create().await;
    let proxy = ClickhouseProxy::start(&stores.connection.clickhouse_url).await;
    let clickhouse = stores.databases.clickhouse.clone().with_url(&proxy.url);
    let databases = Databases { clickhouse, ..stores.databases.clone() };
    let (log, _guard) = CapturedLog::start("sqlx::query=debug");
    let sweep = async || {
        let mut lock = ErasureLock::try_acquire(stores.pg()).await.unwrap().unwrap();
        let requests = proxy.request_count();
        log.take();
        worker::retention::advance_cutoffs(&databases, None).await.unwrap();
        end_grace(&stores).await;
        let deadline = Instant::now() + WAIT_TIMEOUT;
        worker::retention::purge_expired(&databases, &mut lock, None, deadline).await.unwrap();
        lock.release().await.unwrap();
        let statements = log.take().iter().filter(|line| line.contains("sqlx::query")).count();
        (statements, proxy.request_count() - requests)
    };
    create_idle_organizations(&stores, 2).await;
    let (first, compacted) = (sweep().await, sweep().await);
    assert!(
        first.0 >= compacted.0 && first.1 > compacted.1 && compacted.0 > 2 && compacted.1 > 1,
        "{first:?}"
    );
    create_idle_organizations(&stores, 98).await;
    for (before, now) in [(first, sweep().await), (compacted, sweep().await)] {
        // New connections and polls add a few to Postgres.
        assert!(now.0 < before.0 + 10 && now.1 == before.1, "{before:?} and {now:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn locked_organization_delays_no_others() {
    let stores = IsolatedStores::create_postgres().await;
    create_idle_organizations(&stores, 3).await;
    let mut write = stores.pg().begin().await.unwrap();
    sqlx::query("select from organizations order by id desc limit 1 for no key update")
        .execute(&mut *write)
        .await
        .unwrap();
    let pg = stores.pg().clone();
    let advance = tokio::spawn(async move {
        retention::advance_cutoffs(&pg, None, harness::now().date_naive(), true).await.unwrap();
    });
    let wait_for_cutoffs = async |expected: i64| {
        wait_until("organizations have a cutoff", async || {
            let sql = "select count(*) from organizations where history_since is not null";
            let cutoffs: i64 = sqlx::query_scalar(sql).fetch_one(stores.pg()).await.unwrap();
            (cutoffs == expected).then_some(())
        })
        .await;
    };
    wait_for_cutoffs(2).await;
    assert!(!advance.is_finished());
    write.rollback().await.unwrap();
    advance.await.unwrap();
    wait_for_cutoffs(3).await;
}

/// Asserts that a running compaction is waited for in its database only.
pub(crate) async fn assert_compaction_is_waited_for(compacting: &Client, other: &Client) {
    let statement =
        "insert into relay_position (relay, delivery) select 'another', sleepEachRow(1) from numbers(600)
                     settings max_block_size = 1";
    let client = retention::client(compacting);
    let compaction = tokio::spawn(async move { client.query_raw(statement).execute().await });
    let wait = async |client: &Client| {
        tokio::time::timeout(Duration::from_secs(1), retention::wait_for_compactions(client)).await.ok()
    };
    wait_until("the compaction is waited for", async || wait(compacting).await.is_none().then_some(())).await;
    retention::wait_for_compactions(other).await.unwrap();
    assert!(wait(compacting).await.is_none() && !compaction.is_finished());
    let kill = "kill query where query_kind = 'Insert' and current_database = currentDatabase()";
    compacting.query_raw(kill).execute().await.unwrap();
    retention::wait_for_compactions(compacting).await.unwrap();
    compaction.await.unwrap().unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn other_databases_on_the_server_do_not_block_retention() {
    let (stores, other) = (IsolatedStores::create().await, IsolatedStores::create().await);
    assert_compaction_is_waited_for(&stores.databases.clickhouse, &other.databases.clickhouse).await;
}
