//! The scheduler of a tracker: leases due targets, runs their attempts, and skips paused sources.
//!
//! Any number of trackers may run. A target is leased to one of them; the lease of a killed one expires. Each platform
//! has slots of its own, so that a slow one delays no other.

use std::collections::HashMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::attempt::AttemptPlan;
use super::failure_log::FailureLog;
use super::refresh_budget::RefreshBudget;
use super::timeout;
use super::tracker::Tracker;
use crate::app::Databases;
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::postgres::notifications::{self, Topic};
use crate::store::tracking::leases::{self, LeaseOrder, LeaseRequest, LeasedTarget, TargetKind};
use crate::store::tracking::source_pauses::{self, SourcePause};
use crate::store::tracking::wakeups;

/// The shortest pause while slots are free.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How often passed wakeups are checked while all slots are used.
const WAKEUP_CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// How often a lease is renewed within its duration.
const RENEWALS_PER_LEASE: u32 = 3;
/// How long a statement that leases targets may run during shutdown. Targets leased later stay leased until the
/// lease expires.
const LEASE_GRACE: Duration = Duration::from_secs(3);

impl Tracker {
    /// Scrapes due targets until it is stopped, with `slots` concurrent scrapes per platform. Then running scrapes may
    /// finish within the shutdown grace; the leases of the others are released.
    pub async fn run(&self, slots: usize, stop: CancellationToken) {
        let mut scheduler = Scheduler {
            tracker: self,
            slots,
            tasks: JoinSet::new(),
            in_flight: HashMap::new(),
            last_organization: HashMap::new(),
            last_wakeup_check: HashMap::new(),
            failures: FailureLog::new("cannot lease due targets").with_error_level(),
        };
        let now = self.databases.clock.now().await;
        let expired = timeout::short(source_pauses::expire_credential_pauses(&self.databases.pg, now));
        if let Some(Err(error)) = stop.run_until_cancelled(expired).await {
            tracing::warn!(%error, "cannot end pauses for rejected credentials");
        }
        let mut renewal = tokio::time::interval(self.lease_duration / RENEWALS_PER_LEASE);
        let mut grace_is_over = pin!(timeout::wait_for_grace_period(&stop, self.shutdown_grace));
        let (clock, mut writes) = (&self.databases.clock, notifications::subscribe(&[Topic::Writes]));
        while !stop.is_cancelled() || !scheduler.tasks.is_empty() {
            let mut polled = Polled::Filled;
            if !stop.is_cancelled() {
                // If it is stopped meanwhile, `poll` releases what it leases.
                tokio::select! {
                    result = scheduler.poll(&stop) => polled = result,
                    () = timeout::wait_for_grace_period(&stop, LEASE_GRACE) => {}
                    () = &mut grace_is_over => return scheduler.abort_all().await,
                }
            }
            let (has_free_slots, next_wakeup) = match polled {
                Polled::Filled => (false, None),
                Polled::Free { next_wakeup } => (true, next_wakeup),
            };
            tokio::select! {
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                Some(ended) = scheduler.tasks.join_next_with_id() => scheduler.remove_ended(ended),
                () = writes.wait_or(POLL_INTERVAL, false, clock.wait_until(next_wakeup)), if has_free_slots => {}
                _ = renewal.tick() => scheduler.renew_leases().await,
                () = &mut grace_is_over => return scheduler.abort_all().await,
            }
        }
    }
}

struct Scheduler<'a> {
    tracker: &'a Tracker,
    /// Concurrent attempts per platform.
    slots: usize,
    tasks: JoinSet<()>,
    in_flight: HashMap<Id, InFlight>,
    /// The organization whose targets were leased last, and whose refreshes were.
    last_organization: HashMap<(Platform, bool), Uuid>,
    last_wakeup_check: HashMap<(Platform, Option<TargetKind>), Instant>,
    failures: FailureLog,
}

/// The result of a poll.
enum Polled {
    /// No slot is free.
    Filled,
    /// The next poll may be soon: at a wakeup, if there is one.
    Free { next_wakeup: Option<DateTime<Utc>> },
}

