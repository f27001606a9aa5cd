//! Spans and durations of scrapes and deliveries.

use std::time::Instant;

use opentelemetry::KeyValue;
use tracing::Span;

use super::scrape_report::{ScrapeOutcome, ScrapeReport};
use crate::store::Error;
use crate::store::tracking::leases::{LeasedTarget, TargetKind};
use crate::telemetry::{labels, metrics};

pub(super) struct ScrapeTelemetry {
    pub(super) span: Span,
    platform: &'static str,
    target: &'static str,
    started: Instant,
}

impl ScrapeTelemetry {
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
        ScrapeTelemetry { span, platform, target, started: Instant::now() }
    }

    /// Records the result; the outer error is a panic.
    pub(super) fn end<P>(self, result: &Result<Result<ScrapeReport, Error>, P>) {
        let outcome = match result {
            Ok(Ok(report)) => match report.outcome {
                ScrapeOutcome::Responded => "responded",
                ScrapeOutcome::Skipped => "skipped",
                ScrapeOutcome::Failed(_) => "failed",
                ScrapeOutcome::Paused => "paused",
            },
            Ok(Err(_)) => "unrecorded",
            Err(_) => "panicked",
        };
        self.span.record(labels::OUTCOME, outcome);
        if let Some(metrics) = metrics::instruments() {
            let labels = [
                KeyValue::new(labels::PLATFORM, self.platform),
                KeyValue::new(labels::TARGET, self.target),
                KeyValue::new(labels::OUTCOME, outcome),
            ];
            metrics::record_duration(&metrics.scrape_duration, self.started.elapsed(), &labels);
        }
    }
}

pub(super) struct DeliveryTelemetry {
    pub(super) span: Span,
    started: Instant,
}

impl DeliveryTelemetry {
    pub(super) fn begin() -> Self {
        let span = crate::traced!(
            "delivery",
            otel.name = "deliver to clickhouse",
            tidemark.outcome = tracing::field::Empty,
            tidemark.rows = tracing::field::Empty,
        );
        DeliveryTelemetry { span, started: Instant::now() }
    }

    /// Records the result; `Ok(false)` means that ClickHouse's data was replaced during the delivery.
    pub(super) fn end(self, result: &Result<bool, Error>, rows: usize) {
        let outcome = match result {
            Ok(true) => "delivered",
            Ok(false) => "lost",
            Err(_) => "failed",
        };
        self.span.record(labels::OUTCOME, outcome);
        self.span.record("tidemark.rows", rows);
        if let Some(metrics) = metrics::instruments() {
            let labels = [KeyValue::new(labels::OUTCOME, outcome)];
            metrics::record_duration(&metrics.delivery_duration, self.started.elapsed(), &labels);
            if outcome == "delivered" {
                metrics.delivered_rows.add(rows as u64, &[]);
            }
        }
    }
}
