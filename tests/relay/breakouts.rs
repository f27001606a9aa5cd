//! Breakouts: posts are compared once their views at an age are known, each is reported once, and others than news are not.

use std::fs::File;
use std::sync::Arc;

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use harness::relay::{Tenant, observed_post, scrape_profile_at};
use harness::{IsolatedStores, wait_until};
use sandbox::population::Population;
use sandbox::server::start;
use sandbox::world::World;
use serde_json::{Value, json};
use tidemark::store::Write;
use tidemark::store::observations::{VideoOrigin, save_videos};
use tidemark::worker::breakouts;

use crate::recovery::seed;

/// An account with twelve posts that had 100 views at each age, as an import stored them, and one scrape.
struct Account {
    stores: IsolatedStores,
    tenant: Tenant,
    now: DateTime<Utc>,
}

impl Account {
    async fn create() -> Self {
        let stores = IsolatedStores::create().await;
        let tenant = stores.create_tenant(1).await;
        let account = Account { stores, tenant, now: harness::now() };
        for post in 0..12 {
            for day in [30, 29, 27, 23] {
                account.observe(&format!("1{post:03}"), 100, (30, day), false).await;
            }
        }
        let at = account.at(10);
        scrape_profile_at(account.stores.pg(), account.tenant.id, account.tenant.accounts[0], "Tide", at)
            .await;
        account
    }

    fn at(&self, days_ago: i64) -> DateTime<Utc> {
        self.now - TimeDelta::days(days_ago)
    }

    /// Observes a post so many days after it was posted, both in days ago.
    async fn observe(&self, post: &str, views: i64, (posted, observed): (i64, i64), is_scrape: bool) {
        let at = self.at(observed);
        let mut video =
            observed_post(VideoOrigin::Account(self.tenant.accounts[0]), post.to_owned(), views, at);
        video.latest.create_time.record(Some(self.at(posted)), at);
        video.latest.media_type.record(Some("VIDEO".to_owned()), at);
        video.scraped_at = is_scrape.then_some(at);
        let mut write = Write::begin(self.stores.pg(), self.tenant.id).await.unwrap();
        save_videos(&mut write, at, vec![video]).await.unwrap();
        write.commit().await.unwrap();
    }

    async fn find(&self) -> Vec<Value> {
        breakouts::find(&self.stores.databases).await.unwrap();
        self.reported().await
    }

    async fn reported(&self) -> Vec<Value> {
        let found: Vec<Value> =
            sqlx::query_scalar("select data from events where type = 'video.breakout' order by id")
                .fetch_all(self.stores.pg())
                .await
                .unwrap();
        let found = found.into_iter().map(|data| {
            json!([
                data["video"]["external_id"],
                data["age_days"],
                data["actual"],
                data["baseline"],
                data["multiple"]
            ])
        });
        found.collect()
    }

