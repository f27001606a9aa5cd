//! The scheduler: takes what is due in hand, scrapes it, and stops a platform's queue while it must not go on.
//!
//! Any number of tracker processes may run; a target is leased to one of them, and the lease of a killed one ends
//! by itself. What one scrape does stands in `scrape`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::scrape::{Outcome, scrape};
use crate::app::Stores;
use crate::model::platform::Platform;
use crate::platforms::Sources;
use crate::store::targets;

/// How long the scheduler rests when nothing was due.
const IDLE: Duration = Duration::from_millis(500);
const RENEWAL: Duration = Duration::from_secs(15);
/// How long a platform rests after its credentials were refused.
const CREDENTIALS_PAUSE: TimeDelta = TimeDelta::minutes(5);

/// What one tracker process scrapes with.
#[derive(Clone)]
pub struct Tracker {
    pub stores: Stores,
    pub sources: Arc<Sources>,
    /// The name under which the process holds leases.
    pub owner: Uuid,
    resting: Arc<Mutex<HashMap<Platform, DateTime<Utc>>>>,
}

impl Tracker {
    pub fn new(stores: Stores, sources: Arc<Sources>) -> Self {
        Tracker { stores, sources, owner: Uuid::now_v7(), resting: Arc::default() }
    }

    /// Scrapes what is due until told to stop, at most `concurrency` targets at a time; what is in hand is finished.
    pub async fn run(&self, concurrency: usize, stop: CancellationToken) {
        let mut in_hand = JoinSet::new();
        let mut ids = HashMap::new();
        let mut renewal = tokio::time::interval(RENEWAL);
        let mut down = false;
        while !stop.is_cancelled() {
            let free = concurrency.saturating_sub(in_hand.len());
            let taken = if free > 0 { self.take(free).await } else { Ok(Vec::new()) };
            let idle = match taken {
                Ok(taken) => {
                    down = false;
                    let idle = taken.is_empty();
                    for target in taken {
                        let (tracker, id) = (self.clone(), target.id);
                        let task = in_hand.spawn(async move { tracker.attempt(target).await });
                        ids.insert(task.id(), id);
                    }
                    idle
                }
                Err(error) => {
                    if !std::mem::replace(&mut down, true) {
                        tracing::error!(%error, "cannot look for due targets; trying on");
                    }
                    true
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                Some(ended) = in_hand.join_next_with_id() => {
                    ids.remove(&ended.map_or_else(|panicked| panicked.id(), |(id, ())| id));
                }
                () = tokio::time::sleep(IDLE), if idle => {}
                _ = renewal.tick() => {
                    let ids: Vec<_> = ids.values().copied().collect();
                    if let Err(error) = targets::renew(&self.stores.pg, self.owner, &ids).await {
                        tracing::warn!(%error, "cannot renew leases");
                    }
                }
            }
        }
        while in_hand.join_next().await.is_some() {}
    }

    async fn take(&self, limit: usize) -> Result<Vec<targets::Leased>, crate::store::Error> {
        let now = self.stores.clock.now().await;
        let platforms = self.ready(now);
        if platforms.is_empty() {
            return Ok(Vec::new());
        }
        targets::lease(&self.stores.pg, self.owner, &platforms, now, limit as i64).await
    }

    /// The platforms that a source can read and whose queue may go on.
    fn ready(&self, now: DateTime<Utc>) -> Vec<Platform> {
        let resting = self.resting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let rests = |platform: &Platform| resting.get(platform).is_some_and(|until| *until > now);
        Platform::ALL.into_iter().filter(|platform| self.sources.has(*platform) && !rests(platform)).collect()
    }

    /// Makes one attempt; the platform's queue rests when its answer says so.
    async fn attempt(&self, target: targets::Leased) {
        let (id, platform) = (target.id, target.platform);
        let until = match scrape(self, &target).await {
            Ok(Outcome::Done) => return,
            Ok(Outcome::RateLimited { until }) => until,
            Ok(Outcome::CredentialsRefused) => self.stores.clock.now().await + CREDENTIALS_PAUSE,
            Err(error) => {
                tracing::error!(%error, target = %id, %platform, "a scrape could not be recorded; its lease runs out");
                return;
            }
        };
        self.rest(platform, until);
        if let Err(error) = targets::release(&self.stores.pg, self.owner, id, until).await {
            tracing::warn!(%error, target = %id, "cannot give a target back; its lease runs out");
        }
    }

    /// Stops a platform's queue, and says so once.
    fn rest(&self, platform: Platform, until: DateTime<Utc>) {
        let mut resting = self.resting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = resting.insert(platform, until);
        if before.is_none_or(|before| before < until - CREDENTIALS_PAUSE) {
            tracing::warn!(%platform, %until, "the platform's queue rests");
        }
    }
}
