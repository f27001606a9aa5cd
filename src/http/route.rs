//! How routes are written: what is read answers HEAD as well, and a literal segment wins over a parameter beside
//! it whatever the method. What no route answers is told here too, without asking for a key.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use salvo::http::{Method, StatusCode};
use salvo::routing::{Filter, FilterInfo, PathState};
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Router, Writer, async_trait};

use crate::http::output::problem::Problem;

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

/// Turns a panic, which the log has, into an answer that says nothing of it.
pub struct CatchPanic;

#[async_trait]
impl Handler for CatchPanic {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let outcome = AssertUnwindSafe(ctrl.call_next(req, depot, res)).catch_unwind().await;
        if outcome.is_err() {
            Problem::panicked().write(req, depot, res).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::sync::Arc;

    use salvo::handler;
    use serde_json::Value;
    use tokio::runtime::Runtime;

    use super::*;
    use crate::model::key::ApiKey;
    use crate::telemetry::{self, LogArgs, LogFormat};

    /// Set in the process that panics, to the form of its log.
    const FORM: &str = "TIDEMARK_TEST_PANICS";

    #[handler]
    async fn panics(req: &Request) {
        panic!("what a client sent:\n2026-01-01 ERROR {}", req.uri().path());
    }

    #[test]
    fn a_panic_is_one_line_of_the_log_whatever_else_is_in_it() {
        let name = "http::route::tests::a_panic_is_one_line_of_the_log_whatever_else_is_in_it";
        if let Ok(form) = std::env::var(FORM) {
            let format = if form == "json" { LogFormat::Json } else { LogFormat::Text };
            let runtime = Runtime::new().unwrap();
            let filter = "off".to_owned();
            telemetry::init(&LogArgs { filter, format }, None, runtime.handle()).unwrap();
            let (mut request, mut depot, mut response) = (Request::new(), Depot::new(), Response::new());
            let key = ApiKey::generate().unwrap();
            *request.uri_mut() = format!("/v2/{}", key.reveal()).parse().unwrap();
            let mut rest = FlowCtrl::new(vec![Arc::new(panics)]);
            runtime.block_on(CatchPanic.handle(&mut request, &mut depot, &mut response, &mut rest));
            assert_eq!(response.status_code, Some(StatusCode::INTERNAL_SERVER_ERROR));
            return;
        }
        for form in ["json", "text"] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([name, "--exact", "--nocapture"]).env(FORM, form).env("RUST_BACKTRACE", "0");
            let output = command.stdin(Stdio::null()).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let log = String::from_utf8(output.stderr).unwrap();
            assert_eq!(log.lines().count(), 1, "{log}");
            assert!(log.contains("2026-01-01 ERROR /v2/tdm_…"), "{log}");
            if form == "json" {
                let line: Value = serde_json::from_str(&log).unwrap();
                assert_eq!(line["level"], "ERROR");
                assert!(line["location"].as_str().unwrap().starts_with(file!()), "{line}");
                assert!(line["reason"].as_str().unwrap().starts_with("what a client sent:\n"), "{line}");
            } else {
                assert!(log.contains(&format!("location=\"{}:", file!())), "{log}");
            }
        }
    }
}
