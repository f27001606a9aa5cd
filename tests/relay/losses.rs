//! What either store lost comes back, or is named: deliveries that the outbox keeps, history that it no longer keeps,
//! numbers that Postgres forgot.

use chrono::{TimeDelta, Utc};
use tidemark::app::{App, Settings};
use tidemark::model::platform::Platform;
use tidemark::model::readable::ReadablePlatforms;
use tidemark::store::Write;
use tidemark::store::analytics::scope::fetch_removed_subjects;
use tidemark::store::clickhouse::history_writer;
use tidemark::store::outbox::data_version::{self, CacheDependencies};
use tidemark::store::outbox::{self, BlockedOrganizations};
use tidemark::store::records::accounts;
use tidemark::store::search::SearchIndex;

use crate::harness::{IsolatedStores, http_client, send, serve, wait_until};
use crate::setup::{Tenant, delete_account, scrape_at, track_alone, track_within};

/// Two accounts with a week of history, one post of the second tracked on its own as well.
async fn week(own: &IsolatedStores) -> Tenant {
    let tenant = own.tenant(2).await;
    for day in (1..=7).rev() {
        for (n, account) in tenant.accounts.iter().enumerate() {
            let views = (8 - day) * (100 + n as i64);
            scrape_at(own.pg(), tenant.id, *account, 5, views, Utc::now() - TimeDelta::days(day)).await;
        }
    }
    track_alone(own.pg(), tenant.id, &format!("{}{:06}", tenant.accounts[1].subject_id, 0), Utc::now()).await;
    tenant
}

#[tokio::test(flavor = "multi_thread")]
async fn clickhouse_with_older_files_gets_the_rest_again() {
    let own = IsolatedStores::create().await;
    let tenant = week(&own).await;
    let relay = own.relay();
    own.applied(tenant.id).await;
    let before = own.figures(tenant.id).await;
    own.keep_files("older").await;
    scrape_at(own.pg(), tenant.id, tenant.accounts[0], 7, 5_000, Utc::now()).await;
    delete_account(own.pg(), tenant.id, tenant.accounts[1]).await;
    own.applied(tenant.id).await;
    scrape_at(own.pg(), tenant.id, tenant.accounts[0], 8, 6_000, Utc::now()).await;
    own.applied(tenant.id).await;
    let after = own.figures(tenant.id).await;
    assert_ne!(before, after);
    let last = own.recorded().await;
    relay.stop().await;

    own.put_files_back("older").await;
    assert!(own.recorded().await < last);
    assert_ne!(own.figures(tenant.id).await, after);
    let relay = own.relay();
    wait_until("what was lost is delivered again", || async { (own.recorded().await > last).then_some(()) })
        .await;
    own.applied(tenant.id).await;
    assert_eq!(own.figures(tenant.id).await, after);
    relay.stop().await;
}

