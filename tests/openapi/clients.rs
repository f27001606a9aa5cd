//! Parses the response of every read with clients that are generated from the document: by openapi-python-client, hey-api and
//! openapi-typescript.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use harness::{Stack, send};
use serde_json::{Value, json};

use crate::operation::{Operation, RequestParts, fetch_document};
use crate::tenant::Tenant;

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi");

#[tokio::test]
async fn generated_clients_parse_every_response() {
    let stack = Stack::shared();
    let (document, operations) = fetch_document(&stack).await;
    let tenant = Tenant::create(&stack, 2).await;
    // Scraped, paused and not yet scraped, beside the imported ones.
    for (username, is_active) in [("tide.scraped", true), ("tide.paused", false)] {
        let body = json!({"platform": "tiktok", "username": username, "is_active": is_active, "metadata": {"a": "b"}});
        tenant.organization.post("/accounts", body).await.ok(201);
    }
    let mut responses = Vec::new();
    let is_json = |operation: &&Operation| operation.is_read() && operation.file_type().is_none();
    for operation in operations.iter().filter(is_json) {
        for parts in variants(operation, &operation.valid_request(&tenant)) {
            let response = send(operation.authorized_request(&tenant, &parts)).await.ok(200);
            responses.push(json!({
                "operation": operation.spec["operationId"],
                "path": format!("{operation} {:?}", parts.query),
                "status": 200,
                "body": response.json,
            }));
        }
    }
    assert!(responses.len() > 80, "{}", responses.len());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("document.json"), document.to_string()).unwrap();
    std::fs::write(folder.path().join("responses.json"), json!(responses).to_string()).unwrap();
    let report = json!({
        "document": document,
        "responses": responses,
        "base_url": stack.connection.base_url,
        "key": tenant.organization.key,
        "account_ids": tenant.accounts,
    });
    let folder = folder.path().to_owned();
    let typescript = tokio::task::spawn_blocking(move || check_typescript(&folder));
    let python = tokio::task::spawn_blocking(move || check_python(&report));
    for output in [typescript.await.unwrap(), python.await.unwrap()] {
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{stdout}\n{stderr}");
    }
}

/// Returns the valid request, and the request with each value of each parameter that is an enumeration.
fn variants(operation: &Operation, valid: &RequestParts) -> Vec<RequestParts> {
    let mut requests = vec![valid.clone()];
    let known: BTreeSet<_> = valid.query.iter().map(|(name, _)| name.clone()).collect();
    for parameter in operation.parameters("query") {
        let name = parameter["name"].as_str().unwrap();
        let values = parameter["schema"]["enum"].as_array().into_iter().flatten();
        // A custom period needs dates, and `sort` is the older form of `order_by`.
        for value in values.filter(|value| **value != "custom" && name != "sort" && !known.contains(name)) {
            let mut parts = valid.clone();
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            parts.query.push((name.to_owned(), text));
            requests.push(parts);
        }
    }
    requests
}

fn check_typescript(folder: &Path) -> Output {
    Command::new("node").arg(format!("{TESTS}/typescript/check.mjs")).arg(folder).output().unwrap()
}

fn check_python(report: &Value) -> Output {
    let python = std::env::var_os("TIDEMARK_TEST_PYTHON").expect("no Python to test with: run `make test`");
    let input = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(input.path(), report.to_string()).unwrap();
    let report = Stdio::from(std::fs::File::open(input.path()).unwrap());
    Command::new(python).arg(format!("{TESTS}/clients.py")).stdin(report).output().unwrap()
}
