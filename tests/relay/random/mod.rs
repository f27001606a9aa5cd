//! Kills at random moments, under load: trackers, the relay in them, the API, ClickHouse and Postgres die by SIGKILL
//! while accounts are scraped day after day, records change and a file is imported. Afterwards every answer has to be
//! what plain loops make of what the sandbox served.

mod expected;
mod load;
mod processes;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use chrono::{DateTime, Days, NaiveDate, Timelike, Utc};
use futures_util::future::join_all;
use serde_json::{Value, json};
use sqlx::PgPool;
use tidemark::sandbox::population::Population;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;
use tokio_util::sync::CancellationToken;

use self::expected::Tenant;
use self::processes::{SecondTracker, VICTIMS};
use crate::agree::{batches_agree, creators_agree, daily_rows_agree, deltas_agree, organization_agrees};
use crate::harness::{IsolatedStack, Organization, SandboxAccount, Stack};
use crate::model::Dice;

/// How long everything may take to be in order again: a lease has to end, and what dies often starts with pauses.
const PATIENCE: Duration = Duration::from_secs(240);
/// The population of `tidemark up`.
const POPULATION: (u64, usize) = (1, 330);

/// How an ordeal goes.
#[derive(Clone, Copy)]
struct Plan {
    /// Everything is compared, stopped and started after each.
    rounds: usize,
    days: usize,
    kills_a_day: usize,
    /// The longest pause before a kill.
    pause_ms: i64,
    /// Whether a second tracker runs, and what a killed one had in hand is waited for.
    two_trackers: bool,
}

struct Ordeal {
    plan: Plan,
    dice: Dice,
    private: IsolatedStack,
    second: Option<SecondTracker>,
    population: Population,
    tenants: Vec<Tenant>,
    /// Views that were set by hand, by the post's id.
    fixed: BTreeMap<String, i64>,
    /// Accounts that nobody tracks yet.
    fresh: Vec<SandboxAccount>,
    killed: BTreeMap<&'static str, u32>,
    /// The processes that were killed since everything ran, and those that go after them.
    gone: Vec<u32>,
    turn: usize,
    first_day: NaiveDate,
}

