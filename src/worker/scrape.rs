//! One scrape: reads an account or video from its platform and records the result for every target that it serves.

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use uuid::Uuid;

use super::pictures::SeenPicture;
use super::scrape_report::{ScrapeReport, target_failure};
use super::timeout;
use super::tracker::{FailureKind, Tracker};
use crate::model::identifier::VideoIds;
use crate::model::observed::{AccountLatest, VideoLatest};
use crate::model::picture::PictureKind;
use crate::model::platform::Platform;
use crate::model::tracking::FailureReason;
use crate::platforms::source::{AccountKey, Depth, FetchedAccount, Post, PostKey, Profile};
use crate::store::observations::{
    AccountRef, ObservedAccount, ObservedVideo, VideoOrigin, save_accounts, save_videos,
};
use crate::store::postgres::clock::ClockReading;
use crate::store::tracking::leases::{self, LeasedTarget, TargetKind};
use crate::store::tracking::scrapes::{self, IdentityCheck, ObservedIdentity, PostIds, ScrapeAccount};
use crate::store::tracking::targets::{self, AttemptFailure, AttemptResult, DeepReads};
use crate::store::{Error, Write, retry_on_conflict};

/// After so many attempts in a row that did not find it, a target is unavailable.
const NOT_FOUND_LIMIT: i32 = 3;
/// The delay after the first failure. It doubles with every further one, up to the target's interval.
const FIRST_RETRY_DELAY: TimeDelta = TimeDelta::minutes(2);