    async fn candidates(&self) -> i64 {
        sqlx::query_scalar("select count(*) from breakout_candidates")
            .fetch_one(self.stores.pg())
            .await
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn breakouts_are_reported_once_their_views_are_known() {
    let account = Account::create().await;
    // Posts of four days ago, one observed on each of the following days, one late, and two that are no breakouts yet.
    for post in ["21", "22", "23", "24"] {
        account.observe(post, 10, (4, 4), true).await;
    }
    account.observe("21", 500, (4, 3), true).await;
    account.observe("23", 200, (4, 3), true).await;
    account.observe("24", 200, (4, 3), true).await;
    account.observe("24", 1_000, (4, 1), true).await;
    let relay = account.stores.start_relay();
    let one = json!(["21", 1, 500, 100.0, 5.0]);
    let three = json!(["24", 3, 1_000, 100.0, 10.0]);
    assert_eq!(account.find().await.len(), 2);
    assert_eq!(account.find().await, [one.clone(), three.clone()]);
    assert_eq!(account.candidates().await, 2, "one waits for its views, one for its next age");
    // Interpolated between days 4 and 1, at age 1: no breakout; at age 3 there is one.
    account.observe("22", 500, (4, 1), true).await;
    let (first, second) = tokio::join!(account.find(), account.find());
    let expected = vec![one, three, json!(["22", 3, 500, 100.0, 5.0])];
    assert!(first.len().max(second.len()) <= 3);
    assert_eq!(account.find().await, expected);
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_and_the_first_scrape_report_no_breakouts() {
    let account = Account::create().await;
    assert_eq!(account.candidates().await, 0, "the history of an import is old");
    // Imported every day.
    for day in [8, 7, 5, 1] {
        account.observe("31", 900, (8, day), false).await;
    }
    assert_eq!(account.candidates().await, 0);
    // Found young by an import, and scraped when it reaches the next age.
    account.observe("32", 10, (5, 5), false).await;
    account.observe("32", 900, (5, 4), false).await;
    account.observe("32", 900, (5, 2), true).await;
    let relay = account.stores.start_relay();
    assert_eq!(account.find().await, [json!(["32", 3, 900, 100.0, 9.0])]);
    relay.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn breakouts_are_found_within_a_minute() {
    let account = Account::create().await;
    // At midnight, the views of a post at one day are known.
    account.observe("61", 10, (1, 1), true).await;
    account.observe("61", 500, (1, 0), true).await;
    account.observe("62", 10, (4, 4), true).await;
    let midnight = (account.now.date_naive() + Days::new(1)).and_time(NaiveTime::MIN).and_utc();
    let world =
        World::open(Population::new(seed(), 1), None, Some(midnight - TimeDelta::seconds(1))).unwrap();
    world.stop_clock().unwrap();
    let sandbox = start(([127, 0, 0, 1], 0).into(), Arc::new(world)).await.unwrap();
    let tracker = account.stores.track(&[("TIDEMARK_CLOCK_URL", format!("{}/_clock", sandbox.url))]);
    assert_eq!(tracker.page("/livez").await.0, 200);
    assert_eq!(account.reported().await, Vec::<Value>::new());
    // Each wait ends after half a minute.
    let wait_reported = async |count: usize| {
        let reported = async || Some(account.reported().await).filter(|reported| reported.len() == count);
        wait_until(&format!("{count} breakouts are reported"), reported).await
    };
    sandbox.world.advance(2.0 / 3600.0).unwrap();
    let at_midnight = json!(["61", 1, 500, 100.0, 5.0]);
    assert_eq!(wait_reported(1).await, std::slice::from_ref(&at_midnight));
    // A late scrape makes views known.
    account.observe("62", 500, (4, 1), true).await;
    assert_eq!(wait_reported(2).await, [at_midnight, json!(["62", 3, 500, 100.0, 5.0])]);
}

/// Where the job is killed: after each step of a batch, committed or not.
const STEPS: [&str; 5] =
    ["breakouts-settled", "breakouts-found", "events-appended", "write-committed", "breakouts-reported"];

#[tokio::test(flavor = "multi_thread")]
async fn killed_job_loses_and_repeats_no_breakout() {
    let account = Account::create().await;
    let armed = tempfile::tempdir().unwrap();
    let environment = [("TIDEMARK_FAILPOINTS", armed.path().display().to_string())];
    let mut expected = Vec::new();
    for (n, step) in STEPS.into_iter().enumerate() {
        let (breakout, other) = (format!("4{n}"), format!("5{n}"));
        for (post, views) in [(&breakout, 500), (&other, 20)] {
            account.observe(post, 10, (4, 4), true).await;
            account.observe(post, views, (4, 3), true).await;
        }
        File::create(armed.path().join(step)).unwrap();
        let mut tracker = account.stores.track(&environment);
        assert_eq!(tracker.wait().await, None, "{step}: {}", tracker.log());
        assert!(!armed.path().join(step).exists(), "{step} was not reached");
        // Events and marks are committed together: all that were found until now, or none.
        let is_candidate: bool = sqlx::query_scalar(
            "select exists (select from breakout_candidates c join videos v on v.id = c.video_id where external_id = $1)",
        )
        .bind(&breakout)
        .fetch_one(account.stores.pg())
        .await
        .unwrap();
        expected.push(json!([breakout, 1, 500, 100.0, 5.0]));
        let is_committed = n >= 3;
        let reported = if is_committed { expected.clone() } else { Vec::new() };
        assert_eq!((account.reported().await, is_candidate), (reported, !is_committed), "{step}");
    }
    let relay = account.stores.start_relay();
    assert_eq!(account.find().await, expected);
    relay.stop().await;
    assert_eq!(account.candidates().await, 5, "the others wait for their views at three days");
}
