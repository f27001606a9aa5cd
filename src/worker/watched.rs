//! Scrapes and deliveries as traces and metrics see them: what kind, how they ended and how long they took.

use std::time::Instant;

use opentelemetry::KeyValue;
use tracing::Span;

use super::scrape::{Ended, Outcome};
use crate::store::Error;
use crate::store::tracking::leases::{LeasedTarget, TargetKind};
use crate::telemetry::{metrics, names};

/// A scrape that runs.
pub(super) struct Watched {
    pub(super) span: Span,
    platform: &'static str,
    target: &'static str,
    began: Instant,
}

impl Watched {
    pub(super) fn begin(target: &LeasedTarget) -> Self {
        let platform = target.platform.as_str();
        let target = match target.kind {
            TargetKind::Account => "account",
            TargetKind::Video => "video",
        };
        let span = crate::traced!(
            "scrape",
            otel.name = format!("scrape {platform} {target}"),
            tidemark.platform = platform,
            tidemark.target = target,
            tidemark.outcome = tracing::field::Empty,
        );
        Watched { span, platform, target, began: Instant::now() }
    }

    /// Ends it; without a result, it panicked.
    pub(super) fn end<P>(self, scraped: &Result<Result<Ended, Error>, P>) {
        let outcome = match scraped {
            Ok(Ok(Ended { outcome, .. })) => match outcome {
                Outcome::Answered => "answered",
                Outcome::NotAsked => "not_asked",
                Outcome::Failed(_) => "failed",
                Outcome::Rest => "rested",
            },
            Ok(Err(_)) => "unrecorded",
            Err(_) => "panicked",
        };
        self.span.record(names::OUTCOME, outcome);
        if let Some(metrics) = metrics::on() {
            let labels = [
                KeyValue::new(names::PLATFORM, self.platform),
                KeyValue::new(names::TARGET, self.target),
                KeyValue::new(names::OUTCOME, outcome),
            ];
            metrics::took(&metrics.scrape, self.began.elapsed(), &labels);
        }
    }
}

/// A delivery to ClickHouse that runs.
pub(super) struct WatchedDelivery {
    pub(super) span: Span,
    began: Instant,
}

impl WatchedDelivery {
    pub(super) fn begin() -> Self {
        let span = crate::traced!(
            "delivery",
            otel.name = "deliver to clickhouse",
            tidemark.outcome = tracing::field::Empty,
            tidemark.rows = tracing::field::Empty,
        );
        WatchedDelivery { span, began: Instant::now() }
    }

    /// Ends it; `Ok(false)` is a delivery during which ClickHouse changed its files.
    pub(super) fn end(self, delivered: &Result<bool, Error>, rows: usize) {
        let outcome = match delivered {
            Ok(true) => "delivered",
            Ok(false) => "lost",
            Err(_) => "failed",
        };
        self.span.record(names::OUTCOME, outcome);
        self.span.record("tidemark.rows", rows);
        if let Some(metrics) = metrics::on() {
            metrics::took(&metrics.delivery, self.began.elapsed(), &[KeyValue::new(names::OUTCOME, outcome)]);
            if outcome == "delivered" {
                metrics.delivered.add(rows as u64, &[]);
            }
        }
    }
}