/// Looks again until there is something, for as long as an installation may take to recover.
async fn recovered<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not happen within {PATIENCE:?} that {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Ends the leases of what a killed tracker had in hand, or one that lost its store: they take longer than all the rest of
/// a short run. What a tracker has in hand it does not take once more.
async fn end_leases(pg: &PgPool) -> Option<()> {
    let end = "update scrape_targets set lease_until = now() where lease_until > now()";
    sqlx::query(end).execute(pg).await.ok().map(|_| ())
}

impl Ordeal {
    async fn begin(plan: Plan, seed: u64) -> Self {
        let private = IsolatedStack::start().await;
        let stack = private.clone();
        // Early in a day, so that no day ends by itself.
        let now = stack.databases.clock.now().await;
        stack.control_sandbox(json!({"op": "advance", "hours": 26 - now.hour()})).await;
        let first_day = stack.databases.clock.now().await.date_naive();
        let mut fresh = stack.connection.sandbox_accounts.clone();
        let mut take = |platform: &str| {
            let at = fresh.iter().position(|account| account.platform == platform).expect("there are some");
            fresh.remove(at)
        };
        let (shared, tiktok, instagram) = (take("tiktok"), take("tiktok"), take("instagram"));
        let options = || OrganizationChange {
            rate_limit: Some(Some(100_000)),
            default_max_recent_posts: Some(50),
            ..OrganizationChange::default()
        };
        let mut tenants = Vec::new();
        for accounts in [vec![shared.clone(), instagram], vec![shared, tiktok]] {
            let organization = stack.organization_with(options(), NewKey::named("test")).await;
            tenants.push(Tenant::new(organization, accounts));
        }
        let second = plan.two_trackers.then(|| SecondTracker::start(&private));
        let mut dice = Dice(seed);
        let mut ordeal = Ordeal {
            plan,
            turn: dice.below(VICTIMS.len() as i64) as usize,
            dice,
            private,
            second,
            population: Population::new(POPULATION.0, POPULATION.1),
            tenants,
            fixed: BTreeMap::new(),
            fresh,
            killed: BTreeMap::new(),
            gone: Vec::new(),
            first_day,
        };
        ordeal.day(0, 0).await;
        ordeal
    }

    fn stack(&self) -> &Stack {
        &self.private
    }

    async fn now(&self) -> DateTime<Utc> {
        self.stack().databases.clock.now().await
    }

    /// Lets a day's work be done while processes are killed, and notes what is known by its end.
    async fn day(&mut self, number: usize, kills: usize) {
        let stop = CancellationToken::new();
        let seed = self.dice.below(i64::MAX) as u64;
        let mut loads = Vec::new();
        for (place, tenant) in std::mem::take(&mut self.tenants).into_iter().enumerate() {
            let fresh = if number % 3 == 1 { self.fresh.pop() } else { None };
            let imports = place == 0 && number % 4 == 2;
            let load = load::Load { seed: seed ^ place as u64, day: number, fresh, imports };
            loads.push(load.run(tenant, self.private.folder().to_owned(), stop.clone()));
        }
        let kills = async {
            for _ in 0..kills {
                let pause = self.dice.below(self.plan.pause_ms) as u64;
                tokio::time::sleep(Duration::from_millis(pause)).await;
                self.kill().await;
            }
            stop.cancel();
        };
        let ((), tenants) = tokio::join!(kills, join_all(loads));
        self.tenants = tenants;
        self.whole().await;
        self.scraped().await;
        for tenant in &mut self.tenants {
            tenant.note(&self.population, &self.fixed).await;
        }
    }

    /// Kills the next one; in turns, so that a short run has every one of them.
    async fn kill(&mut self) {
        let victim = VICTIMS[self.turn % VICTIMS.len()];
        self.turn += 1;
        let chosen = self.dice.below(2) as usize;
        let gone = processes::kill(self.private.folder(), victim, chosen);
        if gone.is_empty() {
            // It is down from the last time.
            return;
        }
        self.gone.extend(gone);
        *self.killed.entry(victim.name()).or_default() += 1;
        if let Some(second) = &mut self.second {
            second.keep_running(&self.private);
        }
    }

    /// Waits until every process runs and the stores answer. What goes after a killed one may do so late: a server whose
    /// guard is dead answers for a while.
    async fn whole(&mut self) {
        let stack = self.stack().clone();
        recovered("every process runs again", async || {
            if let Some(second) = &mut self.second {
                second.keep_running(&self.private);
            }
            if !processes::all_run(self.private.folder(), &self.gone) {
                return None;
            }
            let health = stack.request(reqwest::Method::GET, "/health").send().await.ok()?;
            let health: Value = health.json().await.ok()?;
            let down = |store: &&str| health["data"]["checks"][store]["status"] == "down";
            (!["postgres", "clickhouse"].iter().any(down)).then_some(())
        })
        .await;
        self.gone.clear();
    }

    /// Waits until everything was read today.
    async fn scraped(&mut self) {
        let today = self.now().await.date_naive();
        let organizations: Vec<_> = self.tenants.iter().map(|tenant| tenant.organization.id).collect();
        let (stack, plan) = (self.stack().clone(), self.plan);
        recovered("everything is read today", async || {
            match &mut self.second {
                Some(second) => second.keep_running(&self.private),
                None => end_leases(stack.pg()).await?,
            }
            let (left, waiting): (i64, i64) = sqlx::query_as(
                "select count(*), count(*) filter (where failures > 0 and lease_owner is null and next_attempt_at > $3)
                 from scrape_targets
                 where organization_id = any($1) and enabled
                    and (failures > 0 or last_attempt_at is null or last_attempt_at < $2 or lease_owner is not null)",
            )
            .bind(&organizations)
            .bind(today.and_time(chrono::NaiveTime::MIN).and_utc())
            .bind(stack.databases.clock.now().await)
            .fetch_one(stack.pg())
            .await
            .ok()?;
            if waiting > 0 {
                // An attempt that failed is made again after some minutes. One that is being made needs no time.
                stack.control_sandbox(json!({"op": "advance", "hours": 0.1})).await;
            }
            (left == 0).then_some(plan)
        })
        .await;
    }

    /// Lets a day pass; some views are set by hand before, higher or lower than they were.
    async fn next_day(&mut self) {
        for tenant in &self.tenants {
            let Some((account, post, views)) = tenant.some_post(&mut self.dice) else { continue };
            let value = views / 2 + self.dice.below(1_000 + views);
            let order = json!({
                "op": "set", "platform": account.platform, "username": account.username, "post": post,
                "counter": "view_count", "value": value,
            });
            self.stack().control_sandbox(order).await;
            self.fixed.insert(post, value);
        }
        self.stack().control_sandbox(json!({"op": "advance", "hours": 24})).await;
    }

    /// Waits until everything is visible and compares every answer.
    async fn compare(&self) {
        let today = self.now().await.date_naive();
        for tenant in &self.tenants {
            let Organization { id, stack, .. } = &tenant.organization;
            recovered("everything is visible", async || {
                let waiting = "select count(*) from outbox where organization_id = $1 and applied_at is null";
                let waiting: i64 = sqlx::query_scalar(waiting).bind(id).fetch_one(stack.pg()).await.ok()?;
                let request = tenant.organization.request(reqwest::Method::GET, "/overview");
                let overview = request.send().await.ok()?;
                (waiting == 0 && overview.status() == 200).then_some(())
            })
            .await;
            let (history, ids) = tenant.as_linked();
            let organization = &tenant.organization;
            for window in
                [(self.first_day - Days::new(1), today), (today - Days::new(1), today), (today, today)]
            {
                for platform in [None, Some("instagram"), Some("tiktok")] {
                    organization_agrees(organization, &history, platform, window).await;
                }
                batches_agree(organization, &history, &ids, window).await;
            }
            let window = (today - Days::new(13), today);
            creators_agree(organization, &history, &ids, window).await;
            deltas_agree(organization, &history, &ids, today).await;
            daily_rows_agree(organization, &history, &ids, window, 9).await;
            tenant.facts_agree(&history).await;
            tenant.search_agrees().await;
        }
    }

    async fn run(mut self) {
        let mut number = 0;
        for round in 1..=self.plan.rounds {
            for _ in 0..self.plan.days {
                number += 1;
                self.next_day().await;
                self.day(number, self.plan.kills_a_day).await;
            }
            self.compare().await;
            println!("round {round}: {number} days, killed {:?}, every answer agrees", self.killed);
            if round < self.plan.rounds {
                self.second = None;
                self.private.restart().await;
                for tenant in &mut self.tenants {
                    tenant.organization.stack = self.private.clone();
                }
                self.second = self.plan.two_trackers.then(|| SecondTracker::start(&self.private));
            }
        }
    }
}

async fn kill_at_random(plan: Plan) {
    let given = std::env::var("TIDEMARK_TEST_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seed = given.unwrap_or_else(|| Utc::now().timestamp_micros().unsigned_abs());
    println!("TIDEMARK_TEST_SEED={seed} repeats these kills");
    Ordeal::begin(plan, seed).await.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn own_stores_lose_nothing_by_kills_at_random_moments() {
    let plan = Plan { rounds: 1, days: 3, kills_a_day: 2, pause_ms: 900, two_trackers: false };
    kill_at_random(plan).await;
}

/// `TIDEMARK_TEST_ROUNDS` says for how long: a round takes some minutes.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes long"]
async fn own_stores_lose_nothing_by_very_many_kills_at_random_moments() {
    let rounds = std::env::var("TIDEMARK_TEST_ROUNDS").map_or(5, |rounds| rounds.parse().expect("a number"));
    kill_at_random(Plan { rounds, days: 8, kills_a_day: 4, pause_ms: 2_500, two_trackers: true }).await;
}
