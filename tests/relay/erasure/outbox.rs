//! Purge of deleted subjects' snapshots from the outbox, for several organizations in one scan.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use harness::IsolatedStores;
use tidemark::store::lifecycle::outbox::SnapshotPurge;
use uuid::Uuid;

use super::{erase, outbox_subjects};
use harness::relay::{Tenant, delete_account, scrape_at};

/// Purges the outbox once. Returns the number of rewritten rows, or `None` if there is nothing to purge.
async fn purge(stores: &IsolatedStores, only: Option<Uuid>) -> Option<u64> {
    let mut purge = SnapshotPurge::begin(stores.pg(), only, Uuid::nil()).await.unwrap()?;
    let mut rewritten = 0;
    while let Some(rows) = purge.purge_batch(stores.pg()).await.unwrap() {
        rewritten += rows;
    }
    let after = purge.finish(stores.pg()).await.unwrap();
    assert!(SnapshotPurge::begin(stores.pg(), only, after).await.unwrap().is_none());
    Some(rewritten)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_scan_purges_several_organizations() {
    let stores = IsolatedStores::create().await;
    let mut tenants: Vec<Tenant> = Vec::new();
    for _ in 0..4 {
        tenants.push(stores.create_tenant(2).await);
    }
    for day in [3, 2, 1] {
        for Tenant { id, accounts } in &tenants {
            for account in accounts {
                scrape_at(stores.pg(), *id, *account, 2, 100 - day, harness::now() - TimeDelta::days(day))
                    .await;
            }
        }
    }
    let relay = stores.start_relay();
    let [first, second, third, untouched] = &tenants[..] else { unreachable!() };
    for Tenant { id, accounts } in [first, second, third] {
        delete_account(stores.pg(), *id, accounts[0]).await;
    }
    for Tenant { id, .. } in &tenants {
        stores.wait_applied(*id).await;
    }
    relay.stop().await;
    let subjects = async |tenant: &Tenant| outbox_subjects(&stores, tenant.id).await;
    let all = |tenant: &Tenant| -> BTreeSet<i64> {
        tenant.accounts.iter().map(|account| account.subject_id).collect()
    };
    let remaining = |tenant: &Tenant| BTreeSet::from([tenant.accounts[1].subject_id]);
    for tenant in &tenants {
        assert_eq!(subjects(tenant).await, all(tenant));
    }

    assert_eq!(purge(&stores, Some(untouched.id)).await, None);
    assert_eq!(purge(&stores, Some(first.id)).await, Some(3));
    assert_eq!((subjects(first).await, subjects(second).await), (remaining(first), all(second)));
    assert_eq!(purge(&stores, None).await, Some(6));
    assert_eq!((subjects(second).await, subjects(third).await), (remaining(second), remaining(third)));
    assert_eq!(subjects(untouched).await, all(untouched));
    assert_eq!(purge(&stores, None).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_continues_beyond_one_batch_of_organizations() {
    let stores = IsolatedStores::create().await;
    sqlx::query(
        "insert into removed_subjects (organization_id, subject_id, delivery)
         select gen_random_uuid(), n, 0 from generate_series(1, 2500) n",
    )
    .execute(stores.pg())
    .await
    .unwrap();
    erase(&stores).await;
    let erased: i64 = sqlx::query_scalar("select count(*) from removed_subjects where erased_at is not null")
        .fetch_one(stores.pg())
        .await
        .unwrap();
    assert_eq!(erased, 2500);
}
