//! Organizations that track the same account share the platform's answer when both are due.

use std::collections::BTreeSet;

use tidemark::model::platform::Platform;
use tidemark::platforms::source::{AccountKey, Depth};
use tidemark::store::tracking::leases::{self, LeaseOrder, LeaseRequest};
use uuid::Uuid;

use crate::own::Own;

#[tokio::test]
async fn one_answer_serves_every_organization_that_is_due() {
    for platform in Platform::ALL {
        let own = Own::start().await;
        let name = own.names(platform)[0].clone();
        // What one read costs.
        let now = own.stores.clock.now().await;
        let depth = Depth { max_posts: 500, not_before: now.date_naive() - chrono::Days::new(365) };
        let key = AccountKey { username: name.clone(), platform_id: None };
        // The first request of all fetches the token that TikTok wants.
        own.sources.fetch_account(platform, &key, depth, now, &[]).await.result.unwrap();
        let before = own.requests(platform);
        own.sources.fetch_account(platform, &key, depth, now, &[]).await.result.unwrap();
        let cost = own.requests(platform) - before;

        let before = own.requests(platform);
        let mut accounts = Vec::new();
        for posts in [500, 50, 60] {
            let organization = own.organization().await;
            let id = own.add(organization, platform, &name).await;
            sqlx::query("update accounts set max_recent_posts = $2 where id = $1")
                .bind(id)
                .bind(posts)
                .execute(own.pg())
                .await
                .unwrap();
            accounts.push((id, posts));
        }
        own.run(2);
        for (id, posts) in &accounts {
            assert_eq!(own.attempted(*id).await.failures, 0);
            let kept: i64 = own.read("select count(*) from videos where account_id = $1", *id).await;
            assert!(kept > 0 && kept <= i64::from(*posts), "{kept} posts of at most {posts}");
        }
        assert_eq!(own.requests(platform) - before, cost, "one read, {} commits", accounts.len());

        // Once the platform's id is known, they still share.
        let before = own.requests(platform);
        own.sandbox.world.advance(25.0).unwrap();
        for (id, _) in &accounts {
            crate::harness::wait_until("the next day's scrape is in", async || {
                let target = own.target(*id).await;
                (target.last_attempt_at.unwrap() > now + chrono::TimeDelta::hours(20)).then_some(())
            })
            .await;
        }
        let next = own.requests(platform) - before;
        assert!((1..=cost).contains(&next), "{next} requests for the next day, {cost} for the first");
    }
}

/// However many organizations track an account, one slot is not busy with them for ever.
#[tokio::test]
async fn one_answer_serves_a_hundred_others_at_most() {
    let own = Own::start().await;
    let platform = Platform::Tiktok;
    let name = own.names(platform)[0].clone();
    let mut added = BTreeSet::new();
    for _ in 0..130 {
        let organization = own.organization().await;
        added.insert(own.add(organization, platform, &name).await);
    }
    let demand = LeaseRequest {
        owner: Uuid::now_v7(),
        platform,
        now: own.stores.clock.now().await,
        kind: None,
        limit: 1,
        order: LeaseOrder::OldestFirst,
        after_organization: Uuid::nil(),
        in_flight: &[],
    };
    let (first, _) = leases::lease(own.pg(), demand).await.unwrap();
    let mut taken: Vec<_> = first.iter().map(|leased| leased.id).collect();
    assert_eq!(taken.len(), 1);
    for expected in [100, 29, 0] {
        let alike = leases::lease_same_accounts(own.pg(), demand, &first).await.unwrap();
        assert_eq!(alike.len(), expected);
        taken.extend(alike.into_iter().map(|leased| leased.id));
    }
    assert_eq!(taken.len(), 130);
    assert_eq!(BTreeSet::from_iter(taken), added);
}
