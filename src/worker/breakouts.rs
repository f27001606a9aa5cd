//! Finds breakouts among the posts whose views at an age are known now, most of them since midnight UTC, and records an event of
//! each.
//!
//! One process at a time looks, but that only saves work: a candidate leaves the table in the transaction of its event.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::passes::{self, PassTask};
use super::timeout;
use crate::app::Databases;
use crate::failpoint;
use crate::model::event::{BREAKOUT_AGES, EventData, EventType};
use crate::store::analytics::HistoryReader;
use crate::store::analytics::breakouts::{self, Breakout};
use crate::store::analytics::rollup_cache::RollupCache;
use crate::store::clickhouse::history_writer;
use crate::store::outbox::{self, visibility};
use crate::store::postgres::advisory_lock::{AdvisoryLock, LockName};
use crate::store::records::events::NewEvent;
use crate::store::records::events::candidates::{
    self, ComparedCandidate, DueCandidate, end_of_age, end_of_search,
};
use crate::store::{Error, Write, retry_on_conflict};

/// Candidates that are compared at a time.
const BATCH_ROWS: i64 = 2_000;
/// How long to wait for the relay.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);
const DELIVERY_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a scrape that began before the end of a day may take.
const SCRAPE_GRACE: TimeDelta = TimeDelta::hours(1);

enum BreakoutLockName {}

impl LockName for BreakoutLockName {
    const NAME: &'static str = "tidemark.breakouts";
}

/// Looks for breakouts until it is stopped.
pub async fn run(databases: Databases, stop: CancellationToken) {
    passes::run(BreakoutFinder::new(databases), stop).await;
}

/// Looks for breakouts once.
pub async fn find(databases: &Databases) -> Result<(), Error> {
    BreakoutFinder::new(databases.clone()).run_pass().await
}

struct BreakoutFinder {
    databases: Databases,
    history: HistoryReader,
}

impl PassTask for BreakoutFinder {
    const FAILURE: &'static str = "cannot look for breakouts";
    const INTERVAL: Duration = Duration::from_secs(10);

    async fn run_pass(&mut self) -> Result<(), Error> {
        let (pg, now) = (&self.databases.pg, self.databases.clock.now().await);
        let mut due = timeout::short(candidates::fetch_due(pg, now, None, BATCH_ROWS)).await?;
        if due.is_empty() {
            return Ok(());
        }
        let lock = timeout::short(AdvisoryLock::<BreakoutLockName>::try_acquire(pg)).await?;
        let Some(mut lock) = lock else { return Ok(()) };
        let mut result = Ok(());
        while let Some(last) = due.last().copied() {
            result = result.and(self.compare_batch(now, due).await);
            timeout::short(lock.ensure_held()).await?;
            due = timeout::short(candidates::fetch_due(pg, now, Some(&last), BATCH_ROWS)).await?;
        }
        timeout::short(lock.release()).await?;
        result
    }
}

impl BreakoutFinder {
    fn new(databases: Databases) -> Self {
        let client = databases.clickhouse.clone().with_setting("log_comment", "breakouts");
        let history = HistoryReader::new(&client, 1, RollupCache::new(0));
        BreakoutFinder { databases, history }
    }

    /// Compares candidates. A failed organization does not stop the others; the first error is returned.
    async fn compare_batch(&self, now: DateTime<Utc>, due: Vec<DueCandidate>) -> Result<(), Error> {
        let mut by_organization: BTreeMap<Uuid, Vec<DueCandidate>> = BTreeMap::new();
        for candidate in due {
            by_organization.entry(candidate.organization_id).or_default().push(candidate);
        }
        let undelivered = self.wait_for_relay(by_organization.keys().copied().collect()).await?;
        let mut result = Ok(());
        for (organization, candidates) in by_organization {
            if undelivered.contains(&organization) {
                continue;
            }
            match self.compare(organization, now, &candidates).await {
                // Deleted meanwhile.
                Err(Error::NotFound("organization")) => {}
                compared => result = result.and(compared),
            }
        }
        result
    }

