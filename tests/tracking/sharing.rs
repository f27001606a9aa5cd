//! Organizations that track the same account share one response of the platform when their targets are due.

use std::collections::BTreeSet;

use harness::wait_until;
use tidemark::model::platform::Platform;
use tidemark::platforms::source::{AccountKey, Depth};
use tidemark::store::tracking::leases;

use crate::test_tracker::TestTracker;

#[tokio::test]
async fn one_response_serves_all_organizations_that_are_due() {
    for platform in Platform::ALL {
        let tracker = TestTracker::start().await;
        let name = tracker.usernames(platform)[0].clone();
        // Count the requests of one fetch.
        let now = tracker.databases.clock.now().await;
        let depth = Depth { max_posts: 500, not_before: now.date_naive() - chrono::Days::new(365) };
        let key = AccountKey { username: name.clone(), platform_id: None };
        // The first fetch also requests a token from TikTok.
        tracker.sources.fetch_account(platform, &key, depth, now, &[]).await.result.unwrap();
        let before = tracker.request_count(platform);
        tracker.sources.fetch_account(platform, &key, depth, now, &[]).await.result.unwrap();
        let cost = tracker.request_count(platform) - before;

        let before = tracker.request_count(platform);
        let mut accounts = Vec::new();
        for posts in [500, 50, 60] {
            let organization = tracker.create_organization().await;
            let id = tracker.add_account(organization, platform, &name).await;
            sqlx::query("update accounts set max_recent_posts = $2 where id = $1")
                .bind(id)
                .bind(posts)
                .execute(tracker.pg())
                .await
                .unwrap();
            accounts.push((id, posts));
        }
        tracker.run(2);
        for (id, posts) in &accounts {
            assert_eq!(tracker.wait_attempted(*id).await.failures, 0);
            let recorded: i64 = tracker.fetch("select count(*) from videos where account_id = $1", *id).await;
            assert!(recorded > 0 && recorded <= i64::from(*posts), "{recorded} of at most {posts} posts");
        }
        assert_eq!(
            tracker.request_count(platform) - before,
            cost,
            "one fetch for {} organizations",
            accounts.len()
        );

        // They still share once the platform id is recorded.
        let before = tracker.request_count(platform);
        tracker.sandbox.world.advance(25.0).unwrap();
        for (id, _) in &accounts {
            wait_until("the next day's scrape is recorded", async || {
                let target = tracker.target(*id).await;
                (target.last_attempt_at.unwrap() > now + chrono::TimeDelta::hours(20)).then_some(())
            })
            .await;
        }
        let next = tracker.request_count(platform) - before;
        assert!((1..=cost).contains(&next), "{next} requests on the next day, {cost} on the first");
    }
}

#[tokio::test]
#[ignore = "waits for the end of retries: make test-deep"]
async fn conflict_of_one_organization_keeps_no_response_from_others() {
    let tracker = TestTracker::start().await;
    let platform = Platform::Instagram;
    let names = tracker.usernames(platform);
    // The response is recorded for the organization with the lower id first.
    let (first, second) = (tracker.create_organization().await, tracker.create_organization().await);
    assert!(first < second);
    let accounts = [
        tracker.add_account(first, platform, &names[0]).await,
        tracker.add_account(second, platform, &names[0]).await,
    ];
    let partner = tracker.add_account(first, platform, &names[1]).await;
    tracker.execute("update scrape_targets set enabled = false where id = $1", partner).await;
    tracker.run(2);
    for account in accounts {
        tracker.wait_attempted(account).await;
    }
    let start = tracker.databases.clock.now().await;
    let is_recorded = async |account| {
        let target = tracker.target(account).await;
        (target.last_attempt_at.unwrap() > start + chrono::TimeDelta::hours(20)).then_some(())
    };

    // A post of both accounts, of which another change holds the partner.
    sqlx::query(
        "update videos v set account_id = p.id, subject_id = p.internal_id from accounts p
         where p.id = $2 and v.id = (select id from videos where account_id = $1 order by create_time desc limit 1)",
    )
    .bind(accounts[0])
    .bind(partner)
    .execute(tracker.pg())
    .await
    .unwrap();
    let lock = tracker.lock_account(first, partner).await;
    tracker.sandbox.world.advance(25.0).unwrap();
    wait_until("the other organization's scrape is recorded", || is_recorded(accounts[1])).await;
    assert_eq!(is_recorded(accounts[0]).await, None);
    drop(lock);
    wait_until("the scrape is recorded", || is_recorded(accounts[0])).await;
    assert_eq!(tracker.target(accounts[0]).await.failures, 0);
}

#[tokio::test]
async fn one_response_serves_at_most_100_other_targets() {
    let tracker = TestTracker::start().await;
    let platform = Platform::Tiktok;
    let name = tracker.usernames(platform)[0].clone();
    let mut added = BTreeSet::new();
    for _ in 0..130 {
        let organization = tracker.create_organization().await;
        added.insert(tracker.add_account(organization, platform, &name).await);
    }
    let request = tracker.lease_request(platform, 1).await;
    let (first, _) = leases::lease(tracker.pg(), request).await.unwrap();
    let mut leased: Vec<_> = first.iter().map(|target| target.id).collect();
    assert_eq!(leased.len(), 1);
    for expected in [100, 29, 0] {
        let same = leases::lease_same_accounts(tracker.pg(), request, &first).await.unwrap();
        assert_eq!(same.len(), expected);
        leased.extend(same.into_iter().map(|target| target.id));
    }
    assert_eq!(leased.len(), 130);
    assert_eq!(BTreeSet::from_iter(leased), added);
}
