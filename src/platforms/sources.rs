//! The configured sources of every platform, tried in order.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use opentelemetry::KeyValue;

use super::args::source_names;
use super::pausable_timeout::run_with_timeout;
use super::source::{AccountKey, Depth, FetchedAccount, Post, PostKey, Source, SourceError, SourceInfo};
use crate::model::platform::Platform;
use crate::model::readable::{KnownSource, ReadablePlatforms};
use crate::telemetry::{labels, metrics};

/// How long one source may take for one account or post, all pages together, waiting for permits excluded.
const FETCH_TIMEOUT: Duration = Duration::from_secs(600);

/// The sources of each platform, in the order in which they are tried.
#[derive(Clone)]
pub struct Sources {
    instagram: Vec<Arc<dyn Source>>,
    tiktok: Vec<Arc<dyn Source>>,
    timeout: Duration,
}

impl Sources {
    /// Groups sources by platform, preserving their order.
    pub fn new(sources: Vec<Arc<dyn Source>>) -> Sources {
        let (instagram, tiktok) =
            sources.into_iter().partition(|source| source.info().platform == Platform::Instagram);
        Sources { instagram, tiktok, timeout: FETCH_TIMEOUT }
    }

    /// Replaces the timeout of one source for one account or post.
    pub fn with_timeout(self, timeout: Duration) -> Sources {
        Sources { timeout, ..self }
    }

    pub fn has_source(&self, platform: Platform) -> bool {
        !self.for_platform(platform).is_empty()
    }

    /// Returns the end of a source's latest cooldown in this process, which may be over.
    pub fn paused_until(&self, platform: Platform, source: &str) -> Option<DateTime<Utc>> {
        self.for_platform(platform).iter().find(|known| known.info().name == source)?.paused_until()
    }

    /// Returns what the sources together can read.
    pub fn readable(&self) -> ReadablePlatforms {
        let platforms_where = |can: fn(SourceInfo) -> bool| {
            let is_readable = |platform: &Platform| self.infos(*platform).any(can);
            Platform::ALL.into_iter().filter(is_readable).collect()
        };
        ReadablePlatforms {
            accounts: platforms_where(|_| true),
            posts_by_id: platforms_where(|source| source.post_by_id),
            posts_by_shortcode: platforms_where(|source| source.post_by_shortcode),
        }
    }

    /// Returns the names of a platform's sources that have a daily limit, and the limits.
    pub fn daily_limits(&self, platform: Platform) -> impl Iterator<Item = (&'static str, u32)> {
        self.infos(platform).filter_map(|source| Some((source.name, source.daily_limit?)))
    }

    /// Returns the sources of every platform in the order in which they are tried, then those that are not configured.
    pub fn known(&self) -> Vec<KnownSource> {
        let mut known = Vec::new();
        for platform in Platform::ALL {
            let configured = self.names(platform);
            let others = source_names(platform).into_iter().filter(|name| !configured.contains(name));
            known.extend(self.infos(platform).map(|source| KnownSource {
                platform,
                name: source.name,
                is_configured: true,
                post_by_id: source.post_by_id,
                post_by_shortcode: source.post_by_shortcode,
                daily_limit: source.daily_limit,
            }));
            known.extend(others.map(|name| KnownSource::unconfigured(platform, name)));
        }
        known
    }

