//! One scrape: asks the platform once, and records what was learned, for each target in one transaction of its own.

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use uuid::Uuid;

use super::mapping::{observed_post, observed_profile};
use super::tracker::{FailureKind, Tracker};
use super::{BRIEF, LONG, within};
use crate::platforms::source::{AccountKey, Depth, FetchedAccount, Post, PostKey, SourceError};
use crate::platforms::sources::FetchOutcome;
use crate::store::observations::{AccountRef, FoundOn, observe_accounts, observe_videos};
use crate::store::tracking::leases::{self, LeasedTarget, TargetKind};
use crate::store::tracking::scrapes::{self, IdentityCheck, ObservedIdentity};
use crate::store::tracking::source_pauses::PauseCause;
use crate::store::tracking::targets::{self, Attempt, DeepReads};
use crate::store::{Error, Write, retry_on_conflict};

/// How a scrape ended for the platform's queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScrapeOutcome {
    /// The platform answered, be it that there is nothing.
    Responded,
    /// The platform was not asked: there is nothing left to read, or no source that can.
    Skipped,
    /// The platform's answer was of no use to anybody, or it could not be asked for a fault of our own.
    Failed(SourceError),
    /// No source that could may be asked for a while; the targets are to be given back.
    Paused,
}

/// A scrape that came to its end, and what its sources showed of themselves.
#[derive(Debug)]
pub struct Scraped {
    pub outcome: ScrapeOutcome,
    /// The sources that answered.
    pub answered: Vec<&'static str>,
    /// Those that may not be asked for a while.
    pub resting: Vec<Rest>,
}

/// Until when a source is not to be asked, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    pub source: &'static str,
    pub until: DateTime<Utc>,
    pub cause: PauseCause,
    pub reason: String,
}

impl Scraped {
    fn new<T>(outcome: ScrapeOutcome, fetched: &FetchOutcome<T>, now: DateTime<Utc>) -> Self {
        let resting = fetched.paused.iter().filter_map(|(source, error)| rest(source, error, now));
        Scraped { outcome, answered: fetched.responded.clone(), resting: resting.collect() }
    }

    fn not_asked() -> Self {
        Scraped { outcome: ScrapeOutcome::Skipped, answered: Vec::new(), resting: Vec::new() }
    }
}

/// A thing that was not found so many times in a row is unavailable.
const RUNS_UNTIL_UNAVAILABLE: i32 = 3;
/// The first pause after a failure; it doubles with every further one, up to the target's own interval.
const FIRST_PAUSE: TimeDelta = TimeDelta::minutes(2);
/// How long a source rests after its credentials were refused.
const CREDENTIALS_PAUSE: TimeDelta = TimeDelta::minutes(5);

/// A leased target in the hands of one tracker at one moment.
struct Scrape<'a> {
    tracker: &'a Tracker,
    target: &'a LeasedTarget,
    now: DateTime<Utc>,
    interval_hours: i32,
}

