//! A request to a platform as traces and metrics see it: who was asked, how long it took and with which status. Nothing
//! of what was asked or answered is told, and no address.

use std::time::Instant;

use opentelemetry::KeyValue;
use reqwest::{RequestBuilder, StatusCode};
use tracing::{Instrument, Span};

use crate::telemetry::{metrics, names, trace};

/// A request on its way.
pub(super) struct Call {
    service: &'static str,
    span: Span,
    began: Instant,
}

impl Call {
    /// Begins a call, and has the service that is asked continue the trace.
    pub(super) fn begin(service: &'static str, request: RequestBuilder) -> (Self, RequestBuilder) {
        let span = crate::traced!(
            "platform",
            otel.name = format!("ask {service}"),
            otel.kind = "client",
            tidemark.source = service,
            http.response.status_code = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
        );
        let request = request.headers(trace::headers_of(&span));
        (Call { service, span, began: Instant::now() }, request)
    }

    pub(super) fn watch<T>(&self, work: impl Future<Output = T>) -> impl Future<Output = T> {
        work.instrument(self.span.clone())
    }

    /// Ends it with the status of a whole answer, if there was one.
    pub(super) fn end<E>(self, status: Result<StatusCode, E>) {
        let status = status.ok().map(|status| i64::from(status.as_u16()));
        match status {
            Some(status) => _ = self.span.record("http.response.status_code", status),
            None => _ = self.span.record("otel.status_code", "ERROR"),
        }
        if let Some(metrics) = metrics::on() {
            let outcome = match status {
                Some(status) => KeyValue::new(names::STATUS, status),
                None => KeyValue::new(names::ERROR, "no_answer"),
            };
            let labels = [KeyValue::new(names::SOURCE, self.service), outcome];
            metrics::took(&metrics.source_request, self.began.elapsed(), &labels);
        }
    }
}