    /// Waits until ClickHouse has what was committed, and returns the organizations of which it has not.
    async fn wait_for_relay(&self, organizations: Vec<Uuid>) -> Result<HashSet<Uuid>, Error> {
        let pg = &self.databases.pg;
        let position = timeout::short(visibility::last_position(pg)).await?;
        let deadline = Instant::now() + DELIVERY_TIMEOUT;
        let pending = loop {
            let pending = timeout::short(visibility::fetch_pending(pg, &organizations, position)).await?;
            if pending.is_empty() || Instant::now() >= deadline {
                break pending;
            }
            tokio::time::sleep(DELIVERY_POLL_INTERVAL).await;
        };
        // A ClickHouse that lost deliveries gets them again.
        let applied = timeout::short(outbox::last_applied_delivery(pg)).await?;
        let delivered = history_writer::last_delivery(&self.databases.clickhouse).await?.number;
        Ok(if delivered < applied { organizations.into_iter().collect() } else { pending })
    }

    async fn compare(
        &self,
        organization: Uuid,
        now: DateTime<Utc>,
        due: &[DueCandidate],
    ) -> Result<(), Error> {
        let pg = &self.databases.pg;
        let since = timeout::short(candidates::fetch_history_since(pg, organization)).await?;
        let history = self.history.clone().with_history_since(since);
        let history = timeout::short(history.current(pg, organization)).await?;
        let complete_through = now.date_naive() - Days::new(1);
        let mut known = HashMap::new();
        for age in BREAKOUT_AGES {
            let reaches = |candidate: &&DueCandidate| has_reached(candidate, age, complete_through);
            let reached = due.iter().filter(reaches).filter_map(|candidate| candidate.account_subject);
            let subjects: HashSet<i64> = reached.collect();
            if !subjects.is_empty() {
                let subjects = subjects.into_iter().collect();
                known
                    .insert(age, breakouts::compare_at_age(&history, subjects, age, complete_through).await?);
            }
        }
        let (mut found, mut compared) = (Vec::new(), Vec::new());
        for candidate in due {
            let known_at = |age: u16| known.get(&age)?.get(&candidate.video_id).copied();
            match outcome(candidate, now, known_at) {
                Outcome::Breakout(age, breakout) => found.push((candidate.video_id, age, breakout)),
                Outcome::Next(next) => compared.push(ComparedCandidate { candidate: *candidate, next }),
            }
        }
        timeout::short(candidates::settle(pg, organization, &compared)).await?;
        failpoint::reached("breakouts-settled");
        if found.is_empty() {
            return Ok(());
        }
        timeout::long(retry_on_conflict(|| self.report(organization, now, &found))).await
    }

    async fn report(
        &self,
        organization: Uuid,
        now: DateTime<Utc>,
        found: &[(Uuid, u16, Breakout)],
    ) -> Result<(), Error> {
        let mut write = Write::begin(&self.databases.pg, organization).await?;
        let videos: Vec<_> = found.iter().map(|(video, ..)| *video).collect();
        let taken: HashSet<_> = candidates::take(&mut write, &videos).await?.into_iter().collect();
        for (video, age, breakout) in found.iter().filter(|(video, ..)| taken.contains(video)) {
            let data = EventData {
                age_days: Some(*age),
                actual: Some(breakout.views),
                baseline: Some(breakout.baseline_in_tenths as f64 / 10.0),
                multiple: Some(breakout.multiple_in_hundredths as f64 / 100.0),
                ..EventData::default()
            };
            write.record_event(NewEvent::of_video(EventType::VideoBreakout, *video, data), now);
        }
        failpoint::reached("breakouts-found");
        write.commit().await?;
        failpoint::reached("breakouts-reported");
        Ok(())
    }
}

fn posted_on(candidate: &DueCandidate) -> Option<NaiveDate> {
    candidate.create_time.map(|time| time.date_naive())
}

/// Whether the day has passed on which a post reached an age.
fn has_reached(candidate: &DueCandidate, age: u16, complete_through: NaiveDate) -> bool {
    let reached = posted_on(candidate).map(|day| day + Days::new(age.into()));
    reached.is_some_and(|day| day <= complete_through)
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    Breakout(u16, Breakout),
    /// The next age and when it is due; none, if there is none.
    Next(Option<(u16, DateTime<Utc>)>),
}