/// A running attempt. Its targets share one response and one slot.
struct InFlight {
    platform: Platform,
    targets: Vec<Uuid>,
    probes: Vec<&'static str>,
}

/// The paused sources of a platform.
struct PausedSources<'a> {
    platform: Platform,
    paused: Vec<&'a str>,
    /// Sources whose pause is over. One attempt at a time probes each.
    probeable: Vec<&'a str>,
}

impl<'a> PausedSources<'a> {
    fn new(platform: Platform, pauses: &'a [SourcePause], now: DateTime<Utc>) -> Self {
        let (paused, probeable): (Vec<_>, Vec<_>) =
            pauses.iter().filter(|pause| pause.platform == platform).partition(|pause| pause.until > now);
        let names = |group: Vec<&'a SourcePause>| group.iter().map(|pause| pause.source.as_str()).collect();
        PausedSources { platform, paused: names(paused), probeable: names(probeable) }
    }

    fn works(&self, source: &str) -> bool {
        !self.paused.contains(&source) && !self.probeable.contains(&source)
    }
}

/// How many attempts at targets of a kind may start.
struct Capacity {
    /// `None` is both kinds.
    kind: Option<TargetKind>,
    max_attempts: usize,
}

/// The kinds of refreshes that may be leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseFilter {
    Nothing,
    Only(TargetKind),
    Everything,
}