/// Scrapes leased targets that one answer serves: one video, or one platform account of several organizations.
/// Sources in `skip` are not asked.
pub async fn scrape(
    tracker: &Tracker,
    targets: &[LeasedTarget],
    skip: &[&'static str],
) -> Result<Scraped, Error> {
    let now = tracker.stores.clock.now().await;
    match targets {
        [target] if target.kind == TargetKind::Video => video(tracker, target, skip, now).await,
        accounts => account(tracker, accounts, skip, now).await,
    }
}

async fn account(
    tracker: &Tracker,
    targets: &[LeasedTarget],
    skip: &[&'static str],
    now: DateTime<Utc>,
) -> Result<Scraped, Error> {
    let mut members = Vec::with_capacity(targets.len());
    for target in targets {
        // One that is gone was deleted, and one with another name renamed, while it was being leased.
        let account = scrapes::fetch_account(&tracker.stores.pg, target.organization_id, target.id, now);
        match within(BRIEF, account).await? {
            Some(account)
                if Some(&account.username) == target.username.as_ref()
                    && account.platform_id == target.platform_id =>
            {
                let interval_hours = account.scrape_interval_hours;
                members.push((Scrape { tracker, target, now, interval_hours }, account));
            }
            _ => within(BRIEF, leases::release(&tracker.stores.pg, tracker.owner, &[target.id])).await?,
        }
    }
    let Some((first, known)) = members.first() else { return Ok(Scraped::not_asked()) };
    let key = AccountKey { username: known.username.clone(), platform_id: known.platform_id.clone() };
    let deepest = members.iter().map(|(_, account)| depth(account)).reduce(|one, other| Depth {
        max_posts: one.max_posts.max(other.max_posts),
        not_before: one.not_before.min(other.not_before),
    });
    let deepest = deepest.unwrap_or_else(|| depth(known));
    let fetched = tracker.sources.fetch_account(first.target.platform, &key, deepest, now, skip).await;
    let outcome = ended(&fetched);
    match &fetched.result {
        Ok(answer) => {
            for (member, account) in &members {
                let recorded = recording(|| member.record_account(account, answer)).await;
                member.conclude(recorded).await?;
            }
        }
        Err(_) if outcome == ScrapeOutcome::Paused => {}
        // Nobody is blamed for a store that is out: the leases are left to run out.
        Err(SourceError::BudgetUnavailable(_)) => {}
        Err(error) => {
            for (member, account) in &members {
                let recorded = recording(|| member.refused(error, Some(&account.username))).await;
                member.conclude(recorded).await?;
            }
        }
    }
    Ok(Scraped::new(outcome, &fetched, now))
}

async fn video(
    tracker: &Tracker,
    target: &LeasedTarget,
    skip: &[&'static str],
    now: DateTime<Utc>,
) -> Result<Scraped, Error> {
    let pg = &tracker.stores.pg;
    let Some(known) = within(BRIEF, scrapes::fetch_video(pg, target.organization_id, target.id)).await?
    else {
        within(BRIEF, leases::release(pg, tracker.owner, &[target.id])).await?;
        return Ok(Scraped::not_asked());
    };
    let scrape = Scrape { tracker, target, now, interval_hours: known.scrape_interval_hours };
    let key =
        PostKey { external_id: known.external_id, shortcode: known.shortcode, username: known.username };
    let fetched = tracker.sources.fetch_post(target.platform, &key, now, skip).await;
    let outcome = ended(&fetched);
    match &fetched.result {
        Ok(post) => {
            let recorded = recording(|| scrape.record_video(&key, post)).await;
            scrape.conclude(recorded).await?;
        }
        Err(_) if outcome == ScrapeOutcome::Paused => {}
        Err(SourceError::BudgetUnavailable(_)) => {}
        Err(error) => {
            let recorded = recording(|| scrape.refused(error, None)).await;
            scrape.conclude(recorded).await?;
        }
    }
    Ok(Scraped::new(outcome, &fetched, now))
}

/// Records what was learned, again while others are in the way.
async fn recording<F>(change: impl FnMut() -> F) -> Result<(), Error>
where
    F: Future<Output = Result<(), Error>>,
{
    within(LONG, retry_on_conflict(change)).await
}

/// Records that attempts at leased targets broke off in the middle, which no answer of a platform should bring about.
pub async fn broke_off(tracker: &Tracker, targets: &[LeasedTarget]) -> Result<(), Error> {
    let now = tracker.stores.clock.now().await;
    for target in targets {
        let interval_hours =
            targets::fetch_interval_hours(&tracker.stores.pg, target.organization_id, target.id);
        let Some(interval_hours) = within(BRIEF, interval_hours).await? else { continue };
        let scrape = Scrape { tracker, target, now, interval_hours };
        let why = "the scrape broke off by a fault of the tracker: see its log".to_owned();
        let attempt = scrape.failed(why, target.not_found_runs);
        within(BRIEF, async { scrape.finish(scrape.begin().await?, target.id, attempt).await }).await?;
    }
    Ok(())
}

/// What only concerns a source is not held against the target.
fn rest(source: &'static str, error: &SourceError, now: DateTime<Utc>) -> Option<Rest> {
    let (until, cause) = match error {
        SourceError::RateLimited { until } => (*until, PauseCause::RateLimit),
        SourceError::Credentials(_) => (now + CREDENTIALS_PAUSE, PauseCause::Credentials),
        SourceError::NotFound(_)
        | SourceError::Transient(_)
        | SourceError::Malformed(_)
        | SourceError::Unsupported
        | SourceError::BudgetUnavailable(_) => {
            return None;
        }
    };
    Some(Rest { source, until, cause, reason: error.to_string() })
}

fn ended<T>(fetched: &FetchOutcome<T>) -> ScrapeOutcome {
    match &fetched.result {
        Ok(_) | Err(SourceError::NotFound(_)) => ScrapeOutcome::Responded,
        Err(SourceError::RateLimited { .. } | SourceError::Credentials(_)) => ScrapeOutcome::Paused,
        Err(SourceError::Unsupported) => ScrapeOutcome::Skipped,
        Err(error) => ScrapeOutcome::Failed(error.clone()),
    }
}

fn depth(account: &scrapes::ScrapeAccount) -> Depth {
    Depth { max_posts: account.max_posts.try_into().unwrap_or(usize::MAX), not_before: account.not_before }
}

/// The posts of an answer that lie within a depth; the answer may have been read deeper for another organization.
fn as_deep_as(posts: &[Post], depth: Depth) -> impl Iterator<Item = &Post> {
    let oldest = depth.not_before.and_time(NaiveTime::MIN).and_utc();
    posts.iter().filter(move |post| post.create_time.is_none_or(|time| time >= oldest)).take(depth.max_posts)
}

impl Scrape<'_> {
    async fn begin(&self) -> Result<Write, Error> {
        Write::begin(&self.tracker.stores.pg, self.target.organization_id).await
    }

    async fn record_account(
        &self,
        account: &scrapes::ScrapeAccount,
        answer: &FetchedAccount,
    ) -> Result<(), Error> {
        let (id, platform, profile) = (self.target.id, self.target.platform, &answer.profile);
        let mut write = self.begin().await?;
        let posts: Vec<&str> = answer.posts.iter().map(|post| post.external_id.as_str()).collect();
        let said = ObservedIdentity {
            platform_id: profile.platform_id.as_deref(),
            username: &profile.username,
            post_ids: &posts,
            not_before: account.not_before,
        };
        let attempt = match scrapes::check_identity(&mut write, id, &account.username, said).await? {
            IdentityCheck::Matches => {
                let known = AccountRef { id, subject_id: account.internal_id };
                let profile = observed_profile(known, profile, self.now);
                observe_accounts(&mut write, vec![profile]).await?;
                let posts = as_deep_as(&answer.posts, depth(account))
                    .map(|post| observed_post(platform, FoundOn::Account(known), post, self.now));
                observe_videos(&mut write, self.now, posts.collect()).await?;
                self.succeeded(account.deep_reads)
            }
            IdentityCheck::OtherAccount(why) => self.failed(why, self.target.not_found_runs),
            IdentityCheck::Renamed => return self.give_back(write).await,
            IdentityCheck::Deleted => return Ok(()),
        };
        self.finish(write, self.target.id, attempt).await
    }

    async fn record_video(&self, key: &PostKey, post: &Post) -> Result<(), Error> {
        let mut write = self.begin().await?;
        if !scrapes::set_video_unavailable(&mut write, self.target.id, false).await? {
            return Ok(());
        }
        let mut observed =
            observed_post(self.target.platform, FoundOn::Itself { active: true }, post, self.now);
        // The name under which it is known leads to its row, whatever else the answer reveals.
        observed.shortcode = observed.shortcode.or_else(|| key.shortcode.clone());
        let merged = observe_videos(&mut write, self.now, vec![observed]).await?.merged;
        // What was scraped may turn out to be a video that was known before, under another name.
        let target = merged.get(&self.target.id).copied().unwrap_or(self.target.id);
        self.finish(write, target, self.succeeded(DeepReads::default())).await
    }

    /// Records why nothing was learned, unless that was said of a name that the account had before.
    async fn refused(&self, error: &SourceError, asked: Option<&str>) -> Result<(), Error> {
        let mut write = self.begin().await?;
        if let Some(asked) = asked
            && !scrapes::has_username(&mut write, self.target.id, asked).await?
        {
            return self.give_back(write).await;
        }
        let not_found = matches!(error, SourceError::NotFound(_));
        let runs = if not_found { self.target.not_found_runs + 1 } else { self.target.not_found_runs };
        if not_found && runs >= RUNS_UNTIL_UNAVAILABLE {
            match self.target.kind {
                TargetKind::Account => {
                    scrapes::set_account_unavailable(&mut write, self.target.id, true).await?
                }
                TargetKind::Video => {
                    _ = scrapes::set_video_unavailable(&mut write, self.target.id, true).await?
                }
            }
        }
        let attempt = self.failed(error.to_string(), runs);
        self.finish(write, self.target.id, attempt).await
    }

    /// Ends the attempt at what could not be recorded, so that it is not made again and again: whatever stands in
    /// the way is there at the next attempt too. Only while a store is out, the lease is left to run out.
    async fn conclude(&self, recorded: Result<(), Error>) -> Result<(), Error> {
        let Err(error) = recorded else { return Ok(()) };
        if matches!(error, Error::NotFound("organization")) {
            // It was deleted meanwhile, and with it what would be recorded.
            tracing::debug!(target = %self.target.id, "dropping what was read for an organization that is gone");
            return Ok(());
        }
        if error.is_unavailable() {
            return Err(error);
        }
        let (target, platform) = (self.target.id, self.target.platform);
        if self.tracker.should_log(platform, FailureKind::Unrecorded) {
            tracing::error!(%error, %target, %platform, "what scrapes learn cannot be recorded");
        } else {
            tracing::debug!(%error, %target, %platform, "what a scrape learned cannot be recorded");
        }
        let why = "what the platform answered could not be recorded: see the tracker's log".to_owned();
        let attempt = self.failed(why, self.target.not_found_runs);
        within(BRIEF, async { self.finish(self.begin().await?, self.target.id, attempt).await }).await
    }

    /// The next attempt follows after the interval, a little earlier or later than all others.
    fn succeeded(&self, deep_reads: DeepReads) -> Attempt {
        let interval = TimeDelta::hours(self.interval_hours.into());
        Attempt {
            at: self.now,
            next: self.now + jittered(interval),
            error: None,
            failures: 0,
            not_found_runs: 0,
            deep_reads,
        }
    }

    fn failed(&self, error: String, not_found_runs: i32) -> Attempt {
        let interval = TimeDelta::hours(self.interval_hours.into());
        let pause = FIRST_PAUSE * (1 << self.target.failures.clamp(0, 20));
        Attempt {
            at: self.now,
            next: self.now + jittered(pause.min(interval)),
            error: Some(error),
            failures: self.target.failures.saturating_add(1),
            not_found_runs,
            deep_reads: DeepReads::default(),
        }
    }

    async fn finish(&self, mut write: Write, target: Uuid, attempt: Attempt) -> Result<(), Error> {
        if targets::finish_attempt(&mut write, self.tracker.owner, target, attempt).await? {
            write.commit().await?;
        } else {
            tracing::warn!(target = %self.target.id, "the lease was lost before the scrape was recorded; dropping it");
        }
        Ok(())
    }

    /// Gives up what was begun and leaves the target as it was.
    async fn give_back(&self, begun: Write) -> Result<(), Error> {
        drop(begun);
        leases::release(&self.tracker.stores.pg, self.tracker.owner, &[self.target.id]).await
    }
}

/// Shortens an interval by up to a twentieth, so that a daily target is seen every day and not all come at once.
fn jittered(interval: TimeDelta) -> TimeDelta {
    let factor = 1.0 - fastrand::f64() / 20.0;
    TimeDelta::milliseconds((interval.num_milliseconds() as f64 * factor) as i64)
}
