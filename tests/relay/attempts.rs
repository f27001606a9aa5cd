//! Concurrent computations of the same rollup: several relays, abandoned attempts that still write, and deletions. The result
//! always matches the snapshots.

use chrono::{NaiveDate, TimeDelta};
use harness::IsolatedStores;
use tidemark::rollup::{rebuild, verify};
use tidemark::store::clickhouse::history_writer::{self, Recompute, RecomputeMode, Subject};
use tidemark::store::outbox::event::Event;
use tidemark::store::outbox::{self, BlockedOrganizations};

use harness::relay::{Tenant, delete_account, scrape_at};

/// The rollups, with the table of rows that a statement is about to write.
const ROLLUPS: [(&str, &str); 2] = [("account_daily", "late_accounts"), ("video_daily", "late_videos")];

/// Delivers like a relay that is killed while ClickHouse computes the rollups: snapshots are inserted, and the rows that the
/// statements are about to write are in the tables of [`ROLLUPS`].
async fn abandon_attempt(stores: &IsolatedStores) {
    let clickhouse = &stores.databases.clickhouse;
    let mut connection = stores.pg().acquire().await.unwrap();
    let delivery = outbox::begin_delivery(&mut connection, i64::MAX, &mut BlockedOrganizations::default())
        .await
        .unwrap()
        .unwrap();
    let mut subjects: Vec<Subject> = Vec::new();
    for row in &delivery.rows {
        for event in &row.events {
            let Event::VideoSnapshots(snapshots) = event else { continue };
            let snapshots: Vec<_> = snapshots.iter().map(|snapshot| (row.organization, *snapshot)).collect();
            subjects.extend(
                snapshots.iter().map(|(organization, snapshot)| (*organization, snapshot.subject_id)),
            );
            history_writer::insert_video_snapshots(clickhouse, &snapshots).await.unwrap();
        }
    }
    let number = delivery.number;
    let recompute =
        Recompute { since: NaiveDate::default(), delivery: number, mode: RecomputeMode::ChangedDays };
    history_writer::recompute(stores.pg(), clickhouse, &subjects, recompute).await.unwrap();
    for (table, late) in ROLLUPS {
        for statement in [
            format!("create table {late} as {table}"),
            format!("insert into {late} select * from {table} where version = {number}"),
            format!("alter table {table} delete where version = {number} settings mutations_sync = 2"),
        ] {
            clickhouse.query_raw(&statement).execute().await.unwrap();
        }
        let count = format!("select count() from {late}");
        let rows: u64 = clickhouse.query_raw(&count).fetch_one().await.unwrap();
        assert!(rows > 0, "the attempt writes no rows of {table}");
    }
}

/// Completes the statements of the abandoned attempt.
async fn complete_attempt(stores: &IsolatedStores) {
    for (table, late) in ROLLUPS {
        let insert = format!("insert into {table} select * from {late}");
        stores.databases.clickhouse.query_raw(&insert).execute().await.unwrap();
    }
}

async fn scrape_days_ago(stores: &IsolatedStores, tenant: &Tenant, days_ago: i64, views: i64) {
    let at = harness::now() - TimeDelta::days(days_ago);
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 2, views, at).await;
}

/// Asserts that the rollup matches the snapshots, and the organization's total gain of views.
async fn assert_rollup(stores: &IsolatedStores, tenant: &Tenant, views: Option<i64>) {
    let report = verify::verify(&stores.databases, tenant.id, false).await.unwrap();
    assert_eq!(report.differences, []);
    let statement = "select sum(view_gain) from account_daily final where org_id = {org:UUID}";
    let query = stores.databases.clickhouse.query_raw(statement).param("org", tenant.id);
    assert_eq!(query.fetch_one::<Option<i64>>().await.unwrap(), views);
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_attempt_does_not_restore_a_deleted_account() {
    for completes_first in [true, false] {
        let stores = IsolatedStores::create().await;
        let tenant = stores.create_tenant(1).await;
        let relay = stores.start_relay();
        stores.wait_applied(tenant.id).await;
        relay.stop().await;
        scrape_days_ago(&stores, &tenant, 1, 100).await;
        scrape_days_ago(&stores, &tenant, 0, 150).await;
        abandon_attempt(&stores).await;
        delete_account(stores.pg(), tenant.id, tenant.accounts[0]).await;
        if completes_first {
            complete_attempt(&stores).await;
        }
        let relay = stores.start_relay();
        stores.wait_applied(tenant.id).await;
        complete_attempt(&stores).await;
        assert_rollup(&stores, &tenant, None).await;
        relay.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_attempt_does_not_replace_later_results() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let relay = stores.start_relay();
    for (days_ago, views) in [(3, 100), (1, 130)] {
        scrape_days_ago(&stores, &tenant, days_ago, views).await;
    }
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    // Yesterday gains 130 - 110, until the day before is observed again with 100 views.
    let at = harness::now() - TimeDelta::days(2);
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 2, 110, at).await;
    abandon_attempt(&stores).await;
    scrape_at(stores.pg(), tenant.id, tenant.accounts[0], 2, 100, at + TimeDelta::microseconds(1)).await;
    let relay = stores.start_relay();
    stores.wait_applied(tenant.id).await;
    complete_attempt(&stores).await;
    assert_rollup(&stores, &tenant, Some(60)).await;
    scrape_days_ago(&stores, &tenant, 0, 131).await;
    stores.wait_applied(tenant.id).await;
    assert_rollup(&stores, &tenant, Some(62)).await;
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_recomputations_have_the_same_result() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(1).await;
    let relay = stores.start_relay();
    for day in (0..20).rev() {
        scrape_days_ago(&stores, &tenant, day, 1_000 - 10 * day).await;
    }
    stores.wait_applied(tenant.id).await;
    relay.stop().await;
    let before = stores.clickhouse_state(tenant.id).await;
    let subject = [(tenant.id, tenant.accounts[0].subject_id)];
    let last = stores.last_delivery().await;
    for round in 0..10 {
        let compute = async |delivery: i64, mode| {
            let recompute = Recompute { since: NaiveDate::default(), delivery, mode };
            history_writer::recompute(stores.pg(), &stores.databases.clickhouse, &subject, recompute).await
        };
        let (one, other) = tokio::join!(
            compute(
                last + round,
                if round % 2 == 0 { RecomputeMode::AllDays } else { RecomputeMode::ChangedDays }
            ),
            compute(last + round + 1, RecomputeMode::AllDays)
        );
        one.unwrap();
        other.unwrap();
        assert_eq!(stores.clickhouse_state(tenant.id).await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rollup_survives_concurrent_relays_rebuilds_and_deletions() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(6).await;
    let relays = [stores.start_relay(), stores.start_relay()];
    for day in (0..4).rev() {
        for account in &tenant.accounts {
            let at = harness::now() - TimeDelta::days(day);
            scrape_at(stores.pg(), tenant.id, *account, 3, 400 - 100 * day, at).await;
        }
    }
    let rebuild_task = {
        let (databases, id) = (stores.databases.clone(), tenant.id);
        tokio::spawn(async move {
            for _ in 0..4 {
                rebuild::rebuild(&databases, &[id], false).await.unwrap();
            }
        })
    };
    for account in &tenant.accounts[..5] {
        delete_account(stores.pg(), tenant.id, *account).await;
        stores.wait_applied(tenant.id).await;
    }
    rebuild_task.await.unwrap();
    stores.wait_applied(tenant.id).await;
    assert_rollup(&stores, &tenant, Some(3 * 300)).await;
    for relay in relays {
        relay.stop().await;
    }
}
