//! Whether an organization's tracking is healthy: its records by status, its queue, failures and sources, and how many of
//! its subjects are observed each day.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use salvo::{Router, Writer};
use salvo_oapi::endpoint;
use schemars::JsonSchema;
use serde::Serialize;

use super::mcp::tool::{Answer, Tool};
use crate::app::App;
use crate::http::input::WindowParams;
use crate::http::output::WindowMeta;
use crate::http::route::{get_or_head, get_records};
use crate::http::{Analytics, Cached, Caller, Data, Query, RecordDependency, Result, WithMeta};
use crate::model::platform::Platform;
use crate::model::readable::{KnownSource, ReadablePlatforms};
use crate::model::tracking::{FailureReason, StatusCounts, TrackingStatus};
use crate::store::analytics::VersionedHistory;
use crate::store::analytics::coverage::{self, CoverageDay, CoverageRecords};
use crate::store::tracking::ended_attempts::{self, AttemptCounts};
use crate::store::tracking::queues::{self, OrganizationQueue};
use crate::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use crate::store::tracking::target_counts::{self, TargetCount};

pub(super) fn router() -> Router {
    Router::with_path("tracking")
        .push(get_records(get))
        .push(Router::with_path("coverage").push(get_or_head(get_coverage)))
}

/// Records with the status `failing`, by the reason.
#[derive(Debug, Serialize, JsonSchema)]
struct Failures {
    /// Why their latest attempt failed.
    #[schemars(example = FailureReason::Transient)]
    reason: FailureReason,
    /// Number of accounts.
    #[schemars(example = 3)]
    accounts: i64,
    /// Number of individually tracked videos.
    #[schemars(example = 0)]
    videos: i64,
    /// Time of the first of the failures in a row, of the record that has failed for longest; null while it is unknown,
    /// which it is right after an upgrade.
    since: Option<DateTime<Utc>>,
}

/// Whether a source can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SourceStatus {
    /// It is used.
    Active,
    /// It is not used for a while.
    Paused,
    /// The installation has no credentials for it, or does not list it.
    Unconfigured,
}

/// Where data of a platform comes from.
#[derive(Debug, Serialize, JsonSchema)]
struct Source {
    /// Platform that it reads.
    platform: Platform,
    /// Name of the source.
    #[schemars(example = &"instagram-graph")]
    name: &'static str,
    /// Whether it can be used.
    #[schemars(example = SourceStatus::Active)]
    status: SourceStatus,
    /// When it is tried again; null if it is not paused.
    #[schemars(example = None::<()>)]
    paused_until: Option<DateTime<Utc>>,
    /// Why it is paused; null if it is not.
    #[schemars(example = None::<()>)]
    reason: Option<PauseCause>,
}

/// State of an organization's tracking.
#[derive(Debug, Serialize, JsonSchema)]
struct TrackingHealth {
    /// Accounts by tracking status.
    accounts: StatusCounts,
    /// Individually tracked videos by tracking status.
    videos: StatusCounts,
    #[serde(flatten)]
    queue: OrganizationQueue,
    /// Attempts that ended in the last 24 hours, to the minute.
    scrapes_24h: AttemptCounts,
    /// Records that fail now, by reason; reasons without a record are absent.
    failures: Vec<Failures>,
    /// Sources of the installation, in the order in which they are tried.
    sources: Vec<Source>,
}

impl TrackingHealth {
    fn new(
        counts: &[TargetCount],
        readable: &ReadablePlatforms,
        queue: OrganizationQueue,
        scrapes_24h: AttemptCounts,
        sources: Vec<Source>,
    ) -> Self {
        let (mut accounts, mut videos) = (StatusCounts::default(), StatusCounts::default());
        let mut failures: BTreeMap<FailureReason, Failures> = BTreeMap::new();
        for count in counts.iter().filter(|count| count.targets != 0) {
            let (status, is_account) = (count.status(readable), count.found_by.is_account());
            (if is_account { &mut accounts } else { &mut videos }).add(status, count.targets);
            let Some(reason) = count.failure.filter(|_| status == TrackingStatus::Failing) else { continue };
            let none = Failures { reason, accounts: 0, videos: 0, since: None };
            let failed = failures.entry(reason).or_insert(none);
            *(if is_account { &mut failed.accounts } else { &mut failed.videos }) += count.targets;
            failed.since = failed.since.into_iter().chain(count.failing_since).min();
        }
        let failures = failures.into_values().collect();
        TrackingHealth { accounts, videos, queue, scrapes_24h, failures, sources }
    }
}

impl Source {
    fn new(source: &KnownSource, pauses: &[SourcePause], now: DateTime<Utc>) -> Self {
        let KnownSource { platform, name, is_configured, .. } = *source;
        let is_its = |pause: &&SourcePause| pause.platform == platform && pause.source == name;
        let pause = pauses.iter().find(is_its).filter(|pause| is_configured && pause.is_active(now));
        let status = match pause {
            _ if !is_configured => SourceStatus::Unconfigured,
            Some(_) => SourceStatus::Paused,
            None => SourceStatus::Active,
        };
        // Not its text, which may quote a response about another organization's account.
        let reason = pause.map(|pause| pause.cause);
        Source { platform, name, status, paused_until: pause.map(|pause| pause.until), reason }
    }
}

pub(super) const TOOL: Tool = Tool {
    name: "get_tracking_health",
    description: "Whether tracking works: how many accounts and single videos are active, paused, failing, \
        unavailable, pending or unsupported, what is due, how far scrapes lag behind in seconds, attempts of \
        the last 24 hours, why scrapes fail and since when, and the state of each source. Use it before \
        trusting figures of today, or when data looks old.",
    answer: Answer::Response("getTracking"),
};

/// Get the state of tracking
///
/// Accounts and individually tracked videos by status, what is due, the attempts of the last 24 hours, what fails, and the
/// sources of the installation.
#[endpoint(operation_id = "getTracking")]
async fn get(app: App, caller: Caller) -> Result<Data<TrackingHealth>> {
    let (pg, organization, now) = (&app.pg, caller.organization, app.clock.now().await);
    let counts = target_counts::fetch(pg, organization).await?;
    let queue = queues::fetch_organization(pg, organization, &app.readable.accounts, now).await?;
    let attempts = ended_attempts::count(pg, organization, now).await?;
    let pauses = source_pauses::fetch_all(pg).await?;
    let sources = app.sources.iter().map(|source| Source::new(source, &pauses, now)).collect();
    Ok(Data { data: TrackingHealth::new(&counts, &app.readable, queue, attempts, sources) })
}

/// Get daily coverage
///
/// How many subjects were observed on each day of the window, of those that could be. A subject is an account, observed when
/// it or one of its videos was, or an individually tracked video without account. Paused ones do not count on any day.
#[endpoint(operation_id = "getTrackingCoverage")]
async fn get_coverage(
    query: Query<WindowParams>,
    analytics: Analytics,
) -> Result<Cached<WithMeta<Vec<CoverageDay>, WindowMeta>>> {
    let request = analytics.window(query.0, |window| *window)?;
    let compute = async |records: CoverageRecords, history: VersionedHistory| {
        let coverage = coverage::fetch(&history, &records, request.window).await?;
        Ok(WithMeta { data: coverage.days, meta: request.meta(coverage.as_of) })
    };
    let records_query = coverage::records(analytics.organization);
    analytics.respond(&request, RecordDependency::Videos, records_query, compute).await
}
