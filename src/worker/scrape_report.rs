//! The report of a scrape: its outcome, and which sources responded or have to be paused.

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::platform::Platform;
use crate::model::tracking::FailureReason;
use crate::platforms::source::SourceError;
use crate::platforms::sources::FetchOutcome;
use crate::store::tracking::source_pauses::{PauseCause, SourcePause};
use crate::store::tracking::targets::AttemptFailure;

/// How long a source is paused after its credentials were rejected.
const CREDENTIALS_PAUSE: TimeDelta = TimeDelta::minutes(5);

#[derive(Debug)]
pub(super) enum ScrapeOutcome {
    /// The platform returned data, or that there is none.
    Responded,
    /// No request was sent: the target was deleted, or no source supports it.
    Skipped,
    /// The response was unusable, or the request could not be counted.
    Failed(SourceError),
    /// All sources that support the target are paused, or refreshes have used up their share. It stays due, or queued.
    Paused,
}

#[derive(Debug)]
pub(super) struct ScrapeReport {
    pub(super) outcome: ScrapeOutcome,
    pub(super) responded: Vec<&'static str>,
    /// Sources that must not be requested for a while.
    pub(super) pauses: Vec<SourcePause>,
}

impl ScrapeReport {
    pub(super) fn new<T>(platform: Platform, fetched: &FetchOutcome<T>, now: DateTime<Utc>) -> Self {
        let outcome = match &fetched.result {
            Ok(_) | Err(SourceError::NotFound(_)) => ScrapeOutcome::Responded,
            Err(
                SourceError::RateLimited { .. } | SourceError::Credentials(_) | SourceError::RefreshShareUsed,
            ) => ScrapeOutcome::Paused,
            Err(SourceError::Unsupported) => ScrapeOutcome::Skipped,
            Err(error) => ScrapeOutcome::Failed(error.clone()),
        };
        let pauses =
            fetched.paused.iter().filter_map(|(source, error)| required_pause(platform, source, error, now));
        ScrapeReport { outcome, responded: fetched.responded.clone(), pauses: pauses.collect() }
    }

    pub(super) fn skipped() -> Self {
        ScrapeReport { outcome: ScrapeOutcome::Skipped, responded: Vec::new(), pauses: Vec::new() }
    }
}

/// Returns the pause that an error causes, if it is about the source and not about the target.
fn required_pause(
    platform: Platform,
    source: &str,
    error: &SourceError,
    now: DateTime<Utc>,
) -> Option<SourcePause> {
    let (until, cause) = match error {
        SourceError::RateLimited { until } => (*until, PauseCause::RateLimit),
        SourceError::Credentials(_) => (now + CREDENTIALS_PAUSE, PauseCause::Credentials),
        SourceError::NotFound(_)
        | SourceError::Transient(_)
        | SourceError::Malformed(_)
        | SourceError::Unsupported
        | SourceError::RefreshShareUsed
        | SourceError::BudgetUnavailable(_) => return None,
    };
    Some(SourcePause { platform, source: source.to_owned(), until, cause, reason: error.to_string() })
}

/// Returns the failure of the target that an error is. None if the error is about the source, or if requests cannot be
/// counted: then the target's lease is released, or expires.
pub(super) fn target_failure(error: &SourceError) -> Option<AttemptFailure> {
    let reason = match error {
        SourceError::NotFound(_) => FailureReason::NotFound,
        SourceError::Transient(_) => FailureReason::Transient,
        SourceError::Malformed(_) => FailureReason::Malformed,
        SourceError::Unsupported => FailureReason::Unsupported,
        SourceError::RateLimited { .. }
        | SourceError::Credentials(_)
        | SourceError::RefreshShareUsed
        | SourceError::BudgetUnavailable(_) => return None,
    };
    Some(AttemptFailure { reason, error: error.to_string() })
}
