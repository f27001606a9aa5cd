//! The span and the metric of one HTTP request to a platform: service, duration and status. Neither contains the URL,
//! the request or the response.

use std::time::Instant;

use opentelemetry::KeyValue;
use reqwest::{RequestBuilder, StatusCode};
use tracing::Instrument;

use crate::telemetry::{labels, metrics, trace};

/// Measures `exchange`, which sends the request: a span whose trace the service can continue, the duration, and the
/// status of a complete response.
pub(super) async fn measure<T, E, F: Future<Output = Result<T, E>>>(
    service: &'static str,
    request: RequestBuilder,
    exchange: impl FnOnce(RequestBuilder) -> F,
    status: impl FnOnce(&T) -> StatusCode,
) -> Result<T, E> {
    let span = crate::traced!(
        "platform",
        otel.name = format!("request {service}"),
        otel.kind = "client",
        tidemark.source = service,
        http.response.status_code = tracing::field::Empty,
        otel.status_code = tracing::field::Empty,
    );
    let started = Instant::now();
    let request = request.headers(trace::propagation_headers(&span));
    let response = exchange(request).instrument(span.clone()).await;
    let outcome = match response.as_ref().map(status) {
        Ok(status) => {
            let status = i64::from(status.as_u16());
            span.record("http.response.status_code", status);
            KeyValue::new(labels::STATUS, status)
        }
        Err(_) => {
            span.record("otel.status_code", "ERROR");
            KeyValue::new(labels::ERROR_TYPE, "no_answer")
        }
    };
    if let Some(metrics) = metrics::instruments() {
        let labels = [KeyValue::new(labels::SOURCE, service), outcome];
        metrics::record_duration(&metrics.source_request_duration, started.elapsed(), &labels);
    }
    response
}
