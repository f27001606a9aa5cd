//! Random kills under load: trackers with the relay, the API, ClickHouse and Postgres are killed while accounts are scraped,
//! records change and files are imported. Afterwards all responses match a model in plain loops of what the sandbox recorded
//! as served. Its clock stands still during a day.

mod load;
mod processes;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Days, NaiveDate, Timelike, Utc};
use futures_util::future::join_all;
use harness::{IsolatedStack, Organization, Process, SandboxAccount, Stack};
use sandbox::served::ServedItem;
use serde_json::{Value, json};
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;
use tokio_util::sync::CancellationToken;

use self::processes::{KILL_TARGETS, start_second_tracker};
use crate::agree::{batches_agree, creators_agree, daily_rows_agree, deltas_agree, organization_agrees};
use crate::expected::ExpectedOrganization;
use crate::model::Random;
use crate::recovery::{seed, wait_recovered};
use crate::served::Served;
use crate::video_rollup::video_rollup_agrees;

/// Targets of killed trackers are taken over soon.
const LEASES: (&str, &str) = ("TIDEMARK_TRACK_LEASE_SECONDS", "5");

#[derive(Clone, Copy)]
struct Plan {
    /// After each round all responses are compared, and all processes restarted.
    rounds: usize,
    days: usize,
    kills_per_day: usize,
    /// The maximum pause before a kill.
    max_pause_ms: i64,
    /// Whether a second tracker runs.
    two_trackers: bool,
}

struct KillTest {
    plan: Plan,
    random: Random,
    /// Dropped before the installation, which waits for all processes in its folder.
    second: Option<Process>,
    isolated: IsolatedStack,
    organizations: Vec<ExpectedOrganization>,
    /// Sandbox accounts that are not tracked yet.
    untracked: Vec<SandboxAccount>,
    killed: BTreeMap<&'static str, u32>,
    /// Processes that were killed, or that have to exit, since all were running.
    exiting: Vec<u32>,
    next_target: usize,
    first_day: NaiveDate,
}

impl KillTest {
    async fn begin(plan: Plan, seed: u64) -> Self {
        let isolated = IsolatedStack::start_with_environment(&[LEASES]).await;
        let stack = isolated.clone();
        // Early in the day, so that the test does not reach the next one.
        let now = stack.databases.clock.now().await;
        for operation in [
            json!({"op": "advance", "hours": 26 - now.hour()}),
            json!({"op": "stop"}),
            json!({"op": "record"}),
        ] {
            stack.control_sandbox(operation).await;
        }
        let first_day = stack.databases.clock.now().await.date_naive();
        let mut untracked = stack.connection.sandbox_accounts.clone();
        let mut take = |platform: &str| {
            let index = untracked
                .iter()
                .position(|account| account.platform == platform)
                .expect("the sandbox has one");
            untracked.remove(index)
        };
        let (shared, tiktok, instagram) = (take("tiktok"), take("tiktok"), take("instagram"));
        let options = || OrganizationChange {
            rate_limit: Some(Some(100_000)),
            default_max_recent_posts: Some(50),
            ..OrganizationChange::default()
        };
        let mut organizations = Vec::new();
        for accounts in [vec![shared.clone(), instagram], vec![shared, tiktok]] {
            let organization = stack.organization_with(options(), NewKey::named("test")).await;
            organizations.push(ExpectedOrganization::new(organization, accounts));
        }
        let second = plan.two_trackers.then(|| start_second_tracker(&isolated));
        let mut random = Random(seed);
        let mut test = KillTest {
            plan,
            next_target: random.below(KILL_TARGETS.len() as i64) as usize,
            random,
            isolated,
            second,
            organizations,
            untracked,
            killed: BTreeMap::new(),
            exiting: Vec::new(),
            first_day,
        };
        test.day(0, 0).await;
        test
    }

    fn stack(&self) -> &Stack {
        &self.isolated
    }

    async fn now(&self) -> DateTime<Utc> {
        self.stack().databases.clock.now().await
    }

    /// Runs a day's load while processes are killed, and records the result.
    async fn day(&mut self, number: usize, kills: usize) {
        let stop = CancellationToken::new();
        let seed = self.random.below(i64::MAX) as u64;
        let mut loads = Vec::new();
        for (index, organization) in std::mem::take(&mut self.organizations).into_iter().enumerate() {
            let new_account = if number % 3 == 1 { self.untracked.pop() } else { None };
            let imports = index == 0 && number % 4 == 2;
            let load = load::Load { seed: seed ^ index as u64, day: number, new_account, imports };
            loads.push(load.run(organization, self.isolated.folder().to_owned(), stop.clone()));
        }
        let kills = async {
            for _ in 0..kills {
                let pause = self.random.below(self.plan.max_pause_ms) as u64;
                tokio::time::sleep(Duration::from_millis(pause)).await;
                self.kill().await;
            }
            stop.cancel();
        };
        let ((), organizations) = tokio::join!(kills, join_all(loads));
        self.organizations = organizations;
        self.wait_running().await;
        self.wait_scraped().await;
        let (served, today) = (self.fetch_served().await, self.now().await.date_naive());
        for organization in &mut self.organizations {
            organization.record_scrapes(&served, today).await;
        }
    }

    /// Kills the next target, in turns, so that a short run kills each of them.
    async fn kill(&mut self) {
        let target = KILL_TARGETS[self.next_target % KILL_TARGETS.len()];
        self.next_target += 1;
        let chosen = self.random.below(2) as usize;
        let exiting = processes::kill(self.isolated.folder(), target, chosen);
        if exiting.is_empty() {
            // Still down after the last kill.
            return;
        }
        self.exiting.extend(exiting);
        *self.killed.entry(target.name()).or_default() += 1;
        self.restart_second_tracker();
    }

