//! One attempt at a leased target: a scrape with telemetry, and the pauses of sources that follow from it.

use std::panic::AssertUnwindSafe;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use tracing::Instrument;

use super::scrape::{record_panic, scrape};
use super::scrape_report::{ScrapeOutcome, ScrapeReport};
use super::telemetry::ScrapeTelemetry;
use super::timeout;
use super::tracker::{FailureKind, Tracker};
use crate::model::platform::Platform;
use crate::platforms::source::SourceError;
use crate::platforms::spend_on_refresh;
use crate::store::Error;
use crate::store::tracking::leases::{self, LeasedTarget};
use crate::store::tracking::source_pauses::{self, PauseCause, SourcePause};

/// The sources of one attempt.
#[derive(Debug, Clone, Default)]
pub(super) struct AttemptPlan {
    /// Sources that are paused, or that another attempt probes.
    pub(super) skip: Vec<&'static str>,
    /// Sources whose pause is over. This attempt decides whether they are resumed.
    pub(super) probes: Vec<&'static str>,
}

impl Tracker {
    /// Scrapes targets that one response serves.
    pub(super) async fn attempt(&self, targets: Vec<LeasedTarget>, plan: AttemptPlan) {
        let Some(first) = targets.first() else { return };
        let platform = first.platform;
        let telemetry = ScrapeTelemetry::begin(first);
        let scraping = scrape(self, &targets, &plan.skip).instrument(telemetry.span.clone());
        let scraping =
            async { if first.is_refresh { spend_on_refresh(scraping).await } else { scraping.await } };
        let result = AssertUnwindSafe(scraping).catch_unwind().await;
        telemetry.end(&result);
        let recorded = match result {
            Ok(Ok(report)) => self.finish_attempt(first, &targets, &plan, report).await,
            Ok(Err(error)) => Err(error),
            // The panic itself is logged already.
            Err(_) => {
                if self.should_log(platform, FailureKind::Panicked) {
                    tracing::error!(target = %first.id, %platform, "scrape panicked because of a bug");
                }
                record_panic(self, &targets).await
            }
        };
        if let Err(error) = recorded {
            tracing::warn!(%error, target = %first.id, %platform, "cannot record attempt, its lease expires");
        }
    }

    async fn finish_attempt(
        &self,
        first: &LeasedTarget,
        targets: &[LeasedTarget],
        plan: &AttemptPlan,
        report: ScrapeReport,
    ) -> Result<(), Error> {
        timeout::short(self.record_source_status(first.platform, plan, &report)).await?;
        match report.outcome {
            ScrapeOutcome::Responded | ScrapeOutcome::Skipped => Ok(()),
            ScrapeOutcome::Failed(error) => {
                self.log_failure(first, &error);
                Ok(())
            }
            ScrapeOutcome::Paused => {
                let ids: Vec<_> = targets.iter().map(|target| target.id).collect();
                timeout::short(leases::release(&self.databases.pg, self.owner, &ids)).await
            }
        }
    }

    /// Starts the pauses that a scrape requires, and ends those of sources that responded to a probe with quota left.
    async fn record_source_status(
        &self,
        platform: Platform,
        plan: &AttemptPlan,
        report: &ScrapeReport,
    ) -> Result<(), Error> {
        let now = self.databases.clock.now().await;
        for pause in &report.pauses {
            self.pause_source(pause, now).await?;
        }
        for &source in &report.responded {
            if let Some(until) = self.sources.paused_until(platform, source).filter(|until| *until > now) {
                let reason = "the platform's quota is nearly used up".to_owned();
                let (source, cause) = (source.to_owned(), PauseCause::RateLimit);
                self.pause_source(&SourcePause { platform, source, until, cause, reason }, now).await?;
            } else if plan.probes.contains(&source)
                && source_pauses::end(&self.databases.pg, platform, source, now).await?
            {
                tracing::info!(%platform, source, "source resumed");
            }
        }
        Ok(())
    }

    /// Pauses a source, and logs a new pause. A wrong clock would pause it for too long.
    async fn pause_source(&self, pause: &SourcePause, now: DateTime<Utc>) -> Result<(), Error> {
        if self.is_clock_right().await? && source_pauses::start(&self.databases.pg, pause, now).await? {
            let SourcePause { platform, source, until, cause, reason } = pause;
            match cause {
                PauseCause::RateLimit => tracing::warn!(%platform, source, %until, reason, "source paused"),
                PauseCause::Credentials => {
                    tracing::error!(%platform, source, reason, "source paused until its credentials are replaced");
                }
            }
        }
        Ok(())
    }

    /// Logs each kind of failure of a platform once an hour. Each target's record has its own last error.
    fn log_failure(&self, target: &LeasedTarget, error: &SourceError) {
        let (id, platform) = (target.id, target.platform);
        if self.should_log(platform, FailureKind::Source(std::mem::discriminant(error))) {
            tracing::warn!(%platform, target = %id, %error, "scrape failed");
        } else {
            tracing::debug!(%platform, target = %id, %error, "scrape failed");
        }
    }
}