/// Also of those whose lost history nobody can deliver again.
#[tokio::test(flavor = "multi_thread")]
async fn other_files_make_every_answer_old_and_another_relay_none() {
    let own = IsolatedStores::create().await;
    let (tenant, quiet) = (own.tenant(1).await, week(&own).await);
    let basis = CacheDependencies { until: Utc::now().date_naive(), videos: true };
    let version = async || data_version::fetch(own.pg(), quiet.id, basis, None).await.unwrap();
    let relay = own.relay();
    own.applied(tenant.id).await;
    own.applied(quiet.id).await;
    relay.stop().await;
    let before = version().await;
    let relay = own.relay();
    scrape_at(own.pg(), tenant.id, tenant.accounts[0], 2, 100, Utc::now()).await;
    own.applied(tenant.id).await;
    assert_eq!(version().await, before);
    sqlx::query("delete from outbox where organization_id = $1")
        .bind(quiet.id)
        .execute(own.pg())
        .await
        .unwrap();
    own.lose_files().await;
    wait_until("the loss is noticed", async || (version().await != before).then_some(())).await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_relay_notices_that_clickhouse_lost_files() {
    let own = IsolatedStores::create().await;
    let tenant = week(&own).await;
    let relay = own.relay();
    own.applied(tenant.id).await;
    let last = own.recorded().await;
    own.databases.clickhouse.query_raw("truncate table relay_position").execute().await.unwrap();
    wait_until("the relay delivers again", || async { (own.recorded().await > last).then_some(()) }).await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_stays_out_of_every_total_while_its_removal_is_made_again() {
    let own = IsolatedStores::create().await;
    let tenant = week(&own).await;
    let relay = own.relay();
    own.applied(tenant.id).await;
    own.keep_files("older").await;
    let older = history_writer::last_delivery(&own.databases.clickhouse).await.unwrap();
    delete_account(own.pg(), tenant.id, tenant.accounts[0]).await;
    own.applied(tenant.id).await;
    relay.stop().await;
    assert!(fetch_removed_subjects(own.pg(), tenant.id).await.unwrap().is_empty());
    let after = own.figures(tenant.id).await;

    own.put_files_back("older").await;
    let resumed = outbox::resume(own.pg(), older).await.unwrap();
    assert_eq!((resumed.reopened, resumed.postgres_is_older), (1, false));
    let removed = fetch_removed_subjects(own.pg(), tenant.id).await.unwrap();
    assert_eq!(removed, [tenant.accounts[0].subject_id]);
    assert_eq!(own.totals(tenant.id).await, after.totals);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_go_on_above_those_of_a_clickhouse_that_is_ahead() {
    let own = IsolatedStores::create().await;
    let tenant = own.tenant(1).await;
    let unfinished = outbox::begin_delivery(own.pg(), i64::MAX, &mut BlockedOrganizations::default())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(unfinished.rows.len(), 1);
    assert!(history_writer::record_delivery(&own.databases.clickhouse, 0, 1_000).await.unwrap());
    let relay = own.relay();
    own.applied(tenant.id).await;
    assert!(own.recorded().await > 1_000);
    let version: u64 = own
        .databases
        .clickhouse
        .query_raw("select max(version) from accounts final")
        .fetch_one()
        .await
        .unwrap();
    assert!(version > 1_000, "the account was brought as of delivery {version}");
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_not_recorded_by_a_clickhouse_that_changed_its_files_meanwhile() {
    let own = IsolatedStores::create().await;
    let clickhouse = &own.databases.clickhouse;
    assert!(history_writer::record_delivery(clickhouse, 0, 7).await.unwrap());
    assert!(!history_writer::record_delivery(clickhouse, 0, 8).await.unwrap());
    assert_eq!(own.recorded().await, 7);
    assert!(history_writer::record_delivery(clickhouse, 7, 8).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn history_that_the_outbox_no_longer_keeps_is_named_until_it_is_restored() {
    let own = IsolatedStores::create().await;
    let tenant = week(&own).await;
    let at = Utc::now();
    let relay = own.relay();
    own.applied(tenant.id).await;
    own.keep_files("backup").await;
    assert_eq!(outbox::fetch_missing_history(own.pg()).await.unwrap(), []);
    sqlx::query("update outbox set applied_at = applied_at - interval '8 days'")
        .execute(own.pg())
        .await
        .unwrap();
    assert!(outbox::prune_delivered(own.pg()).await.unwrap() > 0);
    scrape_at(own.pg(), tenant.id, tenant.accounts[0], 7, 5_000, at).await;
    own.applied(tenant.id).await;
    let whole = own.figures(tenant.id).await;
    let last = own.recorded().await;
    relay.stop().await;

    own.lose_files().await;
    let relay = own.relay();
    let delivered_above = |number| {
        let own = &own;
        wait_until("the relay delivers again", move || async move {
            (own.recorded().await > number).then_some(())
        })
    };
    delivered_above(last).await;
    let missing = outbox::fetch_missing_history(own.pg()).await.unwrap();
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].since, None);
    let ago = Utc::now() - missing[0].until;
    assert!(ago > TimeDelta::days(7) && ago < TimeDelta::days(9), "{missing:?}");
    let health = health(&own).await;
    let detail = health["data"]["checks"]["clickhouse"]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("from the beginning to ") && detail.contains("restore a backup"), "{health}");
    assert_eq!(health["data"]["checks"]["clickhouse"]["status"], "degraded");
    own.applied(tenant.id).await;
    relay.stop().await;

    // Another start does not forget it.
    let relay = own.relay();
    let last = own.recorded().await;
    scrape_at(own.pg(), tenant.id, tenant.accounts[0], 7, 5_000, at).await;
    delivered_above(last).await;
    assert_eq!(outbox::fetch_missing_history(own.pg()).await.unwrap(), missing);
    own.applied(tenant.id).await;
    let last = own.recorded().await;
    relay.stop().await;

    own.put_files_back("backup").await;
    let relay = own.relay();
    delivered_above(last).await;
    own.applied(tenant.id).await;
    assert_eq!(outbox::fetch_missing_history(own.pg()).await.unwrap(), []);
    assert_eq!(own.totals(tenant.id).await, whole.totals);
    relay.stop().await;
}

async fn health(own: &IsolatedStores) -> serde_json::Value {
    let folder = tempfile::tempdir().unwrap();
    let search = SearchIndex::open(folder.path()).unwrap();
    let app =
        App::new(own.databases.clone(), search, ReadablePlatforms::new(Platform::ALL), Settings::default());
    let url = serve(&app).await;
    send(http_client().get(format!("{url}/v2/health"))).await.json
}

/// More moves and removals than one statement takes, in one delivery, and then their way back.
#[tokio::test(flavor = "multi_thread")]
async fn very_many_moves_and_removals_are_one_delivery() {
    let own = IsolatedStores::create().await;
    let tenant = own.tenant(400).await;
    let relay = own.relay();
    for account in &tenant.accounts {
        scrape_at(own.pg(), tenant.id, *account, 2, 100, Utc::now() - TimeDelta::days(1)).await;
    }
    own.applied(tenant.id).await;
    relay.stop().await;
    // The first post of each account is tracked alone and left behind by it.
    let mut write = Write::begin(own.pg(), tenant.id).await.unwrap();
    for account in &tenant.accounts {
        track_within(&mut write, &format!("{}{:06}", account.subject_id, 0), Utc::now()).await;
        accounts::change::delete(&mut write, account.id).await.unwrap();
    }
    write.commit().await.unwrap();
    let before = own.recorded().await;
    let relay = own.relay();
    own.applied(tenant.id).await;
    assert!(own.recorded().await <= before + 2, "several deliveries");
    let (videos, subjects): (u64, u64) = own
        .databases
        .clickhouse
        .query_raw("select uniqExact(video_id), uniqExact(subject_id) from video_snapshots final")
        .fetch_one()
        .await
        .unwrap();
    assert_eq!((videos, subjects), (400, 400));
    let levels: i64 = own
        .databases
        .clickhouse
        .query_raw("select assumeNotNull(sum(view_gain + view_base)) from account_daily final")
        .fetch_one()
        .await
        .unwrap();
    assert_eq!(levels, 400 * 100);
    relay.stop().await;
}
