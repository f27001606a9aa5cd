//! Recovery after data loss: ClickHouse gets lost deliveries from the outbox, lost history is reported, and delivery numbers
//! continue above those of both stores.

use chrono::{TimeDelta, Utc};
use harness::{IsolatedStores, http_client, send, serve, wait_until};
use tidemark::app::{App, Settings};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::Write;
use tidemark::store::analytics::scope::fetch_removed_subjects;
use tidemark::store::analytics::{SubjectFilter, SubjectScope};
use tidemark::store::clickhouse::history_writer;
use tidemark::store::outbox::data_version::{self, CacheDependencies, VersionedRecords};
use tidemark::store::outbox::{self, BlockedOrganizations};
use tidemark::store::records::accounts;
use tidemark::store::search::SearchIndex;

use harness::relay::{Tenant, delete_account, scrape_at, track_individually, track_individually_in};

/// Two accounts with a week of history. A post of the second is also tracked individually.
async fn create_week(stores: &IsolatedStores) -> Tenant {
    let tenant = stores.create_tenant(2).await;
    for day in (1..=7).rev() {
        for (n, account) in tenant.accounts.iter().enumerate() {
            let views = (8 - day) * (100 + n as i64);
            scrape_at(stores.pg(), tenant.id, *account, 5, views, harness::now() - TimeDelta::days(day))
                .await;
        }
    }
    track_individually(
        stores.pg(),
        tenant.id,
        &format!("{}{:06}", tenant.accounts[1].subject_id, 0),
        harness::now(),
    )
    .await;
    tenant
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_clickhouse_gets_later_deliveries_again() {
    let stores = IsolatedStores::create().await;
    let tenant = create_week(&stores).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    let before = stores.clickhouse_state(tenant.id).await;
    stores.back_up_clickhouse("older").await;
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 7, 5_000, harness::now()).await;
    delete_account(stores.pg(), tenant.id, tenant.accounts[1]).await;
    stores.wait_applied(tenant.id).await;
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 8, 6_000, harness::now()).await;
    stores.wait_applied(tenant.id).await;
    let after = stores.clickhouse_state(tenant.id).await;
    assert_ne!(before, after);
    let last = stores.last_delivery().await;
    relay.stop().await;

    stores.restore_clickhouse("older").await;
    assert!(stores.last_delivery().await < last);
    assert_ne!(stores.clickhouse_state(tenant.id).await, after);
    let relay = stores.start_relay();
    wait_until("lost deliveries are replayed", || async {
        (stores.last_delivery().await > last).then_some(())
    })
    .await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(stores.clickhouse_state(tenant.id).await, after);
    relay.stop().await;
}

/// Also of an organization whose outbox rows are pruned.
#[tokio::test(flavor = "multi_thread")]
async fn replaced_clickhouse_data_changes_all_data_versions() {
    let stores = IsolatedStores::create().await;
    let (tenant, quiet) = (stores.create_tenant(1).await, create_week(&stores).await);
    let dependencies = CacheDependencies { until: harness::now().date_naive(), videos: true };
    let version = async || {
        let scope = SubjectScope::find(quiet.id, &SubjectFilter::default());
        match data_version::fetch(stores.pg(), quiet.id, dependencies, None, None, scope).await.unwrap() {
            VersionedRecords::Changed(version, _) => version,
            VersionedRecords::Unchanged => panic!("no version was given"),
        }
    };
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    stores.wait_applied(quiet.id).await;
    relay.stop().await;
    let before = version().await;
    let relay = stores.start_relay();
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 2, 100, harness::now()).await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(version().await, before);
    sqlx::query("delete from outbox where organization_id = $1")
        .bind(quiet.id)
        .execute(stores.pg())
        .await
        .unwrap();
    stores.clear_clickhouse().await;
    wait_until("the loss is detected", async || (version().await != before).then_some(())).await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_relay_detects_data_loss_in_clickhouse() {
    let stores = IsolatedStores::create().await;
    let tenant = create_week(&stores).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    let last = stores.last_delivery().await;
    stores.databases.clickhouse.query_raw("truncate table relay_position").execute().await.unwrap();
    wait_until("the relay delivers again", || async { (stores.last_delivery().await > last).then_some(()) })
        .await;
    relay.stop().await;
}

