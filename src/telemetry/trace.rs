//! Traces: spans that only a collector sees, and the context that travels in the headers of requests.
//!
//! Spans for collectors have the target `otel`, which no line of the log shows. None carries what a client or a
//! platform sent: routes instead of paths, statements with placeholders instead of values.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use opentelemetry::trace::{SpanContext, TraceContextExt, TraceState};
use opentelemetry::{Context, KeyValue, global};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use reqwest::header::HeaderMap;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use super::{metrics, names};

/// Opens a span for collectors, the way `tracing::info_span!` does.
#[macro_export]
macro_rules! traced {
    ($($field:tt)*) => { tracing::info_span!(target: "otel", $($field)*) };
}

tokio::task_local! {
    /// The template of the route that the running request took.
    static ROUTE: Option<Arc<str>>;
}

/// Does the work of a request, and lets what it asks of stores be told by its route.
pub async fn routed<T>(route: Option<Arc<str>>, work: impl Future<Output = T>) -> T {
    ROUTE.scope(route, work).await
}

/// The route of the running request.
pub fn route() -> Option<Arc<str>> {
    ROUTE.try_with(Clone::clone).ok().flatten()
}

/// The same as a label.
pub fn route_label() -> Option<KeyValue> {
    route().map(|route| KeyValue::new(names::ROUTE, route))
}

/// Puts a span below the one that a request's headers name. What else they say of the trace (`tracestate`) is text of the
/// client's own, and would go to whoever is told of the span or asked within it.
pub fn continue_from(span: &Span, headers: &HeaderMap) {
    if !span.is_disabled() {
        let mut parent =
            global::get_text_map_propagator(|propagator| propagator.extract(&HeaderExtractor(headers)));
        if parent.has_active_span() {
            parent = parent.with_remote_span_context(without_state(parent.span().span_context()));
        }
        if let Err(error) = span.set_parent(parent) {
            tracing::debug!(%error, "a request's trace is not continued");
        }
    }
}

fn without_state(told: &SpanContext) -> SpanContext {
    SpanContext::new(told.trace_id(), told.span_id(), told.trace_flags(), told.is_remote(), TraceState::NONE)
}

/// The headers by which whoever is asked continues a span's trace; none while nothing is traced.
pub fn headers_of(span: &Span) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if !span.is_disabled() {
        global::get_text_map_propagator(|propagator| {
            propagator.inject_context(&span.context(), &mut HeaderInjector(&mut headers));
        });
    }
    headers
}

/// The number of the running trace, for the log.
pub fn id() -> Option<String> {
    let context = Context::current();
    let span = context.span();
    let context = span.span_context();
    context.is_valid().then(|| context.trace_id().to_string())
}

/// Whether something is traced that a further span would belong to.
pub fn is_running() -> bool {
    Context::map_current(Context::has_active_span)
}

/// A statement to ClickHouse on its way. One that is dropped before its end was given up.
pub struct Statement {
    /// That of the statement; none while nothing is traced.
    pub span: Span,
    operation: &'static str,
    began: Instant,
    error: Option<&'static str>,
}

impl Statement {
    /// Begins to watch a statement. What nobody traces gets no trace of its own: the relay looks often.
    pub fn to_clickhouse(sql: &dyn Display) -> Self {
        let (traced, measured) = (is_running(), metrics::on().is_some());
        let text = if traced || measured { sql.to_string() } else { String::new() };
        let operation = operation(&text);
        let span = if traced {
            crate::traced!(
                "clickhouse",
                otel.name = format!("{operation} {CLICKHOUSE}"),
                otel.kind = "client",
                db.system.name = CLICKHOUSE,
                db.operation.name = operation,
                db.query.text = shortened(&text),
                http.route = route().as_deref(),
                otel.status_code = tracing::field::Empty,
                error.type = tracing::field::Empty,
            )
        } else {
            Span::none()
        };
        Statement { span, operation, began: Instant::now(), error: Some("cancelled") }
    }

    /// Ends it; an error is told by its kind.
    pub fn end(mut self, error: Option<&'static str>) {
        self.error = error;
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        if let Some(kind) = self.error {
            self.span.record("otel.status_code", "ERROR");
            self.span.record(names::ERROR, kind);
        }
        if let Some(metrics) = metrics::on() {
            let mut labels = vec![
                KeyValue::new(names::SYSTEM, CLICKHOUSE),
                KeyValue::new(names::OPERATION, self.operation),
            ];
            labels.extend(route_label());
            labels.extend(self.error.map(|kind| KeyValue::new(names::ERROR, kind)));
            metrics::took(&metrics.statement, self.began.elapsed(), &labels);
        }
    }
}

const CLICKHOUSE: &str = "clickhouse";

/// The verbs that statements are told by; one label value for all others.
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

/// What a statement does: its first word, after what is commented.
pub(super) fn operation(sql: &str) -> &'static str {
    let lines = sql.lines().map(str::trim);
    let first = lines
        .filter(|line| !line.is_empty() && !line.starts_with("--"))
        .find_map(|line| line.split_whitespace().next());
    let word = first.unwrap_or_default().trim_end_matches(';');
    OPERATIONS.into_iter().find(|known| known.eq_ignore_ascii_case(word)).unwrap_or("OTHER")
}

/// The most of a statement that a span tells.
const TOLD: usize = 2000;

pub(super) fn shortened(sql: &str) -> &str {
    sql.get(..sql.floor_char_boundary(TOLD)).unwrap_or(sql).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_by_their_first_word() {
        assert_eq!(operation("select 1"), "SELECT");
        assert_eq!(operation("-- Gains of days.\n\n  with x as (select 1) select x"), "WITH");
        assert_eq!(operation("BEGIN"), "BEGIN");
        assert_eq!(operation("listen channel"), "OTHER");
        assert_eq!(operation(""), "OTHER");
    }
}
