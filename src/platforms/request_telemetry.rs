//! The span and the metric of one HTTP request to a platform: service, duration and status. Neither contains the URL,
//! the request or the response.

use std::time::Instant;

use opentelemetry::KeyValue;
use reqwest::{RequestBuilder, StatusCode};
use tracing::{Instrument, Span};

use crate::telemetry::{labels, metrics, trace};

/// A request that is being measured.
pub(super) struct RequestTelemetry {
    service: &'static str,
    span: Span,
    started: Instant,
}

impl RequestTelemetry {
    /// Starts measuring, and adds the headers with which the service can continue the trace.
    pub(super) fn start(service: &'static str, request: RequestBuilder) -> (Self, RequestBuilder) {
        let span = crate::traced!(
            "platform",
            otel.name = format!("request {service}"),
            otel.kind = "client",
            tidemark.source = service,
            http.response.status_code = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
        );
        let request = request.headers(trace::propagation_headers(&span));
        (RequestTelemetry { service, span, started: Instant::now() }, request)
    }

    /// Runs the request inside the span.
    pub(super) fn instrument<T>(&self, request: impl Future<Output = T>) -> impl Future<Output = T> {
        request.instrument(self.span.clone())
    }

    /// Records the status of a complete response, or that there was none.
    pub(super) fn finish<E>(self, status: Result<StatusCode, E>) {
        let status = status.ok().map(|status| i64::from(status.as_u16()));
        match status {
            Some(status) => _ = self.span.record("http.response.status_code", status),
            None => _ = self.span.record("otel.status_code", "ERROR"),
        }
        if let Some(metrics) = metrics::instruments() {
            let outcome = match status {
                Some(status) => KeyValue::new(labels::STATUS, status),
                None => KeyValue::new(labels::ERROR_TYPE, "no_answer"),
            };
            let labels = [KeyValue::new(labels::SOURCE, self.service), outcome];
            metrics::record_duration(&metrics.source_request_duration, self.started.elapsed(), &labels);
        }
    }
}
