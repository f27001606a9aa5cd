//! History that is older than an organization keeps leaves the files, wherever that is killed, and whatever files come back.

use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use chrono::{Days, TimeDelta, Utc};
use clickhouse::Client;
use sqlx::AssertSqlSafe;
use tidemark::rollup::verify;
use tidemark::store::lifecycle::{ErasureLock, retention};
use tidemark::store::records::organizations::{self, OrganizationChange};
use tidemark::store::{Error, Write};
use tidemark::worker;
use tidemark::worker::erasure::{self, ErasedRows};
use tokio::time::Instant;
use uuid::Uuid;

use crate::harness::{IsolatedStores, Stack, WAIT_TIMEOUT, wait_until};
use crate::setup::scrape_at;

/// Rows of before a day, and those of them with views.
async fn older(stores: &IsolatedStores, organization: Uuid) -> (u64, u64) {
    let sql = "select count(), countIf(view_count is not null) from video_snapshots
               where org_id = {org:UUID} and date < today() - 61";
    stores.databases.clickhouse.query_raw(sql).param("org", organization).fetch_one().await.unwrap()
}

async fn erase(stores: &IsolatedStores) -> ErasedRows {
    let now =
        async || erasure::run_once(&stores.databases, &stores.connection.database_url, None).await.unwrap();
    wait_until("nobody else erases", now).await
}

async fn is_sound(stores: &IsolatedStores, organization: Uuid) {
    let report = verify::verify(&stores.databases, organization, false).await.unwrap();
    assert_eq!(report.differences, [], "{report:?}");
}

/// Lets the history of organizations begin a month or two ago.
async fn cut(stores: &IsolatedStores, of: &[Uuid]) {
    let change = OrganizationChange { retention_days: Some(Some(30)), ..OrganizationChange::default() };
    for organization in of {
        organizations::update(stores.pg(), *organization, &change).await.unwrap();
    }
    retention::advance_cutoffs(stores.pg(), None, Utc::now().date_naive(), false).await.unwrap();
    // Nobody asks here who knew of more.
    sqlx::query("update organizations set history_since_set_at = now() - interval '1 minute'")
        .execute(stores.pg())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn older_history_goes_wherever_its_removal_is_killed_and_no_later_total_changes() {
    let stores = IsolatedStores::create().await;
    // More than are reduced at a time.
    let (tenant, other) = (stores.create_tenant(60).await, stores.create_tenant(1).await);
    for day in [100, 90, 80, 70, 20, 3] {
        let at = Utc::now() - TimeDelta::days(day);
        for account in &tenant.accounts {
            scrape_at(stores.pg(), tenant.id, *account, 2, 1_000 - day, at).await;
        }
        scrape_at(stores.pg(), other.id, other.accounts[0], 2, 1_000 - day, at).await;
    }
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    stores.wait_applied(other.id).await;
    let (lately, others) = (stores.totals(tenant.id).await, stores.clickhouse_state(other.id).await);
    stores.back_up_clickhouse("older").await;

    cut(&stores, &[tenant.id]).await;
    // A change of before brings nothing any more.
    let mut write = Write::begin(stores.pg(), tenant.id).await.unwrap();
    write.record_account_snapshot(tidemark::model::snapshot::AccountSnapshot {
        subject_id: tenant.accounts[0].subject_id,
        observed_at: Utc::now() - Days::new(90),
        follower_count: Some(1),
        following_count: None,
        profile_post_count: None,
    });
    assert!(matches!(write.commit().await, Err(Error::Conflict(_))));

    assert_eq!(older(&stores, tenant.id).await, (60 * 2 * 4, 60 * 2 * 4));
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
        assert_eq!(stores.totals(tenant.id).await, lately, "{step}");
    }
    erase(&stores).await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(older(&stores, tenant.id).await, (60 * 2 * 2, 60 * 2));
    assert_eq!(stores.totals(tenant.id).await, lately);
    assert_eq!(stores.clickhouse_state(other.id).await, others);
    is_sound(&stores, tenant.id).await;
    // The days of the rollup that are gone leave tombstones to the next sweep; then there is nothing to do.
    erase(&stores).await;
    assert_eq!(erase(&stores).await, ErasedRows { outbox_rows: 0, history_rows: 0 });
    let reduced = stores.clickhouse_state(tenant.id).await;
    relay.stop().await;

    // Files of before are noticed by the next sweep.
    let relay = stores.restore_clickhouse_and_relay("older").await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(stores.totals(tenant.id).await, lately);
    assert!(older(&stores, tenant.id).await.0 > 60 * 2 * 2);
    erase(&stores).await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(
        (stores.clickhouse_state(tenant.id).await, stores.clickhouse_state(other.id).await),
        (reduced, others)
    );
    is_sound(&stores, tenant.id).await;
    relay.stop().await;
}

