//! Responds with 500 if a handler panics.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};

use crate::http::output::problem::Problem;

/// The panic hook logs the panic.
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
    use salvo::http::StatusCode;
    use serde_json::Value;
    use tokio::runtime::Runtime;

    use super::*;
    use crate::model::key::ApiKey;
    use crate::telemetry::{self, LogArgs, LogFormat};

    /// Set to a log format in the child process that panics.
    const FORMAT: &str = "TIDEMARK_TEST_PANICS";

    #[handler]
    async fn panic(req: &Request) {
        panic!("client input:\n2026-01-01 ERROR {}", req.uri().path());
    }

    #[test]
    fn panic_is_one_log_line() {
        let name = "http::middleware::catch_panic::tests::panic_is_one_log_line";
        if let Ok(format) = std::env::var(FORMAT) {
            let format = if format == "json" { LogFormat::Json } else { LogFormat::Text };
            let runtime = Runtime::new().unwrap();
            let filter = "off".to_owned();
            telemetry::init(&LogArgs { filter, format }, None, runtime.handle()).unwrap();
            let (mut request, mut depot, mut response) = (Request::new(), Depot::new(), Response::new());
            let key = ApiKey::generate().unwrap();
            *request.uri_mut() = format!("/v2/{}", key.reveal()).parse().unwrap();
            let mut ctrl = FlowCtrl::new(vec![Arc::new(panic)]);
            runtime.block_on(CatchPanic.handle(&mut request, &mut depot, &mut response, &mut ctrl));
            assert_eq!(response.status_code, Some(StatusCode::INTERNAL_SERVER_ERROR));
            return;
        }
        for format in ["json", "text"] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args([name, "--exact", "--nocapture"]).env(FORMAT, format).env("RUST_BACKTRACE", "0");
            let output = command.stdin(Stdio::null()).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let log = String::from_utf8(output.stderr).unwrap();
            assert_eq!(log.lines().count(), 1, "{log}");
            assert!(log.contains("2026-01-01 ERROR /v2/tdm_…"), "{log}");
            if format == "json" {
                let line: Value = serde_json::from_str(&log).unwrap();
                assert_eq!(line["level"], "ERROR");
                assert!(line["location"].as_str().unwrap().starts_with(file!()), "{line}");
                assert!(line["reason"].as_str().unwrap().starts_with("client input:\n"), "{line}");
            } else {
                assert!(log.contains(&format!("location=\"{}:", file!())), "{log}");
            }
        }
    }
}