/// As by a relay that has lost the session of its lock to a pooler.
#[tokio::test(flavor = "multi_thread")]
async fn idle_relay_delivers_rows_that_another_one_numbered() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    let trigger = "create function number_row() returns trigger language plpgsql as
                   $$ begin new.delivery := nextval('deliveries'); return new; end $$;
                   create trigger number_row before insert on outbox for each row execute function number_row()";
    sqlx::raw_sql(trigger).execute(stores.pg()).await.unwrap();
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 2, 100, harness::now()).await;
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_account_stays_excluded_during_a_replay() {
    let stores = IsolatedStores::create().await;
    let tenant = create_week(&stores).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    stores.back_up_clickhouse("older").await;
    let older = history_writer::last_delivery(&stores.databases.clickhouse).await.unwrap();
    delete_account(stores.pg(), tenant.id, tenant.accounts[0]).await;
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    assert!(fetch_removed_subjects(stores.pg(), tenant.id).await.unwrap().is_empty());
    let after = stores.clickhouse_state(tenant.id).await;

    stores.restore_clickhouse("older").await;
    let resumed = outbox::resume(stores.pg(), older).await.unwrap();
    assert_eq!(resumed.reopened, 1);
    let removed = fetch_removed_subjects(stores.pg(), tenant.id).await.unwrap();
    assert_eq!(removed, [tenant.accounts[0].subject_id]);
    assert_eq!(stores.totals(tenant.id).await, after.totals);
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_numbers_continue_above_clickhouse() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let mut connection = stores.pg().acquire().await.unwrap();
    let unfinished = outbox::begin_delivery(&mut connection, i64::MAX, &mut BlockedOrganizations::default())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(unfinished.rows.len(), 1);
    assert!(history_writer::record_delivery(&stores.databases.clickhouse, 0, 1_000).await.unwrap());
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    assert!(stores.last_delivery().await > 1_000);
    let version: u64 = stores
        .databases
        .clickhouse
        .query_raw("select max(version) from accounts final")
        .fetch_one()
        .await
        .unwrap();
    assert!(version > 1_000, "the account has version {version}");
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delivery_is_recorded_only_after_the_expected_one() {
    let stores = IsolatedStores::create().await;
    let clickhouse = &stores.databases.clickhouse;
    assert!(history_writer::record_delivery(clickhouse, 0, 7).await.unwrap());
    assert!(!history_writer::record_delivery(clickhouse, 0, 8).await.unwrap());
    assert_eq!(stores.last_delivery().await, 7);
    assert!(history_writer::record_delivery(clickhouse, 7, 8).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_history_is_reported_until_it_is_restored() {
    let stores = IsolatedStores::create().await;
    let tenant = create_week(&stores).await;
    let at = harness::now();
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    stores.back_up_clickhouse("backup").await;
    assert_eq!(outbox::fetch_missing_history(stores.pg()).await.unwrap(), []);
    sqlx::query("update outbox set applied_at = applied_at - interval '8 days'")
        .execute(stores.pg())
        .await
        .unwrap();
    assert!(outbox::prune_delivered(stores.pg()).await.unwrap() > 0);
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 7, 5_000, at).await;
    stores.wait_applied(tenant.id).await;
    let complete = stores.clickhouse_state(tenant.id).await;
    let last = stores.last_delivery().await;
    relay.stop().await;

    stores.clear_clickhouse().await;
    let relay = stores.start_relay();
    let delivered_above = |number| {
        let stores = &stores;
        wait_until("the relay delivers again", move || async move {
            (stores.last_delivery().await > number).then_some(())
        })
    };
    delivered_above(last).await;
    let missing = outbox::fetch_missing_history(stores.pg()).await.unwrap();
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].since, None);
    let ago = Utc::now() - missing[0].until;
    assert!(ago > TimeDelta::days(7) && ago < TimeDelta::days(9), "{missing:?}");
    let health = fetch_health(&stores).await;
    let detail = health["data"]["checks"]["clickhouse"]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("from the beginning to ") && detail.contains("restore a backup"), "{health}");
    assert_eq!(health["data"]["checks"]["clickhouse"]["status"], "degraded");
    stores.wait_applied(tenant.id).await;
    relay.stop().await;

    // The report survives a restart.
    let relay = stores.start_relay();
    let last = stores.last_delivery().await;
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 7, 5_000, at).await;
    delivered_above(last).await;
    assert_eq!(outbox::fetch_missing_history(stores.pg()).await.unwrap(), missing);
    stores.wait_applied(tenant.id).await;
    let last = stores.last_delivery().await;
    relay.stop().await;

    stores.restore_clickhouse("backup").await;
    let relay = stores.start_relay();
    delivered_above(last).await;
    stores.wait_applied(tenant.id).await;
    assert_eq!(outbox::fetch_missing_history(stores.pg()).await.unwrap(), []);
    assert_eq!(stores.totals(tenant.id).await, complete.totals);
    relay.stop().await;
}

pub async fn fetch_health(stores: &IsolatedStores) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let search = SearchIndex::open(folder.path()).unwrap();
    let app = App::new(
        stores.databases.clone(),
        search,
        ReadablePlatforms::new(Platform::ALL),
        Settings::default(),
    );
    let url = serve(&app).await;
    send(http_client().get(format!("{url}/v2/health"))).await.json
}

/// More moves and removals than fit into one statement.
#[tokio::test(flavor = "multi_thread")]
async fn many_moves_and_removals_are_one_delivery() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(400).await;
    let relay = stores.start_relay();
    for account in &tenant.accounts {
        scrape_at(stores.pg(), tenant.id, *account, 2, 100, harness::now() - TimeDelta::days(1)).await;
    }
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    // The first post of each account is also tracked individually, and stays.
    let mut write = Write::begin(stores.pg(), tenant.id).await.unwrap();
    for account in &tenant.accounts {
        track_individually_in(&mut write, &format!("{}{:06}", account.subject_id, 0), harness::now()).await;
        accounts::change::delete(&mut write, account.id).await.unwrap();
    }
    write.commit().await.unwrap();
    let before = stores.last_delivery().await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    assert!(stores.last_delivery().await <= before + 2, "several deliveries");
    let (videos, subjects): (u64, u64) = stores
        .databases
        .clickhouse
        .query_raw("select uniqExact(video_id), uniqExact(subject_id) from video_snapshots final")
        .fetch_one()
        .await
        .unwrap();
    assert_eq!((videos, subjects), (400, 400));
    let levels: i64 = stores
        .databases
        .clickhouse
        .query_raw("select assumeNotNull(sum(view_gain + view_base)) from account_daily final")
        .fetch_one()
        .await
        .unwrap();
    assert_eq!(levels, 400 * 100);
    relay.stop().await;
}
