//! The scheduler: takes what is due in hand, scrapes it, and leaves out the sources that must not be asked.
//!
//! Any number of tracker processes may run; a target is leased to one of them, and the lease of a killed one ends
//! by itself. Every platform has slots of its own, so one that hangs holds up no other. What one scrape does stands
//! in `scrape`.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use super::scrape::{Rest, ScrapeOutcome, Scraped, broke_off, scrape};
use super::telemetry::ScrapeTelemetry;
use super::tracker::{FailureKind, Tracker};
use super::{BRIEF, within};
use crate::app::Databases;
use crate::model::platform::Platform;
use crate::platforms::source::SourceError;
use crate::store::Error;
use crate::store::tracking::leases::{self, LeaseOrder, LeaseRequest, LeasedTarget, TargetKind};
use crate::store::tracking::source_pauses::{self, PauseCause, SourcePause};

/// How long the scheduler rests while slots are free and nothing was due.
const IDLE: Duration = Duration::from_millis(500);
const RENEWAL: Duration = Duration::from_secs(15);
/// How long Postgres may take then to answer what is being leased; what it leases later stays so until the lease ends.
const SETTLING: Duration = Duration::from_secs(3);

/// Targets that one answer of the platform serves, in one slot.
struct InHand {
    platform: Platform,
    targets: Vec<Uuid>,
    probes: Vec<&'static str>,
}

/// Which sources an attempt asks.
#[derive(Debug, Clone, Default)]
struct Round {
    /// Those that rest, or that another attempt shows to be back.
    skip: Vec<&'static str>,
    /// Those whose rest is over and of which this attempt shows whether they are back.
    probes: Vec<&'static str>,
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
    /// Scrapes what is due until told to stop, with so many slots for each platform; what is in hand is finished, or given
    /// back when that takes too long.
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
        let retried = within(BRIEF, source_pauses::expire_credential_pauses(&self.stores.pg, now));
        if let Some(Err(error)) = stop.run_until_cancelled(retried).await {
            tracing::warn!(%error, "cannot let platforms try their credentials again");
        }
        let mut renewal = tokio::time::interval(RENEWAL);
        let end = async {
            stop.cancelled().await;
            tokio::time::sleep(self.shutdown_grace).await;
        };
        tokio::pin!(end);
        while !stop.is_cancelled() || !scheduler.running.is_empty() {
            let settled = async {
                stop.cancelled().await;
                tokio::time::sleep(SETTLING).await;
            };
            let free = if stop.is_cancelled() {
                false
            } else {
                // Told to stop meanwhile, it gives back what it was leasing.
                tokio::select! {
                    free = scheduler.fill(&stop) => free,
                    () = settled => false,
                    () = &mut end => return scheduler.give_back().await,
                }
            };
            tokio::select! {
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                Some(ended) = scheduler.running.join_next_with_id() => scheduler.forget(ended),
                () = tokio::time::sleep(IDLE), if free => {}
                _ = renewal.tick() => scheduler.renew().await,
                () = &mut end => return scheduler.give_back().await,
            }
        }
    }

    /// Makes one attempt; sources rest, or go on, as their answers say.
    async fn attempt(&self, targets: Vec<LeasedTarget>, round: Round) {
        let Some(first) = targets.first() else { return };
        let platform = first.platform;
        let watched = ScrapeTelemetry::begin(first);
        let scraped = scrape(self, &targets, &round.skip).instrument(watched.span.clone());
        let ended = AssertUnwindSafe(scraped).catch_unwind().await;
        watched.end(&ended);
        let recorded = match ended {
            Ok(Ok(ended)) => self.conclude(&targets, &round, ended).await,
            Ok(Err(error)) => Err(error),
            // What panicked is in the log.
            Err(_) => {
                if self.should_log(platform, FailureKind::Panicked) {
                    tracing::error!(target = %first.id, %platform, "scrapes panic: this is a fault of the tracker");
                }
                broke_off(self, &targets).await
            }
        };
        if let Err(error) = recorded {
            tracing::warn!(%error, target = %first.id, %platform, "an attempt could not be recorded; its lease runs out");
        }
    }

    async fn conclude(&self, targets: &[LeasedTarget], round: &Round, ended: Scraped) -> Result<(), Error> {
        let Some(first) = targets.first() else { return Ok(()) };
        within(BRIEF, self.heard(first.platform, round, &ended)).await?;
        match ended.outcome {
            ScrapeOutcome::Responded | ScrapeOutcome::Skipped => Ok(()),
            ScrapeOutcome::Failed(error) => {
                self.tell(first, &error);
                Ok(())
            }
            // They stay as long due as they are.
            ScrapeOutcome::Paused => {
                let ids: Vec<_> = targets.iter().map(|target| target.id).collect();
                within(BRIEF, leases::release(&self.stores.pg, self.owner, &ids)).await
            }
        }
    }

    /// Notes which sources rest from now on, and lets one go on that speaks to us after its rest, unless its answer
    /// said to slow down.
    async fn heard(&self, platform: Platform, round: &Round, ended: &Scraped) -> Result<(), Error> {
        let now = self.stores.clock.now().await;
        for Rest { source, until, cause, reason } in ended.resting.iter().cloned() {
            self.pause(SourcePause { platform, source: source.to_owned(), until, cause, reason }, now)
                .await?;
        }
        for source in &ended.answered {
            if let Some(until) = self.sources.paused_until(platform, source).filter(|until| *until > now) {
                let reason = "the platform's quota is nearly used up".to_owned();
                let (source, cause) = ((*source).to_owned(), PauseCause::RateLimit);
                self.pause(SourcePause { platform, source, until, cause, reason }, now).await?;
            } else if round.probes.contains(source)
                && source_pauses::end(&self.stores.pg, platform, source, now).await?
            {
                tracing::info!(%platform, source, "the source is asked again");
            }
        }
        Ok(())
    }

    /// Lets a source rest, and says so once.
    async fn pause(&self, pause: SourcePause, now: DateTime<Utc>) -> Result<(), Error> {
        if source_pauses::start(&self.stores.pg, &pause, now).await? {
            let SourcePause { platform, source, until, cause, reason } = &pause;
            match cause {
                PauseCause::RateLimit => tracing::warn!(%platform, source, %until, reason, "a source rests"),
                PauseCause::Credentials => tracing::error!(
                    %platform, source, reason, "a source is not asked until its credentials are mended"
                ),
            }
        }
        Ok(())
    }

    /// Says what a platform fails with, of each kind once an hour; what an account or a video failed with stands in
    /// its own record.
    fn tell(&self, target: &LeasedTarget, error: &SourceError) {
        if self.should_log(target.platform, FailureKind::Source(std::mem::discriminant(error))) {
            tracing::warn!(platform = %target.platform, target = %target.id, %error, "scrapes fail");
        } else {
            tracing::debug!(platform = %target.platform, target = %target.id, %error, "a scrape failed");
        }
    }
}

