//! How routes are written: what is read answers HEAD as well, and a literal segment wins over a parameter beside
//! it whatever the method. What no route answers is told here too, without asking for a key.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use salvo::http::{Method, StatusCode};
use salvo::routing::{Filter, FilterInfo, PathState};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Writer, async_trait};

use super::problem::Problem;

/// A route that answers GET, and HEAD as GET without a body.
pub fn read(handler: impl Handler) -> Router {
    Router::with_filter(Reads).goal(handler)
}

/// A route for one parameter, at whose place the literal segments mean something else.
pub fn parameter(pattern: &str, literals: &'static [&'static str]) -> Router {
    Router::with_filter(NoneOf(literals)).path(pattern)
}

/// Matches GET and HEAD; the documentation shows the first.
#[derive(Debug)]
struct Reads;

#[async_trait]
impl Filter for Reads {
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

/// Answers for routes that do not exist.
pub struct Unrouted;

#[async_trait]
impl Handler for Unrouted {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        ctrl.call_next(req, depot, res).await;
        if !res.body.is_none() {
            return;
        }
        let problem = match res.status_code {
            Some(StatusCode::NOT_FOUND) => Problem::not_found("nothing is served at this path"),
            Some(StatusCode::METHOD_NOT_ALLOWED) => {
                Problem::method_not_allowed("this path does not serve the method: see the Allow header")
            }
            _ => return,
        };
        problem.write(req, depot, res).await;
    }
}

/// Turns a panic into an answer that says nothing of it.
pub struct CatchPanic;

#[async_trait]
impl Handler for CatchPanic {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let outcome = AssertUnwindSafe(ctrl.call_next(req, depot, res)).catch_unwind().await;
        if let Err(panic) = outcome {
            let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            let problem = Problem::internal(format!("a handler panicked: {text}"));
            problem.write(req, depot, res).await;
        }
    }
}
