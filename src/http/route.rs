//! Filters of routes.

use salvo::http::Method;
use salvo::routing::{Filter, FilterInfo, PathState};
use salvo::{Handler, Request, Router, async_trait};

use super::middleware::LimitReads;

/// Routes GET and HEAD.
pub fn get_or_head(handler: impl Handler) -> Router {
    Router::with_filter(GetOrHead).goal(handler)
}

/// Routes GET and HEAD to a handler that reads records, over one connection at a time. Fairly between organizations.
pub fn get_records(handler: impl Handler) -> Router {
    Router::with_filter(GetOrHead).hoop(LimitReads).goal(handler)
}

/// Routes POST, for which a body is optional.
pub fn post_without_body(handler: impl Handler) -> Router {
    Router::with_filter(MethodWithBody(Method::POST, RouteBody::Optional)).goal(handler)
}

/// Routes PUT, with a body.
pub fn put_with_body(handler: impl Handler) -> Router {
    Router::with_filter(MethodWithBody(Method::PUT, RouteBody::Required)).goal(handler)
}

/// Routes a path parameter, except literal segments that other routes match.
pub fn parameter_except(pattern: &str, literals: &'static [&'static str]) -> Router {
    Router::with_filter(NoneOf(literals)).path(pattern)
}

/// Matches GET and HEAD; the OpenAPI document shows GET.
#[derive(Debug)]
struct GetOrHead;

#[async_trait]
impl Filter for GetOrHead {
    async fn filter(&self, req: &mut Request, _state: &mut PathState<'_>) -> bool {
        matches!(*req.method(), Method::GET | Method::HEAD)
    }

    fn info(&self) -> FilterInfo {
        FilterInfo::Method(Method::GET)
    }

    fn collect_methods(&self, methods: &mut Vec<Method>) {
        methods.extend([Method::GET, Method::HEAD]);
    }

    async fn filter_for_method(
        &self,
        _: &mut Request,
        _: &mut PathState<'_>,
        method: &Method,
    ) -> Option<bool> {
        Some(matches!(*method, Method::GET | Method::HEAD))
    }
}

/// Whether a request has a body, in a route for which its method does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteBody {
    Optional,
    Required,
}

/// Matches a method, and marks the request.
#[derive(Debug)]
struct MethodWithBody(Method, RouteBody);

#[async_trait]
impl Filter for MethodWithBody {
    async fn filter(&self, req: &mut Request, _state: &mut PathState<'_>) -> bool {
        let is_matching = *req.method() == self.0;
        if is_matching {
            req.extensions_mut().insert(self.1);
        }
        is_matching
    }

    fn info(&self) -> FilterInfo {
        FilterInfo::Method(self.0.clone())
    }

    fn collect_methods(&self, methods: &mut Vec<Method>) {
        methods.push(self.0.clone());
    }

    async fn filter_for_method(
        &self,
        _: &mut Request,
        _: &mut PathState<'_>,
        method: &Method,
    ) -> Option<bool> {
        Some(*method == self.0)
    }
}

/// Matches unless the next segment is one of the literals.
#[derive(Debug)]
struct NoneOf(&'static [&'static str]);

#[async_trait]
impl Filter for NoneOf {
    async fn filter(&self, _req: &mut Request, state: &mut PathState<'_>) -> bool {
        state.pick().is_none_or(|segment| !self.0.contains(&segment))
    }

    async fn filter_for_method(
        &self,
        req: &mut Request,
        state: &mut PathState<'_>,
        _: &Method,
    ) -> Option<bool> {
        Some(self.filter(req, state).await)
    }
}
