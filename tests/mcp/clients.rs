//! The official clients of Python and TypeScript, and the conformance suite of the protocol.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use harness::{TestApi, command};
use serde_json::{Value, json};

use crate::call_tool;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp");

/// Scenarios of the suite, with the checks that need tools, prompts or resources of a test server.
const SCENARIOS: [(&str, &[&str]); 9] = [
    ("2025-11-25:server-initialize", &[]),
    ("2025-11-25:ping", &[]),
    ("2025-11-25:tools-list", &[]),
    ("2025-11-25:dns-rebinding-protection", &[]),
    (
        "2026-07-28:server-stateless",
        &[
            // Call tools of a test server.
            "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400",
            "sep-2575-http-server-no-independent-requests-on-stream",
            "sep-2575-server-no-log-without-loglevel",
        ],
    ),
    ("2026-07-28:tools-list", &[]),
    (
        "2026-07-28:caching",
        &[
            "sep-2549-prompts-list-caching-hints",
            "sep-2549-resources-list-caching-hints",
            "sep-2549-resources-templates-list-caching-hints",
        ],
    ),
    ("2026-07-28:http-header-validation", &[]),
    ("2026-07-28:dns-rebinding-protection", &[]),
];

/// Runs a program beside the API of a test.
async fn run(mut command: Command) -> Value {
    let output: Output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}\n{stderr}"))
}

/// An API, calls, and their results.
async fn expected_results() -> (TestApi, Value, Vec<Value>) {
    let api = TestApi::start().await;
    api.create("/v2/collections", json!({"name": "Größe", "rule": {"hashtags": ["surf"]}})).await;
    api.create("/v2/accounts", json!({"platform": "tiktok", "username": "low.tide"})).await;
    let calls = json!([
        {"name": "list_collections", "arguments": {"limit": 5}},
        {"name": "get_account", "arguments": {"account_id": "@low.tide"}},
        {"name": "list_content", "arguments": {}},
        {"name": "list_collections", "arguments": {"unknown": 1}},
    ]);
    let mut results = Vec::new();
    for call in calls.as_array().unwrap() {
        let outcome = call_tool(&api, call["name"].as_str().unwrap(), call["arguments"].clone()).await;
        results.push(outcome.unwrap_or_else(|problem| problem));
    }
    (api, calls, results)
}

/// Asserts what clients got, of which so many spoke each version.
fn assert_report(report: &Value, results: &[Value], modern: usize, legacy: usize) {
    let clients = report.as_array().unwrap();
    for client in clients {
        assert_eq!(client["tools"], 17, "{client}");
        for (found, expected) in client["results"].as_array().unwrap().iter().zip(results) {
            // Problems have the id of their request.
            let comparable = |value: &Value| {
                let mut value = value.clone();
                value.as_object_mut().unwrap().remove("request_id");
                value
            };
            assert_eq!(comparable(found), comparable(expected), "{}", client["client"]);
        }
    }
    let speaking = |version: &str| clients.iter().filter(|client| client["version"] == version).count();
    assert_eq!((speaking("2026-07-28"), speaking("2025-11-25")), (modern, legacy), "{report}");
}

#[tokio::test]
async fn typescript_clients_call_tools() {
    let (api, calls, results) = expected_results().await;
    let mut node = Command::new("node");
    node.arg(format!("{FOLDER}/typescript/clients.mjs")).args([api.url(), &api.key]);
    node.arg(command().get_program()).arg(calls.to_string());
    // The earlier client does not tell the version over standard input.
    assert_report(&run(node).await, &results, 3, 3);
}

#[tokio::test]
async fn python_client_calls_tools() {
    let (api, calls, results) = expected_results().await;
    let python =
        std::env::var_os("TIDEMARK_TEST_MCP_PYTHON").expect("no Python to test with: run `make test`");
    let mut client = Command::new(python);
    client.arg(format!("{FOLDER}/client.py")).args([api.url(), &api.key]);
    client.arg(command().get_program()).arg(calls.to_string());
    assert_report(&run(client).await, &results, 4, 2);
}

#[tokio::test]
async fn conformance_suite_passes() {
    let api = TestApi::start().await;
    let mut node = Command::new("node");
    node.arg(format!("{FOLDER}/typescript/conformance.mjs")).args([api.url(), &api.key]);
    node.args(SCENARIOS.map(|(scenario, _)| scenario));
    let report = run(node).await;
    for ((name, impossible), found) in SCENARIOS.iter().zip(report.as_array().unwrap()) {
        let checks = found["checks"].as_array().unwrap();
        let with_status = |status: &str| -> BTreeSet<&str> {
            let checks = checks.iter().filter(|check| check["status"] == status);
            checks.map(|check| check["id"].as_str().unwrap()).collect()
        };
        assert!(!with_status("SUCCESS").is_empty(), "{name}: {found}");
        assert_eq!(with_status("FAILURE"), impossible.iter().copied().collect(), "{name}: {found}");
        assert_eq!(with_status("WARNING"), BTreeSet::new(), "{name}: {found}");
    }
}
