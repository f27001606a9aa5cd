//! The scheduler: takes what is due in hand, scrapes it, and stops a platform's queue while it must not go on.
//!
//! Any number of tracker processes may run; a target is leased to one of them, and the lease of a killed one ends
//! by itself. Every platform has slots of its own, so one that hangs holds up no other. What one scrape does stands
//! in `scrape`.

use std::collections::HashMap;
use std::mem::Discriminant;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use super::scrape::{Outcome, scrape};
use super::watched::Watched;
use super::{BRIEF, within};
use crate::app::Stores;
use crate::model::platform::Platform;
use crate::platforms::Sources;
use crate::platforms::source::Refusal;
use crate::store::Error;
use crate::store::leases::{self, Demand, End, Leased};
use crate::store::pauses::{self, Cause, Pause};

/// How long the scheduler rests while slots are free and nothing was due.
const IDLE: Duration = Duration::from_millis(500);
const RENEWAL: Duration = Duration::from_secs(15);
const TOLD_AGAIN: Duration = Duration::from_secs(3600);

/// A kind of failure of a platform.
type Trouble = (Platform, Discriminant<Refusal>);

/// What one tracker process scrapes with.
#[derive(Clone)]
pub struct Tracker {
    pub stores: Stores,
    pub sources: Arc<Sources>,
    /// The name under which the process holds leases.
    pub owner: Uuid,
    /// When the log last said that a platform fails in a way.
    told: Arc<Mutex<HashMap<Trouble, Instant>>>,
}

/// Targets that one answer of the platform serves, in one slot.
struct InHand {
    platform: Platform,
    targets: Vec<Uuid>,
}

/// Where a process's scheduling stands.
struct Scheduler<'a> {
    tracker: &'a Tracker,
    /// How many scrapes of one platform run at a time.
    slots: usize,
    running: JoinSet<()>,
    in_hand: HashMap<Id, InHand>,
    /// The organization that had the last turn.
    after: HashMap<Platform, Uuid>,
    /// Whether the last look for work failed.
    down: bool,
}

impl Tracker {
    pub fn new(stores: Stores, sources: Arc<Sources>) -> Self {
        Tracker { stores, sources, owner: Uuid::now_v7(), told: Arc::default() }
    }

    /// Scrapes what is due until told to stop, with so many slots for each platform; what is in hand is finished.
    pub async fn run(&self, slots: usize, stop: CancellationToken) {
        let mut scheduler = Scheduler {
            tracker: self,
            slots,
            running: JoinSet::new(),
            in_hand: HashMap::new(),
            after: HashMap::new(),
            down: false,
        };
        let now = self.stores.clock.now().await;
        let retried = within(BRIEF, pauses::retry_credentials(&self.stores.pg, now));
        if let Some(Err(error)) = stop.run_until_cancelled(retried).await {
            tracing::warn!(%error, "cannot let platforms try their credentials again");
        }
        let mut renewal = tokio::time::interval(RENEWAL);
        while !stop.is_cancelled() || !scheduler.running.is_empty() {
            // What is leased and not begun when the process is told to stop is taken over when its lease ends.
            let free = stop.run_until_cancelled(scheduler.fill()).await.unwrap_or_default();
            tokio::select! {
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                Some(ended) = scheduler.running.join_next_with_id() => scheduler.forget(ended),
                () = tokio::time::sleep(IDLE), if free => {}
                _ = renewal.tick() => scheduler.renew().await,
            }
        }
    }