    pub fn names(&self, platform: Platform) -> Vec<&'static str> {
        self.infos(platform).map(|source| source.name).collect()
    }

    pub fn post_source_names(&self, platform: Platform) -> Vec<&'static str> {
        self.infos(platform).filter(SourceInfo::reads_posts).map(|source| source.name).collect()
    }

    /// Returns the first source, which reads the accounts of a platform.
    pub fn account_source(&self, platform: Platform) -> Option<SourceInfo> {
        self.infos(platform).next()
    }

    /// Returns the first source that can read single posts of a platform.
    pub fn post_source(&self, platform: Platform) -> Option<SourceInfo> {
        self.infos(platform).find(SourceInfo::reads_posts)
    }

    /// Reads an account from the first source that can, without those in `skip`.
    ///
    /// After a rate limit or rejected credentials, the next source is tried. A source without lookups by id cannot
    /// follow a rename: if it finds nothing or another account, the result is that of a later source that has them.
    pub async fn fetch_account(
        &self,
        platform: Platform,
        account: &AccountKey,
        depth: Depth,
        now: DateTime<Utc>,
        skip: &[&'static str],
    ) -> FetchOutcome<FetchedAccount> {
        let mut outcome = FetchOutcome::new();
        let sources = self.for_platform(platform);
        let is_skipped = |source: &Arc<dyn Source>| skip.contains(&source.info().name);
        for (position, source) in sources.iter().enumerate().filter(|(_, source)| !is_skipped(source)) {
            let by_name = self.fetch(source, "account", source.fetch_account(account, depth, now)).await;
            let info = source.info();
            if !outcome.record(info.name, &by_name) {
                continue;
            }
            let by_id = sources[position + 1..].iter().find(|later| later.info().account_by_id);
            let Some(by_id) = by_id.filter(|_| may_be_renamed(info, account, &by_name)) else {
                return FetchOutcome { result: by_name, ..outcome };
            };
            let mut renamed = None;
            if !is_skipped(by_id) {
                let result = self.fetch(by_id, "account", by_id.fetch_account(account, depth, now)).await;
                outcome.record(by_id.info().name, &result);
                renamed = Some(result);
            }
            let result = match renamed {
                None
                | Some(Err(
                    SourceError::Transient(_)
                    | SourceError::RateLimited { .. }
                    | SourceError::Credentials(_)
                    | SourceError::RefreshShareUsed,
                )) => Err(SourceError::Transient(format!(
                    "{} does not find the account, and {} is unavailable to check for a rename",
                    info.name,
                    by_id.info().name
                ))),
                Some(Err(error @ SourceError::BudgetUnavailable(_))) => Err(error),
                Some(renamed) => renamed.or(by_name),
            };
            return FetchOutcome { result, ..outcome };
        }
        outcome.or_retry_later(sources.iter().any(is_skipped))
    }

    /// Reads a post from the first source that can, without those in `skip`.
    pub async fn fetch_post(
        &self,
        platform: Platform,
        post: &PostKey,
        now: DateTime<Utc>,
        skip: &[&'static str],
    ) -> FetchOutcome<Post> {
        let mut outcome = FetchOutcome::new();
        let mut has_skipped = false;
        for source in self.for_platform(platform) {
            let info = source.info();
            if !info.can_read(post) {
                continue;
            }
            if skip.contains(&info.name) {
                has_skipped = true;
                continue;
            }
            let result = self.fetch(source, "video", source.fetch_post(post, now)).await;
            if outcome.record(info.name, &result) {
                return FetchOutcome { result, ..outcome };
            }
        }
        outcome.or_retry_later(has_skipped)
    }

    /// Runs a source's read with the timeout, and counts its result.
    async fn fetch<T>(
        &self,
        source: &Arc<dyn Source>,
        target: &'static str,
        read: impl Future<Output = Result<T, SourceError>>,
    ) -> Result<T, SourceError> {
        let result = run_with_timeout(self.timeout, read).await.unwrap_or_else(|| {
            let seconds = self.timeout.as_secs_f64();
            Err(SourceError::Transient(format!("not all pages were read within {seconds} s")))
        });
        if let Some(metrics) = metrics::instruments() {
            let info = source.info();
            let outcome = result.as_ref().err().map_or("ok", SourceError::label);
            let labels = [
                KeyValue::new(labels::PLATFORM, info.platform.as_str()),
                KeyValue::new(labels::SOURCE, info.name),
                KeyValue::new(labels::TARGET, target),
                KeyValue::new(labels::OUTCOME, outcome),
            ];
            metrics.source_responses.add(1, &labels);
        }
        result
    }

    fn infos(&self, platform: Platform) -> impl Iterator<Item = SourceInfo> {
        self.for_platform(platform).iter().map(|source| source.info())
    }

    fn for_platform(&self, platform: Platform) -> &[Arc<dyn Source>] {
        match platform {
            Platform::Instagram => &self.instagram,
            Platform::Tiktok => &self.tiktok,
        }
    }
}

/// The result of trying a platform's sources in order.
#[derive(Debug)]
pub struct FetchOutcome<T> {
    pub result: Result<T, SourceError>,
    /// The sources that returned data or `NotFound`.
    pub responded: Vec<&'static str>,
    /// The sources that must not be requested for a while, with the reason.
    pub paused: Vec<(&'static str, SourceError)>,
}

impl<T> FetchOutcome<T> {
    fn new() -> Self {
        FetchOutcome { result: Err(SourceError::Unsupported), responded: Vec::new(), paused: Vec::new() }
    }

    /// Records a source's result. Returns whether it is final; if not, the next source is tried.
    fn record(&mut self, source: &'static str, result: &Result<T, SourceError>) -> bool {
        use SourceError::{BudgetUnavailable, Credentials, Malformed, NotFound, RateLimited, Transient};
        match result {
            Ok(_) | Err(NotFound(_)) => self.responded.push(source),
            Err(Transient(_) | Malformed(_) | BudgetUnavailable(_)) => {}
            Err(error) => {
                if matches!(error, RateLimited { .. } | Credentials(_)) {
                    self.paused.push((source, error.clone()));
                }
                if matches!(self.result, Err(SourceError::Unsupported)) {
                    self.result = Err(error.clone());
                }
                return false;
            }
        }
        true
    }

    /// Turns `Unsupported` into a temporary error if a source that was skipped might support the request.
    fn or_retry_later(mut self, has_skipped: bool) -> Self {
        if has_skipped && self.result.as_ref().err() == Some(&SourceError::Unsupported) {
            let reason = "the only source that supports the request is paused";
            self.result = Err(SourceError::Transient(reason.to_owned()));
        }
        self
    }
}

/// Whether a lookup by username found nothing, or an account whose id is not the known one.
fn may_be_renamed(
    source: SourceInfo,
    account: &AccountKey,
    result: &Result<FetchedAccount, SourceError>,
) -> bool {
    if account.platform_id.is_none() || source.account_by_id {
        return false;
    }
    match result {
        Ok(found) => found.profile.platform_id.is_some() && found.profile.platform_id != account.platform_id,
        Err(error) => matches!(error, SourceError::NotFound(_)),
    }
}
