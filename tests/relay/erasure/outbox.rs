//! The outbox forgets what organizations deleted, all of them in one walk, and only what they deleted.

use std::collections::BTreeSet;

use chrono::{TimeDelta, Utc};
use tidemark::store::lifecycle::outbox::SnapshotPurge;
use uuid::Uuid;

use super::{erase, kept_subjects};
use crate::harness::IsolatedStores;
use crate::setup::{Tenant, delete_account, scrape_at};

/// Goes through the outbox once, and says how many rows are written anew; none where there is nothing to forget.
async fn walk(stores: &IsolatedStores, of: Option<Uuid>) -> Option<u64> {
    let mut forgetting = SnapshotPurge::begin(stores.pg(), of, Uuid::nil()).await.unwrap()?;
    let mut rewritten = 0;
    while let Some(rows) = forgetting.purge_batch(stores.pg()).await.unwrap() {
        rewritten += rows;
    }
    let after = forgetting.finish(stores.pg()).await.unwrap();
    assert!(SnapshotPurge::begin(stores.pg(), of, after).await.unwrap().is_none());
    Some(rewritten)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_walk_forgets_what_several_organizations_deleted() {
    let stores = IsolatedStores::create().await;
    let mut tenants: Vec<Tenant> = Vec::new();
    for _ in 0..4 {
        tenants.push(stores.create_tenant(2).await);
    }
    for day in [3, 2, 1] {
        for Tenant { id, accounts } in &tenants {
            for account in accounts {
                scrape_at(stores.pg(), *id, *account, 2, 100 - day, Utc::now() - TimeDelta::days(day)).await;
            }
        }
    }
    let relay = stores.start_relay();
    let [first, second, third, whole] = &tenants[..] else { unreachable!() };
    for Tenant { id, accounts } in [first, second, third] {
        delete_account(stores.pg(), *id, accounts[0]).await;
    }
    for Tenant { id, .. } in &tenants {
        stores.wait_applied(*id).await;
    }
    relay.stop().await;
    let kept = async |tenant: &Tenant| kept_subjects(&stores, tenant.id).await;
    let all = |tenant: &Tenant| -> BTreeSet<i64> {
        tenant.accounts.iter().map(|account| account.subject_id).collect()
    };
    let rest = |tenant: &Tenant| BTreeSet::from([tenant.accounts[1].subject_id]);
    for tenant in &tenants {
        assert_eq!(kept(tenant).await, all(tenant));
    }

    assert_eq!(walk(&stores, Some(whole.id)).await, None);
    assert_eq!(walk(&stores, Some(first.id)).await, Some(3));
    assert_eq!((kept(first).await, kept(second).await), (rest(first), all(second)));
    assert_eq!(walk(&stores, None).await, Some(6));
    assert_eq!((kept(second).await, kept(third).await), (rest(second), rest(third)));
    assert_eq!(kept(whole).await, all(whole));
    assert_eq!(walk(&stores, None).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_organizations_than_are_gone_through_together_are_all_gone_through() {
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
