//! What must be true of every answer, whatever was asked: the form of a problem, the headers that come with it, and,
//! for all of them together, that they are what the document says.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::Response;
use crate::operation::Operation;

const RATE: [&str; 3] = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
const VALIDATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi/validate.py");

/// Who asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A key that is counted.
    Key,
    /// Nobody, or a key that is none.
    Nobody,
}

/// Every answer that an operation gave, to be held against the document.
#[derive(Default)]
pub struct Told(Vec<Value>);

impl Told {
    /// Notes an answer of an operation, after checking what all of them have in common.
    #[track_caller]
    pub fn note(&mut self, operation: &Operation, by: By, answer: Response) -> Response {
        let limited = by == By::Key && !operation.is_public();
        for name in RATE {
            let number = answer.header(name).parse::<i64>();
            assert_eq!(number.is_ok(), limited, "{name}: {answer}");
        }
        if answer.status >= 400 {
            check_problem(&answer);
        }
        let headers: Vec<_> = answer.headers.keys().map(|name| name.as_str()).collect();
        self.0.push(json!({
            "operation": [operation.path, operation.method.as_str().to_lowercase()],
            "status": answer.status.to_string(),
            "type": answer.headers.get("content-type").map(|value| value.to_str().unwrap()),
            "headers": headers,
            "text": String::from_utf8(answer.body.clone()).unwrap(),
        }));
        answer
    }

    /// Asserts that the document says so of all of them.
    pub fn hold_against(self, document: &Value) {
        let python =
            std::env::var_os("TIDEMARK_TEST_PYTHON").expect("no Python to test with: run `make test`");
        let mut check =
            Command::new(python).arg(VALIDATOR).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let told = json!({"document": document, "answers": self.0}).to_string();
        check.stdin.take().unwrap().write_all(told.as_bytes()).unwrap();
        let checked = check.wait_with_output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
}

/// Asserts that an answer has the one form of problems.
#[track_caller]
fn check_problem(answer: &Response) {
    let code = answer.text("/code");
    let status = reqwest::StatusCode::from_u16(answer.status).unwrap();
    assert_eq!(answer.header("content-type"), "application/problem+json", "{answer}");
    assert_eq!(answer.header("cache-control"), "no-store", "{answer}");
    assert_eq!(answer.headers.get("etag"), None, "{answer}");
    assert_eq!(answer.text("/type"), format!("urn:tidemark:error:{}", code.to_lowercase().replace('_', "-")));
    assert_eq!(answer.text("/title"), status.canonical_reason().unwrap(), "{answer}");
    assert_eq!(answer.integer("/status"), i64::from(answer.status), "{answer}");
    assert!(!answer.text("/detail").is_empty(), "{answer}");
    assert!(answer.text("/instance").starts_with("/v2/"), "{answer}");
    assert_eq!(answer.text("/request_id"), answer.header("x-request-id"), "{answer}");
    assert_eq!(answer.json.get("errors").is_some(), answer.status == 422, "{answer}");
    assert_eq!(
        answer.header("www-authenticate"),
        if answer.status == 401 { "Bearer" } else { "" },
        "{answer}"
    );
}
