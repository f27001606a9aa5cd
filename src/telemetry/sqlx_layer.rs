//! Turns sqlx's log events about statements and connections into spans and metrics, so that no caller has to.

use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Tracer};
use opentelemetry::{Context, KeyValue, global};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context as LayerContext, Layer};

use super::trace::{self, operation_name, truncate};
use super::{labels, metrics};

const STATEMENT_TARGET: &str = "sqlx::query";
const ACQUIRE_TARGET: &str = "sqlx::pool::acquire";

pub(super) struct SqlxLayer;

/// Returns the filter for the events that the layer reads.
pub(super) fn targets() -> Targets {
    Targets::new()
        .with_target(STATEMENT_TARGET, LevelFilter::DEBUG)
        .with_target(ACQUIRE_TARGET, LevelFilter::DEBUG)
}

/// The fields of an event.
#[derive(Default)]
struct EventFields {
    seconds: Option<f64>,
    summary: String,
    statement: String,
    rows: Option<u64>,
}

impl Visit for EventFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if matches!(field.name(), "elapsed_secs" | "acquired_after_secs") {
            self.seconds = Some(value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "rows_returned" {
            self.rows = Some(value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "summary" => self.summary = value.to_owned(),
            "db.statement" => self.statement = value.to_owned(),
            _ => {}
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn std::fmt::Debug) {}
}

impl<S: Subscriber> Layer<S> for SqlxLayer {
    fn on_event(&self, event: &Event<'_>, _ctx: LayerContext<'_, S>) {
        let mut fields = EventFields::default();
        event.record(&mut fields);
        let Some(duration) = fields.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        else {
            return;
        };
        if event.metadata().target() != ACQUIRE_TARGET {
            record_statement(&fields, duration);
        } else if let Some(metrics) = metrics::instruments() {
            let pool = KeyValue::new(labels::POOL, labels::POSTGRES_POOL);
            metrics::record_duration(&metrics.connection_wait, duration, &[pool]);
        }
    }
}

fn record_statement(fields: &EventFields, duration: Duration) {
    // sqlx omits `db.statement` where the summary is the whole statement.
    let text = if fields.statement.is_empty() { &fields.summary } else { &fields.statement };
    let operation = operation_name(text);
    let mut attributes =
        vec![KeyValue::new(labels::SYSTEM, "postgresql"), KeyValue::new(labels::OPERATION, operation)];
    attributes.extend(trace::route_label());
    if let Some(metrics) = metrics::instruments() {
        metrics::record_duration(&metrics.statement_duration, duration, &attributes);
    }
    // Statements of background loops belong to no trace.
    if trace::has_active_span() {
        let end = SystemTime::now();
        attributes.push(KeyValue::new("db.query.text", truncate(text).to_owned()));
        let rows = fields.rows.and_then(|rows| i64::try_from(rows).ok());
        attributes.extend(rows.map(|rows| KeyValue::new("db.response.returned_rows", rows)));
        let span = SpanBuilder::from_name(format!("{operation} postgresql"))
            .with_kind(SpanKind::Client)
            .with_start_time(end - duration)
            .with_attributes(attributes);
        global::tracer("tidemark").build_with_context(span, &Context::current()).end_with_timestamp(end);
    }
}
