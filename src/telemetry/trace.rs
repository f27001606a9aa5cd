//! Spans for collectors, and the trace context in the headers of requests.
//!
//! These spans have the target `otel` and do not appear in log lines. They contain nothing that a client or a platform
//! sent: routes instead of paths, statements with placeholders instead of values.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use opentelemetry::trace::{SpanContext, TraceContextExt, TraceState};
use opentelemetry::{Context, KeyValue, global};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use reqwest::header::HeaderMap;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::{labels, metrics};

/// The target of spans for collectors.
pub(super) const SPAN_TARGET: &str = "otel";

/// Creates a span for collectors, with the syntax of `tracing::info_span!`.
#[macro_export]
macro_rules! traced {
    ($($field:tt)*) => { tracing::info_span!(target: "otel", $($field)*) };
}

tokio::task_local! {
    /// The route template of the running request.
    static ROUTE: Option<Arc<str>>;
}

/// Runs a request's future, so that statements in it are labelled with its route.
pub async fn with_route<T>(route: Option<Arc<str>>, request: impl Future<Output = T>) -> T {
    ROUTE.scope(route, request).await
}

/// Returns the route template of the running request.
pub fn current_route() -> Option<Arc<str>> {
    ROUTE.try_with(Clone::clone).ok().flatten()
}

pub fn route_label() -> Option<KeyValue> {
    current_route().map(|route| KeyValue::new(labels::ROUTE, route))
}

/// Makes a span the child of the one in a request's `traceparent`. `tracestate` is dropped: it is client text, which
/// would reach the collector and other services.
pub fn set_remote_parent(span: &Span, headers: &HeaderMap) {
    if !span.is_disabled() {
        let mut parent =
            global::get_text_map_propagator(|propagator| propagator.extract(&HeaderExtractor(headers)));
        if parent.has_active_span() {
            parent = parent.with_remote_span_context(without_trace_state(parent.span().span_context()));
        }
        if let Err(error) = span.set_parent(parent) {
            tracing::debug!(%error, "cannot continue the request's trace");
        }
    }
}

fn without_trace_state(context: &SpanContext) -> SpanContext {
    let (trace_id, span_id, flags) = (context.trace_id(), context.span_id(), context.trace_flags());
    SpanContext::new(trace_id, span_id, flags, context.is_remote(), TraceState::NONE)
}

/// Returns the headers that pass a span's context on to another service; none without a collector.
pub fn propagation_headers(span: &Span) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if !span.is_disabled() {
        global::get_text_map_propagator(|propagator| {
            propagator.inject_context(&span.context(), &mut HeaderInjector(&mut headers));
        });
    }
    headers
}

pub fn current_trace_id() -> Option<String> {
    let context = Context::current();
    let span = context.span();
    let span_context = span.span_context();
    span_context.is_valid().then(|| span_context.trace_id().to_string())
}

/// Whether a new span would have a parent.
pub fn has_active_span() -> bool {
    Context::map_current(Context::has_active_span)
}

/// The span and duration of a statement to ClickHouse. Dropped before its end, it is recorded as cancelled.
pub struct StatementTelemetry {
    /// Disabled without a collector, and outside of traces.
    pub span: Span,
    operation: &'static str,
    started: Instant,
    error: Option<&'static str>,
}

impl StatementTelemetry {
    pub fn begin(sql: &dyn Display) -> Self {
        let (traced, measured) = (has_active_span(), metrics::instruments().is_some());
        let text = if traced || measured { sql.to_string() } else { String::new() };
        let operation = operation_name(&text);
        let span = if traced {
            crate::traced!(
                "clickhouse",
                otel.name = format!("{operation} {CLICKHOUSE}"),
                otel.kind = "client",
                db.system.name = CLICKHOUSE,
                db.operation.name = operation,
                db.query.text = truncate(&text),
                http.route = current_route().as_deref(),
                otel.status_code = tracing::field::Empty,
                error.type = tracing::field::Empty,
            )
        } else {
            Span::none()
        };
        StatementTelemetry { span, operation, started: Instant::now(), error: Some("cancelled") }
    }

    /// Records the duration, and the kind of error if there was one.
    pub fn end(mut self, error: Option<&'static str>) {
        self.error = error;
    }
}

impl Drop for StatementTelemetry {
    fn drop(&mut self) {
        if let Some(kind) = self.error {
            self.span.record("otel.status_code", "ERROR");
            self.span.record(labels::ERROR_TYPE, kind);
        }
        if let Some(metrics) = metrics::instruments() {
            let mut labels = vec![
                KeyValue::new(labels::SYSTEM, CLICKHOUSE),
                KeyValue::new(labels::OPERATION, self.operation),
            ];
            labels.extend(route_label());
            labels.extend(self.error.map(|kind| KeyValue::new(labels::ERROR_TYPE, kind)));
            metrics::record_duration(&metrics.statement_duration, self.started.elapsed(), &labels);
        }
    }
}

const CLICKHOUSE: &str = "clickhouse";

/// The values of the operation label besides `OTHER`.
const OPERATIONS: [&str; 11] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "ALTER",
    "CREATE",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "WITH",
    "SAVEPOINT",
];

/// Returns the first keyword of a statement, after comments.
pub(super) fn operation_name(sql: &str) -> &'static str {
    let lines = sql.lines().map(str::trim);
    let first = lines
        .filter(|line| !line.is_empty() && !line.starts_with("--"))
        .find_map(|line| line.split_whitespace().next());
    let word = first.unwrap_or_default().trim_end_matches(';');
    OPERATIONS.into_iter().find(|operation| operation.eq_ignore_ascii_case(word)).unwrap_or("OTHER")
}

/// Length from which a statement is truncated in a span.
const MAX_STATEMENT_BYTES: usize = 2000;

pub(super) fn truncate(sql: &str) -> &str {
    sql.get(..sql.floor_char_boundary(MAX_STATEMENT_BYTES)).unwrap_or(sql).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_is_the_first_keyword_after_comments() {
        assert_eq!(operation_name("select 1"), "SELECT");
        assert_eq!(operation_name("-- Gains of days.\n\n  with x as (select 1) select x"), "WITH");
        assert_eq!(operation_name("BEGIN"), "BEGIN");
        assert_eq!(operation_name("listen channel"), "OTHER");
        assert_eq!(operation_name(""), "OTHER");
    }
}
