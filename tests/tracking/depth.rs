//! How deep a scrape reads: the newest posts always, older ones weekly, the oldest monthly, also when the platform no
//! longer returns them.

use chrono::{DateTime, Days, NaiveDate, Utc};
use tidemark::model::platform::Platform;
use tidemark::store::Write;
use tidemark::store::tracking::scrapes;
use tidemark::store::tracking::targets::{self, AttemptResult};
use uuid::Uuid;

use crate::test_tracker::TestTracker;

struct Account<'a> {
    tracker: &'a TestTracker,
    organization: Uuid,
    id: Uuid,
}

impl Account<'_> {
    /// Records a scrape at this time and returns how many days back it reads.
    async fn scrape(&self, now: DateTime<Utc>) -> u64 {
        let pg = self.tracker.pg();
        let account = scrapes::fetch_account(pg, self.organization, self.id, now).await.unwrap().unwrap();
        let owner = Uuid::now_v7();
        sqlx::query("update scrape_targets set lease_owner = $2 where id = $1")
            .bind(self.id)
            .bind(owner)
            .execute(pg)
            .await
            .unwrap();
        let mut write = Write::begin(pg, self.organization).await.unwrap();
        let attempt = AttemptResult {
            at: now,
            ended_at: now,
            retry_delay: None,
            failure: None,
            failures: 0,
            not_found_runs: 0,
            deep_reads: account.deep_reads,
        };
        assert!(targets::finish_attempt(&mut write, owner, self.id, attempt).await.unwrap().is_some());
        sqlx::query("update accounts set first_scrape_time = coalesce(first_scrape_time, $2), last_scrape_time = $2 where id = $1")
            .bind(self.id)
            .bind(now)
            .execute(write.connection())
            .await
            .unwrap();
        write.commit().await.unwrap();
        (now.date_naive() - account.not_before).num_days() as u64
    }

    /// Adds a post that the platform no longer returns.
    async fn add_post(&self, day: NaiveDate) {
        sqlx::query(
            "insert into videos (id, subject_id, organization_id, platform, external_id, account_id, create_time,
                added_at, updated_at, last_scrape_time)
             select gen_random_uuid(), internal_id, organization_id, platform, $2, id, $3, now(), now(), $3
             from accounts where id = $1",
        )
        .bind(self.id)
        .bind(day.to_string())
        .bind(day.and_hms_opt(12, 0, 0).unwrap().and_utc())
        .execute(self.tracker.pg())
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn missing_posts_do_not_keep_scrapes_deep() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let id = tracker.add_account(organization, Platform::Tiktok, "some.one").await;
    let account = Account { tracker: &tracker, organization, id };
    let first = harness::now();
    assert_eq!(account.scrape(first).await, 365, "the first scrape reads to the limit");
    for days in [40, 200] {
        account.add_post(first.date_naive() - Days::new(days)).await;
    }
    let mut depths = Vec::new();
    for day in 1..=31 {
        depths.push(account.scrape(first + Days::new(day)).await);
    }
    let expected: Vec<u64> = (1..=31)
        .map(|day| match day {
            7 | 14 | 21 | 28 => 90,
            // To the oldest recorded post.
            30 => 230,
            _ => 14,
        })
        .collect();
    assert_eq!(depths, expected);
}

#[tokio::test]
async fn scrape_after_a_pause_reads_back_to_the_last_one() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let id = tracker.add_account(organization, Platform::Tiktok, "some.one").await;
    let account = Account { tracker: &tracker, organization, id };
    let first = harness::now();
    account.scrape(first).await;
    assert_eq!(account.scrape(first + Days::new(60)).await, 60);
}