/// Decides by what is known of a post at an age: nothing, that it is no breakout, or that it is one.
fn outcome(
    candidate: &DueCandidate,
    now: DateTime<Utc>,
    known_at: impl Fn(u16) -> Option<Option<Breakout>>,
) -> Outcome {
    let posted = posted_on(candidate).filter(|_| candidate.account_subject.is_some());
    let Some(posted) = posted else { return Outcome::Next(None) };
    let (mut unknown, mut upcoming) = (None, None);
    for age in BREAKOUT_AGES.into_iter().filter(|age| *age >= candidate.age_days) {
        if end_of_age(posted, age) > now {
            upcoming = upcoming.or(Some(age));
            continue;
        }
        match known_at(age) {
            Some(Some(breakout)) => return Outcome::Breakout(age, breakout),
            Some(None) => {}
            None => unknown = unknown.or(Some(age)),
        }
    }
    let dues = [
        upcoming.map(|age| end_of_age(posted, age)),
        unknown.map(|age| end_of_age(posted, age) + SCRAPE_GRACE),
        unknown.map(|_| end_of_search(posted)),
    ];
    let due_at = dues.into_iter().flatten().filter(|due_at| *due_at > now).min();
    Outcome::Next(unknown.or(upcoming).zip(due_at))
}

#[cfg(test)]
mod tests {
    use chrono::NaiveTime;

    use super::*;

    const BREAKOUT: Breakout = Breakout {
        id: Uuid::nil(),
        views: 900,
        is_interpolated: false,
        baseline_in_tenths: 1_000,
        multiple_in_hundredths: 900,
        sample: 10,
    };

    fn at(day: u64, hour: i64) -> DateTime<Utc> {
        let first = NaiveDate::from_ymd_opt(2026, 3, 1).unwrap().and_time(NaiveTime::MIN).and_utc();
        first + Days::new(day - 1) + TimeDelta::hours(hour)
    }

    /// The outcome for a post of 1 March with some knowledge of each age.
    fn compare(age_days: u16, now: DateTime<Utc>, known: [Option<Option<Breakout>>; 3]) -> Outcome {
        let candidate = DueCandidate {
            organization_id: Uuid::nil(),
            video_id: Uuid::nil(),
            age_days,
            due_at: now,
            create_time: Some(at(1, 20)),
            account_subject: Some(1),
        };
        outcome(&candidate, now, |age| known[BREAKOUT_AGES.iter().position(|one| *one == age).unwrap()])
    }

    #[test]
    fn post_is_a_breakout_at_the_first_age_that_shows_it() {
        let known = [Some(None), Some(Some(BREAKOUT)), Some(Some(BREAKOUT))];
        assert_eq!(compare(1, at(3, 0), known), Outcome::Next(Some((3, at(5, 0)))));
        assert_eq!(compare(3, at(5, 0), known), Outcome::Breakout(3, BREAKOUT));
        assert_eq!(compare(1, at(20, 0), known), Outcome::Breakout(3, BREAKOUT), "after an outage");
        assert_eq!(compare(7, at(9, 0), [Some(None); 3]), Outcome::Next(None));
    }

    #[test]
    fn views_that_are_unknown_are_awaited() {
        let none = [None; 3];
        assert_eq!(compare(1, at(3, 0), none), Outcome::Next(Some((1, at(3, 1)))), "a scrape may be running");
        assert_eq!(compare(1, at(3, 1), none), Outcome::Next(Some((1, at(5, 0)))));
        assert_eq!(compare(7, at(9, 2), none), Outcome::Next(Some((7, at(91, 0)))));
        assert_eq!(compare(7, at(91, 0), none), Outcome::Next(None));
        let late = [None, Some(Some(BREAKOUT)), None];
        assert_eq!(compare(1, at(5, 0), late), Outcome::Breakout(3, BREAKOUT));
    }
}