    /// Makes one attempt; the platform's queue rests, or goes on, as its answer says.
    async fn attempt(&self, targets: Vec<Leased>, probes: bool) {
        let Some(first) = targets.first() else { return };
        let platform = first.platform;
        let watched = Watched::begin(first);
        let scraped = scrape(self, &targets).instrument(watched.span.clone()).await;
        watched.end(&scraped);
        let ended = match scraped {
            Ok(Outcome::Answered) => within(BRIEF, self.answered(platform, probes)).await,
            Ok(Outcome::NotAsked) => Ok(()),
            Ok(Outcome::Failed(refusal)) => {
                self.tell(first, &refusal);
                Ok(())
            }
            Ok(Outcome::Rest { until, cause, reason }) => {
                within(BRIEF, self.rest(&targets, Pause { platform, until, cause, reason })).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            tracing::warn!(%error, target = %first.id, %platform, "an attempt could not be recorded; its lease runs out");
        }
    }

    /// The platform speaks to us: a queue that rested goes on, unless the answer said to slow down.
    async fn answered(&self, platform: Platform, probes: bool) -> Result<(), Error> {
        let now = self.stores.clock.now().await;
        if let Some(until) = self.sources.rests_until(platform).filter(|until| *until > now) {
            let reason = "the platform's quota is nearly used up".to_owned();
            return self.pause(Pause { platform, until, cause: Cause::RateLimit, reason }, now).await;
        }
        if probes && pauses::end(&self.stores.pg, platform, now).await? {
            tracing::info!(%platform, "the platform's queue goes on");
        }
        Ok(())
    }

    /// Stops a platform's queue and gives back what could not be read; it stays as long due as it is.
    async fn rest(&self, targets: &[Leased], pause: Pause) -> Result<(), Error> {
        let now = self.stores.clock.now().await;
        self.pause(pause, now).await?;
        let ids: Vec<_> = targets.iter().map(|target| target.id).collect();
        leases::release(&self.stores.pg, self.owner, &ids).await
    }

    /// Stops a platform's queue, and says so once.
    async fn pause(&self, pause: Pause, now: DateTime<Utc>) -> Result<(), Error> {
        if pauses::begin(&self.stores.pg, &pause, now).await? {
            let Pause { platform, until, cause, reason } = &pause;
            match cause {
                Cause::RateLimit => tracing::warn!(%platform, %until, reason, "the platform's queue rests"),
                Cause::Credentials => tracing::error!(
                    %platform, reason, "the platform's queue stops until its credentials are mended"
                ),
            }
        }
        Ok(())
    }

    /// Says what a platform fails with, of each kind once an hour; what an account or a video failed with stands in
    /// its own record.
    fn tell(&self, target: &Leased, refusal: &Refusal) {
        let kind = (target.platform, std::mem::discriminant(refusal));
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if told.get(&kind).is_none_or(|at| now - *at >= TOLD_AGAIN) {
            told.insert(kind, now);
            tracing::warn!(platform = %target.platform, target = %target.id, %refusal, "scrapes fail");
        } else {
            tracing::debug!(platform = %target.platform, target = %target.id, %refusal, "a scrape failed");
        }
    }
}

impl Scheduler<'_> {
    /// Fills free slots with what is due. Says whether slots stay free, so that it is worth to look again soon.
    async fn fill(&mut self) -> bool {
        match within(BRIEF, self.take()).await {
            Ok(free) => {
                self.down = false;
                free
            }
            Err(error) => {
                if !std::mem::replace(&mut self.down, true) {
                    tracing::error!(%error, "cannot look for due targets; trying on");
                }
                true
            }
        }
    }

    async fn take(&mut self) -> Result<bool, Error> {
        let pg = &self.tracker.stores.pg;
        let now = self.tracker.stores.clock.now().await;
        let pauses = pauses::all(pg).await?;
        let mut stays_free = false;
        for platform in Platform::ALL.into_iter().filter(|platform| self.tracker.sources.has(*platform)) {
            let pause = pauses.iter().find(|pause| pause.platform == platform);
            // After a rest, one attempt shows whether the queue may go on.
            let slots = match pause {
                Some(pause) if pause.until > now => 0,
                Some(_) => 1,
                None => self.slots,
            };
            let taken = self.in_hand.values().filter(|in_hand| in_hand.platform == platform).count();
            let free = slots.saturating_sub(taken);
            if free == 0 {
                stays_free |= slots == 0;
                continue;
            }
            let in_hand: Vec<_> =
                self.in_hand.values().flat_map(|in_hand| in_hand.targets.iter().copied()).collect();
            let demand = Demand {
                owner: self.tracker.owner,
                platform,
                now,
                limit: free,
                end: either_end(),
                after: self.after.get(&platform).copied().unwrap_or_default(),
                in_hand: &in_hand,
            };
            let (leased, after) = leases::lease(pg, demand).await?;
            self.after.insert(platform, after);
            let alike = leases::lease_alike(pg, demand, &leased).await?;
            let groups = by_answer(leased.into_iter().chain(alike));
            stays_free |= groups.len() < free;
            for group in groups {
                self.begin(platform, group, pause.is_some());
            }
        }
        Ok(stays_free)
    }

    fn begin(&mut self, platform: Platform, group: Vec<Leased>, probes: bool) {
        let tracker = self.tracker.clone();
        let targets = group.iter().map(|target| target.id).collect();
        let task = self.running.spawn(async move { tracker.attempt(group, probes).await });
        self.in_hand.insert(task.id(), InHand { platform, targets });
    }

    fn forget(&mut self, ended: Result<(Id, ()), JoinError>) {
        self.in_hand.remove(&ended.map_or_else(|panicked| panicked.id(), |(id, ())| id));
    }

    async fn renew(&self) {
        let ids: Vec<_> = self.in_hand.values().flat_map(|in_hand| in_hand.targets.iter().copied()).collect();
        if ids.is_empty() {
            return;
        }
        let renewal = leases::renew(&self.tracker.stores.pg, self.tracker.owner, &ids);
        if let Err(error) = within(BRIEF, renewal).await {
            tracing::warn!(%error, "cannot renew leases");
        }
    }
}

/// Which end of an organization's queue is served, by lot: in strict alternation it could fall in step with the turns,
/// and one organization would always be served from the same end.
fn either_end() -> End {
    if Uuid::now_v7().as_bytes()[15] & 1 == 0 { End::LongestDue } else { End::NewestDue }
}

/// Brings targets together that one answer of the platform serves.
fn by_answer(leased: impl Iterator<Item = Leased>) -> Vec<Vec<Leased>> {
    let mut groups: Vec<Vec<Leased>> = Vec::new();
    for target in leased {
        match groups.iter_mut().find(|group| group[0].shares_answer(&target)) {
            Some(group) => group.push(target),
            None => groups.push(vec![target]),
        }
    }
    groups
}
