//! One scrape: asks the platform, and records everything that was learned in one transaction.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::tracking::Tracker;
use crate::model::latest::{AccountLatest, VideoLatest, learn};
use crate::model::platform::Platform;
use crate::platforms::source::{AccountAnswer, AccountKey, Depth, Post, PostKey, Profile, Refusal};
use crate::store::observations::{
    AccountRef, FoundOn, ObservedAccount, ObservedVideo, ProfileFigures, observe_accounts, observe_videos,
};
use crate::store::scrapes::{self, Identity};
use crate::store::targets::{self, Attempt, Kind, Leased};
use crate::store::{Error, Write};

/// How an attempt ended for the platform's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Recorded, success and failure alike.
    Done,
    RateLimited {
        until: DateTime<Utc>,
    },
    CredentialsRefused,
}

/// A thing that was not found so many times in a row is unavailable.
const RUNS_UNTIL_UNAVAILABLE: i32 = 3;
/// A unit of work that contends with another one is tried so often.
const TRIES: usize = 5;
/// The first pause after a failure; it doubles with every further one, up to the target's own interval.
const FIRST_PAUSE: TimeDelta = TimeDelta::minutes(2);

/// A leased target in the hands of one tracker at one moment.
struct Scrape<'a> {
    tracker: &'a Tracker,
    target: &'a Leased,
    now: DateTime<Utc>,
    interval_hours: i32,
}

/// Scrapes a leased target.
pub async fn scrape(tracker: &Tracker, target: &Leased) -> Result<Outcome, Error> {
    let now = tracker.stores.clock.now().await;
    let (pg, organization) = (&tracker.stores.pg, target.organization_id);
    // A target that is gone was deleted while it was being leased.
    match target.kind {
        Kind::Account => match scrapes::account(pg, organization, target.id, now).await? {
            Some(account) => {
                let scrape = Scrape { tracker, target, now, interval_hours: account.scrape_interval_hours };
                scrape.account(account).await
            }
            None => Ok(Outcome::Done),
        },
        Kind::Video => match scrapes::video(pg, organization, target.id).await? {
            Some(video) => {
                let scrape = Scrape { tracker, target, now, interval_hours: video.scrape_interval_hours };
                scrape.video(video).await
            }
            None => Ok(Outcome::Done),
        },
    }
}

impl Scrape<'_> {
    async fn account(&self, account: scrapes::Account) -> Result<Outcome, Error> {
        let key = AccountKey { username: account.username, platform_id: account.platform_id };
        let depth = Depth {
            max_posts: account.max_posts.try_into().unwrap_or(usize::MAX),
            not_before: account.not_before,
        };
        let answer = match self.tracker.sources.account(self.target.platform, &key, depth, self.now).await {
            Ok(answer) => answer,
            Err(refusal) => return self.refused(refusal).await,
        };
        for _ in 1..TRIES {
            match self.record_account(account.internal_id, &answer).await {
                Err(error) if error.is_contention() => {}
                done => return done,
            }
        }
        self.record_account(account.internal_id, &answer).await
    }

    async fn record_account(&self, subject_id: i64, answer: &AccountAnswer) -> Result<Outcome, Error> {
        let mut write = Write::begin(&self.tracker.stores.pg, self.target.organization_id).await?;
        let attempt = match self.identify(&mut write, &answer.profile).await? {
            Identity::Same => {
                let account = AccountRef { id: self.target.id, subject_id };
                observe_accounts(
                    &mut write,
                    self.now,
                    vec![observed_profile(account, &answer.profile, self.now)],
                )
                .await?;
                let found =
                    |post| observed_post(self.target.platform, FoundOn::Account(account), post, self.now);
                observe_videos(&mut write, self.now, answer.posts.iter().map(found).collect()).await?;
                self.succeeded()
            }
            Identity::Foreign(why) => self.failed(why, self.target.not_found_runs),
            Identity::Gone => return Ok(Outcome::Done),
        };
        self.finish(write, self.target.id, attempt).await
    }

    async fn identify(&self, write: &mut Write, profile: &Profile) -> Result<Identity, Error> {
        scrapes::identify(write, self.target.id, profile.platform_id.as_deref(), &profile.username).await
    }

    async fn video(&self, video: scrapes::Video) -> Result<Outcome, Error> {
        let key =
            PostKey { external_id: video.external_id, shortcode: video.shortcode, username: video.username };
        let post = match self.tracker.sources.post(self.target.platform, &key, self.now).await {
            Ok(post) => post,
            Err(refusal) => return self.refused(refusal).await,
        };
        for _ in 1..TRIES {
            match self.record_video(&key, &post).await {
                Err(error) if error.is_contention() => {}
                done => return done,
            }
        }
        self.record_video(&key, &post).await
    }

    async fn record_video(&self, key: &PostKey, post: &Post) -> Result<Outcome, Error> {
        let mut write = Write::begin(&self.tracker.stores.pg, self.target.organization_id).await?;
        if !scrapes::set_video_unavailable(&mut write, self.target.id, false).await? {
            return Ok(Outcome::Done);
        }
        let mut observed =
            observed_post(self.target.platform, FoundOn::Itself { active: true }, post, self.now);
        // The name under which it is known leads to its row, whatever else the answer reveals.
        observed.shortcode = observed.shortcode.or_else(|| key.shortcode.clone());
        let merged = observe_videos(&mut write, self.now, vec![observed]).await?;
        // What was scraped may turn out to be a video that was known before, under another name.
        let target = merged.get(&self.target.id).copied().unwrap_or(self.target.id);
        self.finish(write, target, self.succeeded()).await
    }

    /// Records why nothing was learned; what only concerns the platform's queue is not held against the target.
    async fn refused(&self, refusal: Refusal) -> Result<Outcome, Error> {
        match &refusal {
            Refusal::RateLimited { until } => return Ok(Outcome::RateLimited { until: *until }),
            Refusal::Credentials(_) => {
                tracing::error!(platform = %self.target.platform, %refusal, "a platform refused the credentials");
                return Ok(Outcome::CredentialsRefused);
            }
            Refusal::NotFound(_) | Refusal::Transient(_) | Refusal::Malformed(_) | Refusal::Unsupported => {}
        }
        let not_found = matches!(refusal, Refusal::NotFound(_));
        let runs = if not_found { self.target.not_found_runs + 1 } else { self.target.not_found_runs };
        tracing::warn!(target = %self.target.id, platform = %self.target.platform, %refusal, "a scrape failed");
        let mut write = Write::begin(&self.tracker.stores.pg, self.target.organization_id).await?;
        if not_found && runs >= RUNS_UNTIL_UNAVAILABLE {
            match self.target.kind {
                Kind::Account => scrapes::set_account_unavailable(&mut write, self.target.id, true).await?,
                Kind::Video => _ = scrapes::set_video_unavailable(&mut write, self.target.id, true).await?,
            }
        }
        let attempt = self.failed(refusal.to_string(), runs);
        self.finish(write, self.target.id, attempt).await
    }

    /// The next attempt follows after the interval, a little earlier or later than all others.
    fn succeeded(&self) -> Attempt {
        let interval = TimeDelta::hours(self.interval_hours.into());
        Attempt {
            at: self.now,
            next: self.now + jittered(interval),
            error: None,
            failures: 0,
            not_found_runs: 0,
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
        }
    }

    async fn finish(&self, mut write: Write, target: Uuid, attempt: Attempt) -> Result<Outcome, Error> {
        if targets::finish(&mut write, self.tracker.owner, target, attempt).await? {
            write.commit().await?;
        } else {
            tracing::warn!(target = %self.target.id, "the lease was lost before the scrape was recorded; dropping it");
        }
        Ok(Outcome::Done)
    }
}

