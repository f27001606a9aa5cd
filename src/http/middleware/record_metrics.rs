//! A request as traces and metrics see it: its method, the template of its route, its status, how long it took, and how
//! large the organization is that asked. Neither its path nor its query is told.

use std::sync::Arc;
use std::time::Instant;

use opentelemetry::KeyValue;
use salvo::http::Method;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, async_trait};
use tracing::Instrument;

use crate::http::middleware::authenticate::Caller;
use crate::http::middleware::request_id;
use crate::telemetry::{labels, metrics, organization_size, trace};

/// Watches every request from its first step to its last.
pub struct Observe;

#[async_trait]
impl Handler for Observe {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let began = Instant::now();
        let (method, metrics) = (method(req.method()), metrics::instruments());
        // What a span says is made only where somebody wants spans.
        let span = crate::traced!(
            "request",
            otel.name = route(req).map_or_else(|| method.to_owned(), |route| format!("{method} {route}")),
            otel.kind = "server",
            http.request.method = method,
            http.route = route(req).as_deref(),
            http.response.status_code = tracing::field::Empty,
            tidemark.request_id = tracing::field::Empty,
            tidemark.organization.size = tracing::field::Empty,
            otel.status_code = tracing::field::Empty,
        );
        if span.is_disabled() && metrics.is_none() {
            ctrl.call_next(req, depot, res).await;
            return;
        }
        let route = route(req);
        trace::set_remote_parent(&span, req.headers());
        trace::with_route(route.clone(), ctrl.call_next(req, depot, res)).instrument(span.clone()).await;
        let status = res.status_code.map_or(200, |status| status.as_u16());
        let size =
            organization_size::label(depot.get_typed::<Caller>().ok().map(|caller| caller.organization));
        if !span.is_disabled() {
            span.record(labels::STATUS, i64::from(status));
            span.record(labels::ORGANIZATION_SIZE, size);
            let id = res.headers().get(request_id::HEADER).and_then(|id| id.to_str().ok());
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
            metrics::record_duration(&metrics.request_duration, began.elapsed(), &labels);
        }
    }
}

/// Counts a request that is refused because a limit is reached.
pub(in crate::http) fn refused(limit: &'static str) {
    if let Some(metrics) = metrics::instruments() {
        metrics.rate_limit_rejections.add(1, &[KeyValue::new(labels::LIMIT, limit)]);
    }
}

/// The methods that have a meaning here; all others are one.
fn method(method: &Method) -> &'static str {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    known.into_iter().find(|known| *known == method.as_str()).unwrap_or("_OTHER")
}

/// The template of the route that answers; none where nothing is served.
fn route(req: &Request) -> Option<Arc<str>> {
    let path = req.matched_path();
    (!path.is_empty()).then(|| format!("/{path}").into())
}

#[cfg(test)]
mod tests {
    use salvo::handler;
    use salvo::http::ResBody;

    use super::*;

    #[handler]
    async fn tells_its_route(res: &mut Response) {
        res.render(if trace::current_route().is_some() { "told" } else { "nobody is told" });
    }

    #[tokio::test]
    async fn where_nobody_collects_nothing_is_noted() {
        let (mut request, mut depot, mut response) = (Request::new(), Depot::new(), Response::new());
        *request.matched_path_mut() = "v2/overview".to_owned();
        let mut rest = FlowCtrl::new(vec![Arc::new(tells_its_route)]);
        Observe.handle(&mut request, &mut depot, &mut response, &mut rest).await;
        let ResBody::Once(told) = response.take_body() else { panic!("nothing was answered") };
        assert_eq!(told, "nobody is told");
    }
}
