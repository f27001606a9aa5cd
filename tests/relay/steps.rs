//! One delivery after another, of every kind: after each, all rollups match the snapshots.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use harness::IsolatedStores;
use harness::relay::{Tenant, delete_account, scrape_posted, scrape_profile_at, track_individually};
use tidemark::rollup::{rebuild, verify};
use tidemark::store::observations::AccountRef;
use tidemark::store::outbox::{self, BlockedOrganizations};

use crate::model::Random;
use crate::recovery::seed;

const STEPS: usize = 50;
const POSTS: i64 = 5;

/// Commits a change: mostly scrapes, of today or days late, that repeat or take back gains, and learn or correct when posts were
/// posted.
async fn change(
    stores: &IsolatedStores,
    tenant: &Tenant,
    live: &mut Vec<AccountRef>,
    random: &mut Random,
    now: DateTime<Utc>,
) -> String {
    let account = live[random.below(live.len() as i64) as usize];
    let days = if random.chance(50) { 0 } else { random.below(40) };
    let at = now - TimeDelta::days(days) - TimeDelta::milliseconds(random.below(1_000));
    match random.below(12) {
        0 => {
            scrape_profile_at(stores.pg(), tenant.id, account, "profile", at).await;
            format!("profile {days} days ago")
        }
        1 => {
            let post = format!("{}{:06}", account.subject_id, random.below(POSTS));
            track_individually(stores.pg(), tenant.id, &post, at).await;
            format!("post {post} is tracked")
        }
        2 if live.len() > 2 => {
            live.retain(|other| other.id != account.id);
            delete_account(stores.pg(), tenant.id, account).await;
            format!("account {} is deleted", account.subject_id)
        }
        _ => {
            let (posts, views) = (1 + random.below(POSTS) as usize, 100 + 10 * random.below(4));
            let posted = random.chance(70).then(|| now - TimeDelta::days(random.below(45)));
            scrape_posted(stores.pg(), tenant.id, account, (posts, views), at, posted).await;
            format!("{posts} posts with {views} views {days} days ago, posted at {posted:?}")
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rollups_match_after_each_delivery() {
    let stores = IsolatedStores::create().await;
    let tenant = stores.create_tenant(4).await;
    let (seed, now) = (seed(), harness::now().trunc_subsecs(6));
    let (mut random, mut live) = (Random(seed), tenant.accounts.clone());
    let mut relay = Some(stores.start_relay());
    let mut steps = Vec::new();
    for _ in 0..STEPS {
        // An attempt that was aborted before its first statement is repeated, with all days.
        let is_aborted = random.chance(10);
        if is_aborted && let Some(running) = relay.take() {
            running.stop().await;
        }
        steps.push(change(&stores, &tenant, &mut live, &mut random, now).await);
        if is_aborted {
            let mut connection = stores.pg().acquire().await.unwrap();
            let mut blocked = BlockedOrganizations::default();
            outbox::begin_delivery(&mut connection, i64::MAX, &mut blocked).await.unwrap();
            drop(connection);
            relay = Some(stores.start_relay());
            steps.push("aborted once".to_owned());
        }
        stores.wait_applied(tenant.id).await;
        let report = verify::verify(&stores.databases, tenant.id, false).await.unwrap();
        assert_eq!(report.differences, [], "seed {seed}: {steps:#?}");
    }
    let before = stores.clickhouse_state(tenant.id).await;
    rebuild::rebuild(&stores.databases, &[tenant.id], false).await.unwrap();
    assert_eq!(stores.clickhouse_state(tenant.id).await, before, "seed {seed}: {steps:#?}");
    if let Some(running) = relay {
        running.stop().await;
    }
}
