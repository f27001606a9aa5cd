//! Watches Postgres without a word in the code that asks it: sqlx tells every statement and every connection it hands
//! out as an event, which becomes a span below the request's, and a measured duration.

use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Tracer};
use opentelemetry::{Context, KeyValue, global};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context as LayerContext, Layer};

use super::trace::{self, operation, shortened};
use super::{metrics, names};

const STATEMENTS: &str = "sqlx::query";
const CONNECTIONS: &str = "sqlx::pool::acquire";
/// The name of the one pool of connections that a process has.
pub const POOL: &str = "postgres";
/// The name by which the places for questions to ClickHouse are a pool like it.
pub const PLACES: &str = "clickhouse";

/// The layer that listens to sqlx.
pub(super) struct Statements;

/// What the layer wants to hear.
pub(super) fn heard() -> Targets {
    Targets::new().with_target(STATEMENTS, LevelFilter::DEBUG).with_target(CONNECTIONS, LevelFilter::DEBUG)
}

/// What sqlx tells of a statement or a connection.
#[derive(Default)]
struct Told {
    seconds: Option<f64>,
    summary: String,
    statement: String,
    rows: Option<u64>,
}

impl Visit for Told {
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

impl<S: Subscriber> Layer<S> for Statements {
    fn on_event(&self, event: &Event<'_>, _ctx: LayerContext<'_, S>) {
        let mut told = Told::default();
        event.record(&mut told);
        let Some(took) = told.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) else {
            return;
        };
        match event.metadata().target() {
            CONNECTIONS => {
                if let Some(metrics) = metrics::on() {
                    metrics::took(&metrics.connection_wait, took, &[KeyValue::new(names::POOL, POOL)]);
                }
            }
            _ => statement(&told, took),
        }
    }
}

fn statement(told: &Told, took: Duration) {
    // A short statement is its own summary.
    let text = if told.statement.is_empty() { &told.summary } else { &told.statement };
    let operation = operation(text);
    if let Some(metrics) = metrics::on() {
        let mut labels =
            vec![KeyValue::new(names::SYSTEM, "postgresql"), KeyValue::new(names::OPERATION, operation)];
        labels.extend(trace::route_label());
        metrics::took(&metrics.statement, took, &labels);
    }
    // The loops ask all the time; only what a request, a scrape or a delivery asks belongs to a trace.
    if trace::is_running() {
        let end = SystemTime::now();
        let mut attributes = vec![
            KeyValue::new(names::SYSTEM, "postgresql"),
            KeyValue::new(names::OPERATION, operation),
            KeyValue::new("db.query.text", shortened(text).to_owned()),
        ];
        attributes.extend(trace::route_label());
        let rows = told.rows.and_then(|rows| i64::try_from(rows).ok());
        attributes.extend(rows.map(|rows| KeyValue::new("db.response.returned_rows", rows)));
        let span = SpanBuilder::from_name(format!("{operation} postgresql"))
            .with_kind(SpanKind::Client)
            .with_start_time(end - took)
            .with_attributes(attributes);
        global::tracer("tidemark").build_with_context(span, &Context::current()).end_with_timestamp(end);
    }
}