impl Scheduler<'_> {
    /// Leases due targets for the free slots.
    async fn poll(&mut self, stop: &CancellationToken) -> Polled {
        let polled = timeout::short(self.fill_slots(stop)).await;
        self.failures.record(polled).unwrap_or(Polled::Free { next_wakeup: Some(DateTime::UNIX_EPOCH) })
    }

    async fn fill_slots(&mut self, stop: &CancellationToken) -> Result<Polled, Error> {
        let Tracker { databases: Databases { pg, clock, .. }, sources, owner, .. } = self.tracker;
        let fetch = async {
            let is_clock_right = self.tracker.was_clock_right().await?;
            let (now, pauses) = (clock.now().await, source_pauses::fetch_all(pg).await?);
            Ok::<_, Error>((is_clock_right, now, pauses, RefreshBudget::fetch(pg, now).await?))
        };
        let Some((is_clock_right, now, pauses, refresh_budget)) =
            stop.run_until_cancelled(fetch).await.transpose()?
        else {
            return Ok(Polled::Filled);
        };
        if !is_clock_right {
            return Ok(Polled::Free { next_wakeup: Some(now) });
        }
        let mut has_free_slots = false;
        let platforms: Vec<_> =
            Platform::ALL.into_iter().filter(|platform| sources.has_source(*platform)).collect();
        for platform in platforms.iter().copied() {
            let paused = PausedSources::new(platform, &pauses, now);
            for capacity in self.capacities(&paused) {
                let running = self.in_flight.values().filter(|attempt| attempt.platform == platform).count();
                let free = self.slots.saturating_sub(running).min(capacity.max_attempts);
                if free == 0 {
                    has_free_slots |= capacity.max_attempts == 0;
                    continue;
                }
                let refreshes = self.filter_refreshes(&paused, &refresh_budget, capacity.kind);
                let leased = self.lease(platform, now, capacity.kind, refreshes, free).await?;
                if stop.is_cancelled() {
                    let ids: Vec<_> = leased.iter().map(|target| target.id).collect();
                    leases::release(pg, *owner, &ids).await?;
                    return Ok(Polled::Filled);
                }
                let groups = group_by_response(leased);
                let fills_slots = groups.len() >= free;
                has_free_slots |= !fills_slots;
                for group in groups {
                    let plan = self.plan_attempt(group[0].kind, &paused);
                    self.start(platform, group, plan);
                }
                // After the start: a failure must not leave leases without an attempt.
                if !fills_slots || self.is_wakeup_check_due(platform, capacity.kind) {
                    wakeups::advance(pg, platform, capacity.kind, now).await?;
                    self.last_wakeup_check.insert((platform, capacity.kind), Instant::now());
                }
            }
        }
        if !has_free_slots {
            return Ok(Polled::Filled);
        }
        Ok(Polled::Free { next_wakeup: wakeups::fetch_next(pg, &platforms, now).await? })
    }

    /// Leases due targets and refreshes, and others that the responses for them serve. Which come first is random, so that
    /// neither waits for the end of the other queue.
    async fn lease(
        &mut self,
        platform: Platform,
        now: DateTime<Utc>,
        due: Option<TargetKind>,
        refreshes: LeaseFilter,
        limit: usize,
    ) -> Result<Vec<LeasedTarget>, Error> {
        let (pg, in_flight) = (&self.tracker.databases.pg, self.in_flight_targets());
        let mut request = LeaseRequest {
            owner: self.tracker.owner,
            platform,
            now,
            duration: self.tracker.lease_duration,
            kind: due,
            limit,
            order: random_order(),
            after_organization: Uuid::nil(),
            in_flight: &in_flight,
        };
        let mut leased = Vec::new();
        let refreshes_first = fastrand::bool();
        for is_refresh in [refreshes_first, !refreshes_first] {
            request.limit = limit.saturating_sub(leased.len());
            request.kind = match refreshes {
                _ if request.limit == 0 => break,
                _ if !is_refresh => due,
                LeaseFilter::Nothing => continue,
                LeaseFilter::Only(kind) => Some(kind),
                LeaseFilter::Everything => None,
            };
            let queue = (platform, is_refresh);
            request.after_organization = self.last_organization.get(&queue).copied().unwrap_or_default();
            let (targets, last_organization) = match is_refresh {
                true => leases::lease_refreshes(pg, request).await?,
                false => leases::lease(pg, request).await?,
            };
            self.last_organization.insert(queue, last_organization);
            leased.extend(targets);
        }
        leased.extend(leases::lease_same_accounts(pg, request, &leased).await?);
        Ok(leased)
    }

    /// Returns the kinds of refreshes that may be leased: those that a source reads which works or may be probed, and has
    /// requests left for them.
    fn filter_refreshes(
        &self,
        paused: &PausedSources<'_>,
        budget: &RefreshBudget,
        leased: Option<TargetKind>,
    ) -> LeaseFilter {
        let platform = paused.platform;
        if !budget.is_queued(platform) {
            return LeaseFilter::Nothing;
        }
        let is_refreshable = |kind: TargetKind| {
            let may_read = |source: &str| paused.works(source) || self.may_probe(paused, source);
            let has_left = |source: &str| budget.has_left(&self.tracker.sources, platform, source);
            let mut sources = self.sources_for(platform, kind).into_iter();
            leased.is_none_or(|leased| leased == kind)
                && sources.any(|source| may_read(source) && has_left(source))
        };
        match (is_refreshable(TargetKind::Account), is_refreshable(TargetKind::Video)) {
            (true, true) => LeaseFilter::Everything,
            (true, false) => LeaseFilter::Only(TargetKind::Account),
            (false, true) => LeaseFilter::Only(TargetKind::Video),
            (false, false) => LeaseFilter::Nothing,
        }
    }

    fn is_wakeup_check_due(&self, platform: Platform, kind: Option<TargetKind>) -> bool {
        let last = self.last_wakeup_check.get(&(platform, kind));
        last.is_none_or(|at| at.elapsed() >= WAKEUP_CHECK_INTERVAL)
    }

    /// Returns the names of the sources that can read targets of a kind.
    fn sources_for(&self, platform: Platform, kind: TargetKind) -> Vec<&'static str> {
        match kind {
            TargetKind::Account => self.tracker.sources.names(platform),
            TargetKind::Video => self.tracker.sources.post_source_names(platform),
        }
    }

    /// Returns how much may be leased of a platform: everything while a source for each kind works; one target of a kind
    /// to probe its sources when their pauses are over; nothing while all are paused.
    fn capacities(&self, paused: &PausedSources<'_>) -> Vec<Capacity> {
        let max_attempts = |kind: TargetKind| {
            let sources = self.sources_for(paused.platform, kind);
            // Without any source the attempt fails, and the target's record says why.
            if sources.is_empty() || sources.iter().any(|source| paused.works(source)) {
                self.slots
            } else {
                usize::from(sources.iter().any(|source| self.may_probe(paused, source)))
            }
        };
        match (max_attempts(TargetKind::Account), max_attempts(TargetKind::Video)) {
            (accounts, videos) if accounts == videos => vec![Capacity { kind: None, max_attempts: accounts }],
            (accounts, videos) => vec![
                Capacity { kind: Some(TargetKind::Account), max_attempts: accounts },
                Capacity { kind: Some(TargetKind::Video), max_attempts: videos },
            ],
        }
    }

    /// Whether a source's pause is over and no attempt probes it already.
    fn may_probe(&self, paused: &PausedSources<'_>, source: &str) -> bool {
        let is_probe =
            |attempt: &InFlight| attempt.platform == paused.platform && attempt.probes.contains(&source);
        paused.probeable.contains(&source) && !self.in_flight.values().any(is_probe)
    }

    fn plan_attempt(&self, kind: TargetKind, paused: &PausedSources<'_>) -> AttemptPlan {
        let capable = self.sources_for(paused.platform, kind);
        let sources = self.tracker.sources.names(paused.platform);
        let is_probe = |source: &&'static str| capable.contains(source) && self.may_probe(paused, source);
        let probes: Vec<_> = sources.iter().copied().filter(is_probe).collect();
        let is_skipped = |source: &&'static str| {
            paused.paused.contains(source) || (paused.probeable.contains(source) && !probes.contains(source))
        };
        AttemptPlan { skip: sources.iter().copied().filter(is_skipped).collect(), probes }
    }

    fn start(&mut self, platform: Platform, group: Vec<LeasedTarget>, plan: AttemptPlan) {
        let tracker = self.tracker.clone();
        let targets = group.iter().map(|target| target.id).collect();
        let probes = plan.probes.clone();
        let task = self.tasks.spawn(async move { tracker.attempt(group, plan).await });
        self.in_flight.insert(task.id(), InFlight { platform, targets, probes });
    }

    fn remove_ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        self.in_flight.remove(&ended.map_or_else(|error| error.id(), |(id, ())| id));
    }

    fn in_flight_targets(&self) -> Vec<Uuid> {
        self.in_flight.values().flat_map(|attempt| attempt.targets.iter().copied()).collect()
    }

    /// Aborts running attempts and releases their leases, so that other processes can start them at once.
    async fn abort_all(&mut self) {
        let targets = self.in_flight_targets();
        if targets.is_empty() {
            return;
        }
        // An aborted attempt cannot commit any more.
        self.tasks.shutdown().await;
        self.in_flight.clear();
        tracing::warn!(targets = targets.len(), "shutdown grace is over, releasing running scrapes");
        let release = leases::release(&self.tracker.databases.pg, self.tracker.owner, &targets);
        if let Err(error) = timeout::short(release).await {
            tracing::warn!(%error, "cannot release leases, they expire");
        }
    }

    async fn renew_leases(&self) {
        let targets = self.in_flight_targets();
        if targets.is_empty() {
            return;
        }
        let Tracker { databases, owner, lease_duration, .. } = self.tracker;
        let renewal = leases::renew(&databases.pg, *owner, &targets, *lease_duration);
        if let Err(error) = timeout::short(renewal).await {
            tracing::warn!(%error, "cannot renew leases");
        }
    }
}

/// Chooses the end of an organization's queue at random. Strict alternation could fall into step with the organizations'
/// turns, so that one is always served from the same end.
fn random_order() -> LeaseOrder {
    if fastrand::bool() { LeaseOrder::OldestFirst } else { LeaseOrder::NewestFirst }
}

/// Groups targets that one response serves.
fn group_by_response(leased: Vec<LeasedTarget>) -> Vec<Vec<LeasedTarget>> {
    let mut groups: Vec<Vec<LeasedTarget>> = Vec::new();
    for target in leased {
        match groups.iter_mut().find(|group| group[0].shares_response(&target)) {
            Some(group) => group.push(target),
            None => groups.push(vec![target]),
        }
    }
    groups
}
