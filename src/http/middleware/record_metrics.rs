//! Records metrics and a trace span of each request: method, route, status, duration, and the size of the organization.
//! Path and query are not recorded.

use std::sync::Arc;
use std::time::Instant;

use opentelemetry::KeyValue;
use salvo::http::Method;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, async_trait};
use tracing::Instrument;

use crate::http::caller::Caller;
use crate::http::request_id::REQUEST_ID_HEADER;
use crate::telemetry::{labels, metrics, organization_size, trace};

pub struct RecordMetrics;

#[async_trait]
impl Handler for RecordMetrics {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let started = Instant::now();
        let (method, metrics) = (method_label(req.method()), metrics::instruments());
        // Computes the fields of the span only if traces are collected.
        let span = crate::traced!(
            "request",
            otel.name =
                route_label(req).map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
            otel.kind = "server",
            http.request.method = method,
            http.route = route_label(req).as_deref(),
            http.response.status_code = tracing::field::Empty,
            tidemark.request_id = tracing::field::Empty,
            tidemark.organization.size = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
        );
        if span.is_disabled() && metrics.is_none() {
            ctrl.call_next(req, depot, res).await;
            return;
        }
        let route = route_label(req);
        trace::set_remote_parent(&span, req.headers());
        trace::with_route(route.clone(), ctrl.call_next(req, depot, res)).instrument(span.clone()).await;
        let status = res.status_code.map_or(200, |status| status.as_u16());
        let size =
            organization_size::label(depot.get_typed::<Caller>().ok().map(|caller| caller.organization));
        if !span.is_disabled() {
            span.record(labels::STATUS, i64::from(status));
            span.record(labels::ORGANIZATION_SIZE, size);
            let id = res.headers().get(REQUEST_ID_HEADER).and_then(|id| id.to_str().ok());
            span.record("tidemark.request_id", id);
            if status >= 500 {
                span.record("otel.status_code", "ERROR");
            }
        }
        if let Some(metrics) = metrics {
            let mut labels = vec![
                KeyValue::new(labels::METHOD, method),
                KeyValue::new(labels::STATUS, i64::from(status)),
                KeyValue::new(labels::ORGANIZATION_SIZE, size),
            ];
            labels.extend(route.map(|route| KeyValue::new(labels::ROUTE, route)));
            metrics::record_duration(&metrics.request_duration, started.elapsed(), &labels);
        }
    }
}

/// Counts a request that exceeds a rate limit.
pub(super) fn count_rate_limit_rejection(limit: &'static str) {
    if let Some(metrics) = metrics::instruments() {
        metrics.rate_limit_rejections.add(1, &[KeyValue::new(labels::LIMIT, limit)]);
    }
}

/// Maps methods that the API does not use to `_OTHER`.
fn method_label(method: &Method) -> &'static str {
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    methods.into_iter().find(|name| *name == method.as_str()).unwrap_or("_OTHER")
}

/// Returns the template of the matched route.
fn route_label(req: &Request) -> Option<Arc<str>> {
    let path = req.matched_path();
    (!path.is_empty()).then(|| format!("/{path}").into())
}

#[cfg(test)]
mod tests {
    use salvo::handler;
    use salvo::http::ResBody;

    use super::*;

    #[handler]
    async fn render_route(res: &mut Response) {
        res.render(if trace::current_route().is_some() { "route" } else { "no route" });
    }

    #[tokio::test]
    async fn nothing_is_recorded_without_telemetry() {
        let (mut request, mut depot, mut response) = (Request::new(), Depot::new(), Response::new());
        *request.matched_path_mut() = "v2/overview".to_owned();
        let mut ctrl = FlowCtrl::new(vec![Arc::new(render_route)]);
        RecordMetrics.handle(&mut request, &mut depot, &mut response, &mut ctrl).await;
        let ResBody::Once(body) = response.take_body() else { panic!("no body") };
        assert_eq!(body, "no route");
    }
}