    /// Restarts the second tracker if it was killed.
    fn restart_second_tracker(&mut self) {
        if self.second.as_mut().is_some_and(|second| !second.is_running()) {
            self.second = Some(start_second_tracker(&self.isolated));
        }
    }

    /// Waits until all processes run, those that have to exit have exited, and the stores respond.
    async fn wait_running(&mut self) {
        let stack = self.stack().clone();
        wait_recovered("all processes run again", async || {
            self.restart_second_tracker();
            if !processes::all_run(self.isolated.folder(), &self.exiting) {
                return None;
            }
            let health = stack.request(reqwest::Method::GET, "/health").send().await.ok()?;
            let health: Value = health.json().await.ok()?;
            let down = |store: &&str| health["data"]["checks"][store]["status"] == "down";
            (!["postgres", "clickhouse"].iter().any(down)).then_some(())
        })
        .await;
        self.exiting.clear();
    }

    /// Returns what the sandbox has served today.
    async fn fetch_served(&self) -> Served {
        let record = self.stack().fetch_served().await;
        Served::new(serde_json::from_value::<Vec<ServedItem>>(record).expect("a record of the sandbox"))
    }

    /// Waits until all targets are scraped today.
    async fn wait_scraped(&mut self) {
        let stack = self.stack().clone();
        wait_recovered("all targets are scraped today", async || {
            self.restart_second_tracker();
            let now = stack.databases.clock.now().await;
            let mut unscraped = Vec::new();
            for expected in &self.organizations {
                unscraped.extend(expected.fetch_unscraped(now.date_naive()).await);
            }
            // Failed attempts are retried after some minutes. Other scrapes may still run, and be served at another time
            // than they began.
            let waits = |target: &Value| {
                let next: Option<DateTime<Utc>> =
                    target["tracking"]["next_attempt_at"].as_str().map(|time| time.parse().unwrap());
                target["tracking"]["status"] == "failing" && next.is_some_and(|next| next > now)
            };
            if !unscraped.is_empty() && unscraped.iter().all(waits) {
                stack.control_sandbox(json!({"op": "advance", "hours": 0.1})).await;
            }
            unscraped.is_empty().then_some(())
        })
        .await;
    }

    /// Moves the clock by a day, and starts its record. Sets some views before, higher or lower than they were.
    async fn next_day(&mut self) {
        for expected in &self.organizations {
            let Some((account, post, views)) = expected.random_post(&mut self.random) else { continue };
            let value = views / 2 + self.random.below(1_000 + views);
            let operation = json!({
                "op": "set", "platform": account.platform, "username": account.username, "post": post,
                "counter": "view_count", "value": value,
            });
            self.stack().control_sandbox(operation).await;
        }
        self.stack().control_sandbox(json!({"op": "record"})).await;
        self.stack().control_sandbox(json!({"op": "advance", "hours": 24})).await;
    }

    /// Waits until all changes are visible and compares all responses.
    async fn assert_responses(&self) {
        let today = self.now().await.date_naive();
        for expected in &self.organizations {
            let Organization { id, stack, .. } = &expected.organization;
            wait_recovered("all changes are visible", async || {
                let pending = "select count(*) from outbox where organization_id = $1 and applied_at is null";
                let pending: i64 = sqlx::query_scalar(pending).bind(id).fetch_one(stack.pg()).await.ok()?;
                let request = expected.organization.request(reqwest::Method::GET, "/overview");
                let overview = request.send().await.ok()?;
                (pending == 0 && overview.status() == 200).then_some(())
            })
            .await;
            let (history, ids) = expected.with_creators();
            let organization = &expected.organization;
            for window in
                [(self.first_day - Days::new(1), today), (today - Days::new(1), today), (today, today)]
            {
                for platform in [None, Some("instagram"), Some("tiktok")] {
                    organization_agrees(organization, &history, platform, window).await;
                }
                batches_agree(organization, &history, &ids, window).await;
                video_rollup_agrees(organization, &history, &ids, window).await;
            }
            let window = (today - Days::new(13), today);
            creators_agree(organization, &history, &ids, window).await;
            deltas_agree(organization, &history, &ids, today).await;
            daily_rows_agree(organization, &history, &ids, window, 9).await;
            expected.assert_snapshots(&history).await;
            expected.assert_search().await;
        }
    }

    async fn run(mut self) {
        let mut number = 0;
        for round in 1..=self.plan.rounds {
            for _ in 0..self.plan.days {
                number += 1;
                self.next_day().await;
                self.day(number, self.plan.kills_per_day).await;
            }
            self.assert_responses().await;
            println!("round {round}: {number} days, killed {:?}, all responses match", self.killed);
            if round < self.plan.rounds {
                self.second = None;
                self.isolated.restart().await;
                for expected in &mut self.organizations {
                    expected.organization.stack = self.isolated.clone();
                }
                self.second = self.plan.two_trackers.then(|| start_second_tracker(&self.isolated));
            }
        }
    }
}

async fn kill_at_random(plan: Plan) {
    KillTest::begin(plan, seed()).await.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_random_kills_lose_nothing() {
    let plan = Plan { rounds: 1, days: 3, kills_per_day: 2, max_pause_ms: 900, two_trackers: false };
    kill_at_random(plan).await;
}

/// `TIDEMARK_TEST_ROUNDS` sets the number of rounds of some minutes each.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long"]
async fn isolated_very_many_kills_lose_nothing() {
    let rounds = std::env::var("TIDEMARK_TEST_ROUNDS").map_or(5, |rounds| rounds.parse().expect("a number"));
    kill_at_random(Plan { rounds, days: 8, kills_per_day: 4, max_pause_ms: 2_500, two_trackers: true }).await;
}