/// Reduces the histories of two organizations, the first with a change to its row meanwhile; says what came of it, and which
/// of the two are reduced.
async fn reduce_two(change: &str) -> (Result<u64, Error>, [bool; 2]) {
    let stores = IsolatedStores::create().await;
    let mut tenants = [stores.create_tenant(1).await, stores.create_tenant(1).await];
    tenants.sort_by_key(|tenant| tenant.id);
    for tenant in &tenants {
        for day in [100, 90, 80, 3] {
            let at = Utc::now() - TimeDelta::days(day);
            scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 2, 1_000 - day, at).await;
        }
    }
    let relay = stores.start_relay();
    let both = tenants.each_ref().map(|tenant| tenant.id);
    for organization in both {
        stores.wait_applied(organization).await;
    }
    cut(&stores, &both).await;
    let trigger = format!(
        "create function meanwhile() returns trigger language plpgsql as $$ begin {change}; return new; end $$;
         create trigger meanwhile before update of history_compacted_before on organizations
         for each row when (old.id = '{}') execute function meanwhile()",
        both[0]
    );
    sqlx::raw_sql(AssertSqlSafe(trigger)).execute(stores.pg()).await.unwrap();
    let mut turn =
        ErasureLock::try_acquire(&stores.connection.database_url).await.unwrap().expect("nobody else erases");
    let until = Instant::now() + WAIT_TIMEOUT;
    let reduced = worker::retention::compact(&stores.databases, &mut turn, None, until).await;
    let cuts = retention::fetch_cutoffs(stores.pg(), None).await.unwrap();
    relay.stop().await;
    (reduced, both.map(|of| cuts.iter().any(|cut| cut.organization == of && cut.is_compacted)))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_that_is_deleted_meanwhile_keeps_no_other_waiting() {
    let (result, reduced) = reduce_two("new.deleted_at := now()").await;
    assert!(matches!(result, Err(Error::NotFound("organization"))), "{result:?}");
    assert_eq!(reduced, [false, true]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_whose_history_cannot_be_reduced_keeps_no_other_waiting() {
    let (result, reduced) = reduce_two("raise exception 'not this one'").await;
    assert!(matches!(result, Err(Error::Postgres(_))), "{result:?}");
    assert_eq!(reduced, [false, true]);
}

/// What reduces history in a database is waited for there, and nowhere else.
pub(crate) async fn is_waited_for_there_alone(there: &Client, elsewhere: &Client) {
    let statement =
        "insert into relay_position (relay, delivery) select 'another', sleepEachRow(1) from numbers(600)
                     settings max_block_size = 1";
    let client = retention::client(there);
    let left = tokio::spawn(async move { client.query_raw(statement).execute().await });
    let quiet = async |client: &Client| {
        tokio::time::timeout(Duration::from_secs(1), retention::wait_for_compactions(client)).await.ok()
    };
    wait_until("it is waited for", async || quiet(there).await.is_none().then_some(())).await;
    retention::wait_for_compactions(elsewhere).await.unwrap();
    assert!(quiet(there).await.is_none() && !left.is_finished());
    let kill = "kill query where query_kind = 'Insert' and current_database = currentDatabase()";
    there.query_raw(kill).execute().await.unwrap();
    retention::wait_for_compactions(there).await.unwrap();
    left.await.unwrap().unwrap_err();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_installation_on_the_same_server_holds_up_no_sweep() {
    let (stores, other) = (IsolatedStores::create().await, IsolatedStores::create().await);
    is_waited_for_there_alone(&stores.databases.clickhouse, &other.databases.clickhouse).await;
}