/// Shortens an interval by up to a twentieth, so that a daily target is seen every day and not all come at once.
fn jittered(interval: TimeDelta) -> TimeDelta {
    let share = f64::from(u16::from_le_bytes([Uuid::now_v7().as_bytes()[14], Uuid::now_v7().as_bytes()[15]]))
        / f64::from(u16::MAX);
    let shorter = interval.num_milliseconds() as f64 * (1.0 - share / 20.0);
    TimeDelta::milliseconds(shorter as i64)
}

fn observed_profile(account: AccountRef, profile: &Profile, now: DateTime<Utc>) -> ObservedAccount {
    let mut latest = AccountLatest::default();
    learn(&mut latest.name, profile.name.clone(), now);
    learn(&mut latest.description, profile.description.clone(), now);
    learn(&mut latest.profile_pic_url, profile.profile_pic_url.clone(), now);
    learn(&mut latest.link_in_bio, profile.link_in_bio.clone(), now);
    learn(&mut latest.is_verified, profile.is_verified, now);
    learn(&mut latest.follower_count, profile.follower_count, now);
    learn(&mut latest.following_count, profile.following_count, now);
    learn(&mut latest.profile_post_count, profile.post_count, now);
    let figures = ProfileFigures {
        observed_at: now,
        follower_count: profile.follower_count,
        following_count: profile.following_count,
        profile_post_count: profile.post_count,
    };
    ObservedAccount { account, latest, observations: vec![figures], scraped_at: Some(now) }
}

fn observed_post(platform: Platform, found_on: FoundOn, post: &Post, now: DateTime<Utc>) -> ObservedVideo {
    let counters = post.counters.on(platform);
    let mut latest = VideoLatest::default();
    latest.learn_counters(&counters, now);
    learn(&mut latest.description, post.description.clone(), now);
    learn(&mut latest.media_type, post.media_type.clone(), now);
    learn(&mut latest.duration, post.duration, now);
    learn(&mut latest.create_time, post.create_time, now);
    learn(&mut latest.url, post.url.clone(), now);
    learn(&mut latest.cover_image_url, post.cover_image_url.clone(), now);
    learn(&mut latest.video_url, post.video_url.clone(), now);
    learn(&mut latest.platform_data, Some(post.platform_data.clone()).filter(|data| data.is_object()), now);
    ObservedVideo {
        platform,
        external_id: Some(post.external_id.clone()),
        shortcode: post.shortcode.clone(),
        found_on,
        latest,
        observations: vec![(now, counters)],
        scraped_at: Some(now),
    }
}
