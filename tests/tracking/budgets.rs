//! Daily request budgets of sources, their estimates, and the status of queues.

use std::sync::Arc;

use chrono::{Days, TimeDelta};
use harness::{CapturedLog, wait_until};
use serde_json::json;
use tidemark::model::platform::Platform;
use tidemark::platforms::http_client::RequestLimits;
use tidemark::platforms::http_source::{HttpSource, HttpSourceConfig};
use tidemark::platforms::source::{AccountKey, Depth, Source};
use tidemark::platforms::{RateThrottle, RequestBudget, Sources};
use tidemark::store::tracking::queues;
use tidemark::store::tracking::source_budgets;
use tidemark::store::tracking::source_pauses;
use tidemark::worker::budget;

use crate::canned::{self, CannedServer};
use crate::test_tracker::TestTracker;

const RESEARCH: &str = "tiktok-research";

#[tokio::test]
async fn processes_share_one_budget_per_day() {
    let tracker = TestTracker::start_with(&["--tiktok-sources=tiktok-research"]).await;
    let today = tracker.databases.clock.now().await.date_naive();
    let spend = async || source_budgets::try_spend(tracker.pg(), RESEARCH, today, 50).await.unwrap();
    let spent = futures_util::future::join_all((0..60).map(|_| spend())).await;
    assert_eq!(spent.into_iter().filter(|spent| *spent).count(), 50);
    assert!(!source_budgets::try_spend(tracker.pg(), RESEARCH, today, 0).await.unwrap());

    // A new process finds the budget spent and continues on the next day.
    sqlx::query("update source_requests set requests = 1000").execute(tracker.pg()).await.unwrap();
    let organization = tracker.create_organization().await;
    let account =
        tracker.add_account(organization, Platform::Tiktok, &tracker.usernames(Platform::Tiktok)[0]).await;
    tracker.run(1);
    let pause = wait_until("the source is paused", async || {
        source_pauses::fetch_all(tracker.pg()).await.unwrap().pop()
    })
    .await;
    assert_eq!(pause.until.date_naive(), today.succ_opt().unwrap());
    assert_eq!(tracker.request_count(Platform::Tiktok), 0);
    tracker.sandbox.world.advance(24.0).unwrap();
    assert_eq!(tracker.wait_attempted(account).await.failures, 0);
}

#[tokio::test]
async fn budget_that_cannot_be_counted_fails_no_account() {
    let tracker = TestTracker::start_with(&["--tiktok-sources=tiktok-research"]).await;
    let organization = tracker.create_organization().await;
    let account =
        tracker.add_account(organization, Platform::Tiktok, &tracker.usernames(Platform::Tiktok)[0]).await;
    let mut holder = tracker.pg().begin().await.unwrap();
    sqlx::query("lock table source_requests").execute(&mut *holder).await.unwrap();
    let (log, _guard) = CapturedLog::start("tidemark=warn");
    tracker.run(1);
    wait_until("the attempt is aborted", async || {
        log.take().iter().any(|line| line.contains("requests cannot be counted")).then_some(())
    })
    .await;
    let target = tracker.target(account).await;
    assert_eq!((target.failures, target.last_error, target.last_attempt_at), (0, None, None));
    assert_eq!(tracker.request_count(Platform::Tiktok), 0);

    // It stays due and is scraped when its lease has expired.
    assert!(target.next_attempt_at <= tracker.databases.clock.now().await && target.lease_owner.is_some());
    holder.rollback().await.unwrap();
    tracker.execute("update scrape_targets set lease_until = now() where id = $1", account).await;
    let target = tracker.wait_attempted(account).await;
    assert_eq!((target.failures, target.last_error), (0, None));
}