/// Scrapes leased targets that one response serves: one video, or one platform account of several organizations.
/// Sources in `skip` are not requested.
pub(super) async fn scrape(
    tracker: &Tracker,
    targets: &[LeasedTarget],
    skip: &[&'static str],
) -> Result<ScrapeReport, Error> {
    let start = ScrapeStart::now(tracker).await;
    match targets {
        [target] if target.kind == TargetKind::Video => scrape_video(tracker, target, skip, start).await,
        accounts => scrape_account(tracker, accounts, skip, start).await,
    }
}

/// When a scrape began, by the service clock and by the machine's.
#[derive(Clone, Copy)]
struct ScrapeStart {
    now: DateTime<Utc>,
    machine: ClockReading,
}

impl ScrapeStart {
    async fn now(tracker: &Tracker) -> Self {
        let clock = &tracker.databases.clock;
        ScrapeStart { now: clock.now().await, machine: clock.read_machine() }
    }

    /// The service clock's time now, without asking it.
    fn elapsed_now(self) -> DateTime<Utc> {
        self.now + self.machine.elapsed()
    }
}

async fn scrape_account(
    tracker: &Tracker,
    targets: &[LeasedTarget],
    skip: &[&'static str],
    start: ScrapeStart,
) -> Result<ScrapeReport, Error> {
    let (pg, now) = (&tracker.databases.pg, start.now);
    let mut scrapes = Vec::with_capacity(targets.len());
    for target in targets {
        let account = scrapes::fetch_account(pg, target.organization_id, target.id, now);
        match timeout::short(account).await? {
            Some(account)
                if Some(&account.username) == target.username.as_ref()
                    && account.platform_id == target.platform_id =>
            {
                scrapes.push((TargetScrape { tracker, target, start }, account));
            }
            // Deleted or renamed while it was being leased.
            _ => timeout::short(leases::release(pg, tracker.owner, &[target.id])).await?,
        }
    }
    let Some((first, first_account)) = scrapes.first() else { return Ok(ScrapeReport::skipped()) };
    let platform = first.target.platform;
    let key = AccountKey {
        username: first_account.username.clone(),
        platform_id: first_account.platform_id.clone(),
    };
    let deepest = scrapes.iter().fold(depth(first_account), |deepest, (_, account)| Depth {
        max_posts: deepest.max_posts.max(depth(account).max_posts),
        not_before: deepest.not_before.min(account.not_before),
    });
    let fetched = tracker.sources.fetch_account(platform, &key, deepest, now, skip).await;
    let report = ScrapeReport::new(platform, &fetched, now);
    for (scrape, account) in &scrapes {
        match &fetched.result {
            Ok(response) => scrape.record_with_retry(|| scrape.record_account(account, response)).await?,
            Err(error) => {
                let Some(failure) = target_failure(error) else { break };
                let username = Some(account.username.as_str());
                scrape.record_with_retry(|| scrape.record_failure(&failure, username)).await?;
            }
        }
    }
    Ok(report)
}

async fn scrape_video(
    tracker: &Tracker,
    target: &LeasedTarget,
    skip: &[&'static str],
    start: ScrapeStart,
) -> Result<ScrapeReport, Error> {
    let pg = &tracker.databases.pg;
    let video = scrapes::fetch_video(pg, target.organization_id, target.id);
    let Some(video) = timeout::short(video).await? else {
        timeout::short(leases::release(pg, tracker.owner, &[target.id])).await?;
        return Ok(ScrapeReport::skipped());
    };
    let scrape = TargetScrape { tracker, target, start };
    let key =
        PostKey { external_id: video.external_id, shortcode: video.shortcode, username: video.username };
    let fetched = tracker.sources.fetch_post(target.platform, &key, start.now, skip).await;
    match &fetched.result {
        Ok(post) => scrape.record_with_retry(|| scrape.record_video(&key, post)).await?,
        Err(error) => {
            if let Some(failure) = target_failure(error) {
                scrape.record_with_retry(|| scrape.record_failure(&failure, None)).await?;
            }
        }
    }
    Ok(ScrapeReport::new(target.platform, &fetched, start.now))
}

/// Records that a scrape of these targets panicked.
pub(super) async fn record_panic(tracker: &Tracker, targets: &[LeasedTarget]) -> Result<(), Error> {
    let start = ScrapeStart::now(tracker).await;
    for target in targets {
        let scrape = TargetScrape { tracker, target, start };
        scrape.fail("the scrape stopped because of a bug in the tracker: see its log").await?;
    }
    Ok(())
}

fn depth(account: &ScrapeAccount) -> Depth {
    Depth { max_posts: account.max_posts.try_into().unwrap_or(usize::MAX), not_before: account.not_before }
}

/// Returns the posts within a depth. The response may be deeper, for another organization.
fn posts_within(posts: &[Post], depth: Depth) -> impl Iterator<Item = &Post> {
    let oldest = depth.not_before.and_time(NaiveTime::MIN).and_utc();
    posts
        .iter()
        .filter(move |post| post.fields.create_time.is_none_or(|time| time >= oldest))
        .take(depth.max_posts)
}

fn observed_profile(account: AccountRef, profile: &Profile, now: DateTime<Utc>) -> ObservedAccount {
    let mut latest = AccountLatest::default();
    latest.record(profile.fields.clone(), profile.counters, now);
    ObservedAccount { account, latest, observations: vec![(now, profile.counters)], scraped_at: Some(now) }
}

fn observed_post(platform: Platform, origin: VideoOrigin, post: &Post, now: DateTime<Utc>) -> ObservedVideo {
    let counters = post.counters.normalize_for(platform);
    let mut latest = VideoLatest::default();
    latest.record(post.fields.clone(), counters, now);
    ObservedVideo {
        platform,
        external_id: Some(post.external_id.clone()),
        shortcode: post.shortcode.clone(),
        origin,
        latest,
        observations: vec![(now, counters)],
        scraped_at: Some(now),
    }
}

fn seen_covers(covers: Vec<(Uuid, String)>) -> Vec<SeenPicture> {
    let seen = |(record_id, url)| SeenPicture { record_id, kind: PictureKind::Cover, url };
    covers.into_iter().map(seen).collect()
}

/// The scrape of one target.
struct TargetScrape<'a> {
    tracker: &'a Tracker,
    target: &'a LeasedTarget,
    start: ScrapeStart,
}

impl TargetScrape<'_> {
    async fn begin(&self) -> Result<Write, Error> {
        Write::begin(&self.tracker.databases.pg, self.target.organization_id).await
    }

    async fn record_account(&self, account: &ScrapeAccount, response: &FetchedAccount) -> Result<(), Error> {
        let (id, platform, profile) = (self.target.id, self.target.platform, &response.profile);
        let mut write = self.begin().await?;
        let mut posts = PostIds::default();
        posts.extend(response.posts.iter().map(|post| post.ids(platform)));
        let identity = ObservedIdentity {
            platform_id: profile.platform_id.as_deref(),
            username: &profile.username,
            posts: &posts,
            not_before: account.not_before,
        };
        let mut seen = Vec::new();
        let attempt =
            match scrapes::check_identity(&mut write, id, &account.username, identity, self.start.now).await?
            {
                IdentityCheck::Matches => {
                    let account_ref = AccountRef { id, subject_id: account.internal_id };
                    let observed = observed_profile(account_ref, profile, self.start.now);
                    save_accounts(&mut write, vec![observed]).await?;
                    let observed_posts = posts_within(&response.posts, depth(account)).map(|post| {
                        observed_post(platform, VideoOrigin::Account(account_ref), post, self.start.now)
                    });
                    let saved = save_videos(&mut write, self.start.now, observed_posts.collect()).await?;
                    seen = seen_covers(saved.covers);
                    let url = profile.fields.profile_pic_url.clone();
                    seen.extend(url.map(|url| SeenPicture {
                        record_id: id,
                        kind: PictureKind::Profile,
                        url,
                    }));
                    self.successful_attempt(account.deep_reads)
                }
                IdentityCheck::OtherAccount(error) => {
                    let failure = AttemptFailure { reason: FailureReason::NotFound, error };
                    self.failed_attempt(failure, self.target.not_found_runs + 1)
                }
                IdentityCheck::Renamed => return self.release(write).await,
                IdentityCheck::Deleted => return Ok(()),
            };
        self.finish(write, self.target.id, attempt, seen).await
    }

    async fn record_video(&self, key: &PostKey, post: &Post) -> Result<(), Error> {
        let mut write = self.begin().await?;
        if !scrapes::set_video_unavailable(&mut write, self.target.id, false).await? {
            return Ok(());
        }
        let platform = self.target.platform;
        let mut observed =
            observed_post(platform, VideoOrigin::Individual { is_active: true }, post, self.start.now);
        // The response may lack the id by which the row is stored.
        let requested = VideoIds::new(platform, key.external_id.as_deref(), key.shortcode.as_deref());
        observed.add_ids(requested);
        let saved = save_videos(&mut write, self.start.now, vec![observed]).await?;
        // The response may show that the target duplicates another video.
        let target = saved.merged.get(&self.target.id).copied().unwrap_or(self.target.id);
        if target != self.target.id {
            scrapes::set_video_unavailable(&mut write, target, false).await?;
        }
        let attempt = self.successful_attempt(DeepReads::default());
        self.finish(write, target, attempt, seen_covers(saved.covers)).await
    }

    /// Records a failed attempt, unless the account was renamed since it was requested as `username`.
    async fn record_failure(&self, failure: &AttemptFailure, username: Option<&str>) -> Result<(), Error> {
        let mut write = self.begin().await?;
        if let Some(username) = username
            && !scrapes::lock_and_compare_username(&mut write, self.target.id, username).await?
        {
            return self.release(write).await;
        }
        let is_not_found = failure.reason == FailureReason::NotFound;
        let not_found_runs = self.target.not_found_runs + i32::from(is_not_found);
        let id = self.target.id;
        if is_not_found && not_found_runs >= NOT_FOUND_LIMIT {
            match self.target.kind {
                TargetKind::Account => {
                    scrapes::mark_unavailable(&mut write, id, true, self.start.now).await?
                }
                TargetKind::Video => _ = scrapes::set_video_unavailable(&mut write, id, true).await?,
            }
        }
        self.finish(write, id, self.failed_attempt(failure.clone(), not_found_runs), Vec::new()).await
    }

    /// Records a result, and retries conflicts. If that fails, records a failed attempt, because the next attempt would
    /// fail the same way. While Postgres is down, the lease expires instead.
    async fn record_with_retry<F>(&self, record: impl FnMut() -> F) -> Result<(), Error>
    where
        F: Future<Output = Result<(), Error>>,
    {
        let Err(error) = timeout::long(retry_on_conflict(record)).await else { return Ok(()) };
        let (target, platform) = (self.target.id, self.target.platform);
        if matches!(error, Error::NotFound("organization")) {
            tracing::debug!(%target, "dropping a scrape of a deleted organization");
            return Ok(());
        }
        if error.is_write_conflict() {
            // Others may share the response.
            tracing::warn!(%error, %target, "another change holds locks for too long, dropping the scrape");
            return timeout::short(self.release_lease()).await;
        }
        if error.is_unavailable() {
            return Err(error);
        }
        if self.tracker.should_log(platform, FailureKind::Unrecorded) {
            tracing::error!(%error, %target, %platform, "cannot record scrape");
        } else {
            tracing::debug!(%error, %target, %platform, "cannot record scrape");
        }
        self.fail("the response could not be recorded: see the tracker's log").await
    }

    async fn fail(&self, error: &str) -> Result<(), Error> {
        let failure = AttemptFailure { reason: FailureReason::Internal, error: error.to_owned() };
        let attempt = self.failed_attempt(failure, self.target.not_found_runs);
        timeout::short(async { self.finish(self.begin().await?, self.target.id, attempt, Vec::new()).await })
            .await
    }

    fn successful_attempt(&self, deep_reads: DeepReads) -> AttemptResult {
        AttemptResult {
            at: self.start.now,
            ended_at: self.start.elapsed_now(),
            retry_delay: None,
            failure: None,
            failures: 0,
            not_found_runs: 0,
            deep_reads,
        }
    }

    fn failed_attempt(&self, failure: AttemptFailure, not_found_runs: i32) -> AttemptResult {
        let delay = FIRST_RETRY_DELAY * (1 << self.target.failures.clamp(0, 20));
        AttemptResult {
            at: self.start.now,
            ended_at: self.start.elapsed_now(),
            retry_delay: Some(delay),
            failure: Some(failure),
            failures: self.target.failures.saturating_add(1),
            not_found_runs,
            deep_reads: DeepReads::default(),
        }
    }

    /// Commits the attempt if this process still holds the lease, and if its clock was right when the scrape began. Then
    /// offers the pictures that it saw.
    async fn finish(
        &self,
        mut write: Write,
        target: Uuid,
        attempt: AttemptResult,
        seen: Vec<SeenPicture>,
    ) -> Result<(), Error> {
        let finished = targets::finish_attempt(&mut write, self.tracker.owner, target, attempt).await?;
        let Some(postgres_now) = finished else {
            tracing::warn!(target = %self.target.id, "lease lost, dropping the scrape");
            return Ok(());
        };
        if self.start.machine.skew(postgres_now).is_excessive() {
            // Its connection is free for the next comparison, also if every scrape has one.
            drop(write);
            if self.tracker.is_clock_right().await? {
                tracing::warn!(
                    target = %self.target.id,
                    "the clock was wrong or the machine suspended, dropping the scrape"
                );
            }
            return self.release_lease().await;
        }
        write.commit().await?;
        self.tracker.pictures.offer(self.target.organization_id, self.target.platform, seen);
        Ok(())
    }

    /// Rolls back and releases the lease. The target stays due.
    async fn release(&self, write: Write) -> Result<(), Error> {
        drop(write);
        self.release_lease().await
    }

    async fn release_lease(&self) -> Result<(), Error> {
        leases::release(&self.tracker.databases.pg, self.tracker.owner, &[self.target.id]).await
    }
}
