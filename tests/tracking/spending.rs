//! What tracking costs and how its queues stand: the day's budget of a source, and what the commands say.

use chrono::{TimeDelta, Utc};
use tidemark::model::platform::Platform;
use tidemark::store::tracking::queues;
use tidemark::store::tracking::source_budgets;
use tidemark::store::tracking::source_pauses;
use tidemark::worker::budget;

use crate::faults::Log;
use crate::harness::wait_until;
use crate::own::Own;

const RESEARCH: &str = "tiktok-research";

#[tokio::test]
async fn a_day_has_one_budget_for_all_processes_whenever_they_started() {
    let own = Own::start_with(&["--tiktok-sources=tiktok-research"]).await;
    let today = own.stores.clock.now().await.date_naive();
    let spend = async || source_budgets::try_spend(own.pg(), RESEARCH, today, 50).await.unwrap();
    let spent = futures_util::future::join_all((0..60).map(|_| spend())).await;
    assert_eq!(spent.into_iter().filter(|spent| *spent).count(), 50);
    assert!(!source_budgets::try_spend(own.pg(), RESEARCH, today, 0).await.unwrap());

    // A process that starts now finds the day's budget used up, and goes on the next day.
    sqlx::query("update source_requests set requests = 1000").execute(own.pg()).await.unwrap();
    let organization = own.organization().await;
    let account = own.add(organization, Platform::Tiktok, &own.names(Platform::Tiktok)[0]).await;
    own.run(1);
    let pause =
        wait_until("the queue rests", async || source_pauses::fetch_all(own.pg()).await.unwrap().pop()).await;
    assert_eq!(pause.until.date_naive(), today.succ_opt().unwrap());
    assert_eq!(own.requests(Platform::Tiktok), 0);
    own.sandbox.world.advance(24.0).unwrap();
    assert_eq!(own.attempted(account).await.failures, 0);
}

#[tokio::test]
async fn a_book_that_cannot_be_written_in_is_no_failure_of_the_account() {
    let own = Own::start_with(&["--tiktok-sources=tiktok-research"]).await;
    let organization = own.organization().await;
    let account = own.add(organization, Platform::Tiktok, &own.names(Platform::Tiktok)[0]).await;
    let mut held = own.pg().begin().await.unwrap();
    sqlx::query("lock table source_requests").execute(&mut *held).await.unwrap();
    let (log, _listening) = Log::listen();
    own.run(1);
    wait_until("the attempt is given up", async || {
        log.take().iter().any(|line| line.contains("requests cannot be counted")).then_some(())
    })
    .await;
    let target = own.target(account).await;
    assert_eq!((target.failures, target.last_error, target.last_attempt_at), (0, None, None));
    assert_eq!(own.requests(Platform::Tiktok), 0);

    // It stays due, and is read once its lease has run out.
    assert!(target.next_attempt_at <= own.stores.clock.now().await && target.lease_owner.is_some());
    held.rollback().await.unwrap();
    own.execute("update scrape_targets set lease_until = now() where id = $1", account).await;
    let target = own.attempted(account).await;
    assert_eq!((target.failures, target.last_error), (0, None));
}

#[tokio::test]
async fn the_status_of_a_queue_says_how_much_is_due_and_how_late() {
    let own = Own::start().await;
    let organization = own.organization().await;
    own.add_backlog(organization, Platform::Tiktok, 10).await;
    sqlx::query(
        "update scrape_targets t set
            enabled = n > 1, failures = case when n in (2, 3) then 1 else 0 end,
            lease_until = case when n = 4 then now() + interval '1 minute' end,
            next_attempt_at = case when n = 5 then now() + interval '1 hour' else now() - interval '2 hours' end
         from (select id, row_number() over () as n from scrape_targets) x where x.id = t.id",
    )
    .execute(own.pg())
    .await
    .unwrap();
    let status = queues::fetch_status(own.pg(), Utc::now()).await.unwrap();
    let [(instagram, of_instagram), (tiktok, of_tiktok)] =
        [0, 1].map(|place| (&status[place].queue, status[place].targets));
    assert_eq!((instagram.platform, of_instagram, instagram.lag_seconds), (Platform::Instagram, 0, 0));
    assert_eq!((of_tiktok, tiktok.due, tiktok.leased, tiktok.failing), (9, 7, 1, 2));
    assert!((7200..7300).contains(&tiktok.lag_seconds), "{tiktok:?}");
}

#[tokio::test]
async fn an_account_costs_once_however_many_organizations_track_it() {
    let own = Own::start().await;
    for hours in [24, 12] {
        let organization = own.organization().await;
        for name in ["some.one", "some.other"] {
            let id = own.add(organization, Platform::Instagram, name).await;
            sqlx::query("update accounts set scrape_interval_hours = $2 where id = $1")
                .bind(id)
                .bind(hours)
                .execute(own.pg())
                .await
                .unwrap();
        }
        own.add(organization, Platform::Tiktok, "some.one").await;
    }
    let now = Utc::now() + TimeDelta::seconds(1);
    let budgets = budget::estimate(own.pg(), &own.sources, now).await.unwrap();
    let said: Vec<_> = budgets
        .iter()
        .map(|budget| (budget.source, budget.accounts, budget.requests_per_day, budget.daily_limit))
        .collect();
    // Instagram: one page twice a day. TikTok: the profile and one window of days daily, older ones seldom.
    assert_eq!(said[0], ("http", 0, 0.0, None));
    assert_eq!(said[1], ("instagram-graph", 2, 4.0, None));
    assert_eq!(said[2], (RESEARCH, 1, 2.6, Some(1000)));
    assert_eq!(budgets[2].requests_today, Some(0));
}