#[tokio::test]
async fn queue_status_has_due_targets_and_lag() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    tracker.add_due_accounts(organization, Platform::Tiktok, 10).await;
    sqlx::query(
        "update scrape_targets t set
            enabled = n > 1, failures = case when n in (2, 3) then 1 else 0 end,
            lease_until = case when n = 4 then now() + interval '1 minute' end,
            next_attempt_at = case when n = 5 then service_now() + interval '1 hour' else service_now() - interval '2 hours' end
         from (select id, row_number() over () as n from scrape_targets) x where x.id = t.id",
    )
    .execute(tracker.pg())
    .await
    .unwrap();
    let status = queues::fetch_status(tracker.pg(), harness::now()).await.unwrap();
    let [(instagram, instagram_targets), (tiktok, tiktok_targets)] =
        [0, 1].map(|n| (&status[n].queue, status[n].targets));
    assert_eq!((instagram.platform, instagram_targets, instagram.lag_seconds), (Platform::Instagram, 0, 0));
    assert_eq!((tiktok_targets, tiktok.due, tiktok.leased, tiktok.failing), (9, 7, 1, 2));
    assert!((7200..7300).contains(&tiktok.lag_seconds), "{tiktok:?}");
}

#[tokio::test]
async fn account_costs_once_for_all_organizations() {
    let tracker = TestTracker::start().await;
    for hours in [24, 12] {
        let organization = tracker.create_organization().await;
        for name in ["some.one", "some.other"] {
            let id = tracker.add_account(organization, Platform::Instagram, name).await;
            sqlx::query("update accounts set scrape_interval_hours = $2 where id = $1")
                .bind(id)
                .bind(hours)
                .execute(tracker.pg())
                .await
                .unwrap();
        }
        tracker.add_account(organization, Platform::Tiktok, "some.one").await;
    }
    let now = harness::now() + TimeDelta::seconds(1);
    let budgets = budget::estimate(tracker.pg(), &tracker.sources, now).await.unwrap();
    let estimates: Vec<_> = budgets
        .iter()
        .map(|budget| (budget.source, budget.accounts, budget.requests_per_day, budget.daily_limit))
        .collect();
    // Instagram: one page twice a day. TikTok: the profile and one window of days daily, older windows less often.
    assert_eq!(estimates[0], ("http", 0, 0.0, None));
    assert_eq!(estimates[1], ("instagram-graph", 2, 4.0, None));
    assert_eq!(estimates[2], (RESEARCH, 1, 2.6, Some(1000)));
    assert_eq!(budgets[2].requests_today, Some(0));
}

#[tokio::test]
async fn collector_is_priced_by_the_pages_that_it_delivers() {
    let tracker = TestTracker::start().await;
    let organization = tracker.create_organization().await;
    let account = tracker.add_account(organization, Platform::Tiktok, "some.one").await;
    let now = harness::now();
    let page = |n: u64, days_ago: u64| {
        let create_time = (now - Days::new(days_ago)).to_rfc3339();
        let posts: Vec<_> =
            (0..10).map(|m| json!({"id": format!("{n}{m}"), "create_time": create_time})).collect();
        canned::json(200, &json!({"profile": {}, "posts": posts, "next": n.to_string()}))
    };
    // Twenty posts on two pages, and one of older posts, because it ignores `not_before`.
    let server = CannedServer::start(vec![page(1, 1), page(2, 2), page(3, 90)]).await;
    let throttle = RateThrottle::new("http", 1, None, RequestBudget::Postgres(tracker.pg().clone()));
    let config = HttpSourceConfig {
        base: server.url.clone(),
        token: None,
        throttle,
        limits: RequestLimits::default(),
    };
    let source = Arc::new(HttpSource::new(config, Platform::Tiktok).unwrap());
    let sources = Sources::new(vec![source.clone() as Arc<dyn Source>]);
    sqlx::query(
        "insert into videos
            (id, subject_id, organization_id, platform, account_id, external_id, create_time, added_at, updated_at)
         select gen_random_uuid(), internal_id, organization_id, platform, id, n::text, service_now() - interval '1 day', now(), now()
         from accounts, generate_series(1, 20) n where id = $1",
    )
    .bind(account)
    .execute(tracker.pg())
    .await
    .unwrap();
    let estimate = async || {
        budget::estimate(tracker.pg(), &sources, now + TimeDelta::seconds(1)).await.unwrap()[0]
            .requests_per_day
    };
    assert_eq!(estimate().await, 1.0, "pages of 100 posts are assumed");
    let key = AccountKey { username: "some.one".to_owned(), platform_id: None };
    let depth = Depth { max_posts: 500, not_before: now.date_naive() - Days::new(14) };
    assert_eq!(source.fetch_account(&key, depth, now).await.unwrap().posts.len(), 20);
    assert_eq!((server.requests().len(), estimate().await), (3, 3.0));
}
