//! Checks of every response: the form of problems, the rate limit headers, and conformance to the document.

use std::io::Write;
use std::process::{Command, Stdio};

use harness::Response;
use serde_json::{Value, json};

use crate::operation::Operation;

const RATE_LIMIT_HEADERS: [&str; 3] = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
const VALIDATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi/validate.py");

/// How a request is authenticated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    Key,
    /// Without a key, or with an invalid one.
    None,
}

/// The responses of all operations, for validation against the document.
#[derive(Default)]
pub struct Responses(Vec<Value>);

impl Responses {
    /// Checks and records a response.
    #[track_caller]
    pub fn record(&mut self, operation: &Operation, auth: Auth, response: Response) -> Response {
        let is_limited = auth == Auth::Key && !operation.is_public();
        for name in RATE_LIMIT_HEADERS {
            let number = response.header(name).parse::<i64>();
            assert_eq!(number.is_ok(), is_limited, "{name}: {response}");
        }
        if response.status >= 400 {
            check_problem(&response);
        }
        let headers: Vec<_> = response.headers.keys().map(|name| name.as_str()).collect();
        self.0.push(json!({
            "operation": [operation.path, operation.method.as_str().to_lowercase()],
            "status": response.status.to_string(),
            "type": response.headers.get("content-type").map(|value| value.to_str().unwrap()),
            "headers": headers,
            "text": String::from_utf8_lossy(&response.body),
        }));
        response
    }

    /// Asserts that all responses conform to the document.
    pub fn validate(self, document: &Value) {
        let python =
            std::env::var_os("TIDEMARK_TEST_PYTHON").expect("no Python to test with: run `make test`");
        let mut check =
            Command::new(python).arg(VALIDATOR).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = json!({"document": document, "responses": self.0}).to_string();
        check.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = check.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[track_caller]
fn check_problem(response: &Response) {
    let code = response.text("/code");
    let status = reqwest::StatusCode::from_u16(response.status).unwrap();
    assert_eq!(response.header("content-type"), "application/problem+json", "{response}");
    assert_eq!(response.header("cache-control"), "no-store", "{response}");
    assert_eq!(response.headers.get("etag"), None, "{response}");
    let urn = format!("urn:tidemark:error:{}", code.to_lowercase().replace('_', "-"));
    assert_eq!(response.text("/type"), urn, "{response}");
    assert_eq!(response.text("/title"), status.canonical_reason().unwrap(), "{response}");
    assert_eq!(response.integer("/status"), i64::from(response.status), "{response}");
    assert!(!response.text("/detail").is_empty(), "{response}");
    let instance = response.text("/instance");
    let is_known = ["/v2/", "/export/", "/import"].iter().any(|start| instance.starts_with(start));
    assert!(is_known, "{response}");
    assert_eq!(response.text("/request_id"), response.header("x-request-id"), "{response}");
    assert_eq!(response.json.get("errors").is_some(), response.status == 422, "{response}");
    let challenge = if response.status == 401 { "Bearer" } else { "" };
    assert_eq!(response.header("www-authenticate"), challenge, "{response}");
}