/// How much of a kind may be taken in hand.
struct Demanded {
    /// Both kinds when none is named.
    kind: Option<TargetKind>,
    most: usize,
}

impl Scheduler<'_> {
    /// Fills free slots with what is due. Says whether slots stay free, so that it is worth to look again soon.
    async fn fill(&mut self, stop: &CancellationToken) -> bool {
        match within(BRIEF, self.take(stop)).await {
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

    async fn take(&mut self, stop: &CancellationToken) -> Result<bool, Error> {
        let Tracker { stores: Databases { pg, clock, .. }, owner, .. } = self.tracker;
        let known = async { Ok::<_, Error>((clock.now().await, source_pauses::fetch_all(pg).await?)) };
        let Some((now, pauses)) = stop.run_until_cancelled(known).await.transpose()? else {
            return Ok(false);
        };
        let mut stays_free = false;
        for platform in
            Platform::ALL.into_iter().filter(|platform| self.tracker.sources.has_source(*platform))
        {
            let of_platform = |rests: bool| {
                let known = pauses.iter().filter(move |p| p.platform == platform && (p.until > now) == rests);
                known.map(|pause| pause.source.as_str()).collect::<Vec<_>>()
            };
            let (resting, rested) = (of_platform(true), of_platform(false));
            for demanded in self.demands(platform, &resting, &rested) {
                let taken = self.in_hand.values().filter(|in_hand| in_hand.platform == platform).count();
                let free = self.slots.saturating_sub(taken).min(demanded.most);
                if free == 0 {
                    stays_free |= demanded.most == 0;
                    continue;
                }
                let in_hand: Vec<_> =
                    self.in_hand.values().flat_map(|in_hand| in_hand.targets.iter().copied()).collect();
                let demand = LeaseRequest {
                    owner: *owner,
                    platform,
                    now,
                    kind: demanded.kind,
                    limit: free,
                    order: either_end(),
                    after_organization: self.after.get(&platform).copied().unwrap_or_default(),
                    in_flight: &in_hand,
                };
                let (leased, after) = leases::lease(pg, demand).await?;
                self.after.insert(platform, after);
                let alike = leases::lease_same_accounts(pg, demand, &leased).await?;
                let leased = leased.into_iter().chain(alike);
                if stop.is_cancelled() {
                    leases::release(pg, *owner, &leased.map(|target| target.id).collect::<Vec<_>>()).await?;
                    return Ok(false);
                }
                let groups = by_answer(leased);
                stays_free |= groups.len() < free;
                for group in groups {
                    let kind = group[0].kind;
                    let round = self.round(platform, kind, &resting, &rested);
                    self.begin(platform, group, round);
                }
            }
        }
        Ok(stays_free)
    }

    /// Returns the names of the sources that can read targets of this kind.
    fn readers(&self, platform: Platform, kind: TargetKind) -> Vec<&'static str> {
        match kind {
            TargetKind::Account => self.tracker.sources.names(platform),
            TargetKind::Video => self.tracker.sources.post_source_names(platform),
        }
    }

    /// What may be taken in hand of a platform: everything while some source can read accounts and some source posts;
    /// of a kind that only sources can read whose rest is just over, one target to try them with.
    fn demands(&self, platform: Platform, resting: &[&str], rested: &[&str]) -> Vec<Demanded> {
        let most = |kind: TargetKind| {
            let readers = self.readers(platform, kind);
            let open = |source: &&str| !resting.contains(source) && !rested.contains(source);
            // What no source can read at all is tried, and says so in its record.
            if readers.is_empty() || readers.iter().any(open) {
                self.slots
            } else {
                usize::from(readers.iter().any(|source| self.may_probe(platform, source, rested)))
            }
        };
        match (most(TargetKind::Account), most(TargetKind::Video)) {
            (accounts, videos) if accounts == videos => vec![Demanded { kind: None, most: accounts }],
            (accounts, videos) => vec![
                Demanded { kind: Some(TargetKind::Account), most: accounts },
                Demanded { kind: Some(TargetKind::Video), most: videos },
            ],
        }
    }

    /// Whether a source's rest is over and no attempt is under way that shows whether it is back.
    fn may_probe(&self, platform: Platform, source: &str, rested: &[&str]) -> bool {
        let probes =
            |in_flight: &InHand| in_flight.platform == platform && in_flight.probes.contains(&source);
        rested.contains(&source) && !self.in_hand.values().any(probes)
    }

    /// Which sources the next attempt asks.
    fn round(&self, platform: Platform, kind: TargetKind, resting: &[&str], rested: &[&str]) -> Round {
        let readers = self.tracker.sources.names(platform);
        let able = self.readers(platform, kind);
        let probes =
            |source: &&'static str| able.contains(source) && self.may_probe(platform, source, rested);
        let probes: Vec<_> = readers.iter().copied().filter(probes).collect();
        let skipped = |source: &&'static str| {
            resting.contains(source) || (rested.contains(source) && !probes.contains(source))
        };
        Round { skip: readers.iter().copied().filter(skipped).collect(), probes }
    }

    fn begin(&mut self, platform: Platform, group: Vec<LeasedTarget>, round: Round) {
        let tracker = self.tracker.clone();
        let targets = group.iter().map(|target| target.id).collect();
        let probes = round.probes.clone();
        let task = self.running.spawn(async move { tracker.attempt(group, round).await });
        self.in_hand.insert(task.id(), InHand { platform, targets, probes });
    }

    fn forget(&mut self, ended: Result<(Id, ()), JoinError>) {
        self.in_hand.remove(&ended.map_or_else(|panicked| panicked.id(), |(id, ())| id));
    }

    /// Breaks off what is in hand and gives it back, as long due as it is, for another process to begin at once.
    async fn give_back(&mut self) {
        let ids: Vec<_> = self.in_hand.values().flat_map(|in_hand| in_hand.targets.iter().copied()).collect();
        if ids.is_empty() {
            return;
        }
        // Once they are gone, none of them commits any more.
        self.running.shutdown().await;
        self.in_hand.clear();
        tracing::warn!(targets = ids.len(), "scrapes were still in hand at the end: they are given back");
        let given_back = leases::release(&self.tracker.stores.pg, self.tracker.owner, &ids);
        if let Err(error) = within(BRIEF, given_back).await {
            tracing::warn!(%error, "scrapes could not be given back: their leases run out");
        }
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
fn either_end() -> LeaseOrder {
    if fastrand::bool() { LeaseOrder::OldestFirst } else { LeaseOrder::NewestFirst }
}

/// Brings targets together that one answer of the platform serves.
fn by_answer(leased: impl Iterator<Item = LeasedTarget>) -> Vec<Vec<LeasedTarget>> {
    let mut groups: Vec<Vec<LeasedTarget>> = Vec::new();
    for target in leased {
        match groups.iter_mut().find(|group| group[0].shares_response(&target)) {
            Some(group) => group.push(target),
            None => groups.push(vec![target]),
        }
    }
    groups
}
