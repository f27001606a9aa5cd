//! Sends requests that schemathesis generates from the document, valid and invalid, and checks the responses against it.
//! Most ids in them are those of a tenant.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use harness::Stack;
use serde_json::{Value, json};

use crate::tenant::Tenant;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// Fields whose rules no schema can express.
const FIELDS_BEYOND_SCHEMAS: [&str; 11] = [
    "cursor",
    "period",
    "start_date",
    "end_date",
    "created_after",
    "posted_after",
    "posted_before",
    "hashtag",
    "expires_at",
    "time_zone",
    "url",
];
/// The share of valid requests to each operation that must succeed.
const MIN_SUCCESS_RATE: f64 = 0.3;
/// If fewer requests are valid, only one must succeed.
const MIN_REQUESTS: u64 = 10;

#[tokio::test]
async fn generated_requests_conform_to_the_document() {
    fuzz(6, 1).await;
}

#[tokio::test]
#[ignore = "takes minutes: make test-deep"]
async fn many_generated_requests_conform_to_the_document() {
    for seed in 1..=3 {
        fuzz(150, seed).await;
    }
}

async fn fuzz(examples: usize, seed: u64) {
    let stack = Stack::shared();
    let tenant = Tenant::create(&stack, 40).await;
    let folder = tempfile::tempdir().unwrap();
    let ids_file = folder.path().join("ids.json");
    // Marks and shares end with their collection.
    let (deletable, lasting) = tenant.collections.split_at(tenant.collections.len() / 2);
    let imports = [tenant.imports.0, tenant.imports.1].concat();
    let ids = json!({
        "accounts": tenant.accounts,
        "usernames": tenant.usernames,
        "creators": tenant.creators,
        "links": tenant.links,
        "videos": tenant.videos,
        "internal_ids": tenant.internal_ids,
        "collections": deletable.iter().map(|(collection, _)| collection).collect::<Vec<_>>(),
        "shares": lasting,
        "marks": lasting.iter().map(|(collection, _)| (collection, &tenant.videos[0])).collect::<Vec<_>>(),
        "share_token": tenant.share_token,
        "webhooks": tenant.webhooks.iter().map(|(webhook, _)| webhook).collect::<Vec<_>>(),
        "deliveries": tenant.webhooks,
        "key": tenant.organization.key,
        "imports": imports,
    });
    std::fs::write(&ids_file, ids.to_string()).unwrap();
    let python = std::env::var_os("TIDEMARK_TEST_PYTHON").expect("no Python to test with: run `make test`");
    let mut schemathesis = Command::new(Path::new(&python).with_file_name("schemathesis"));
    schemathesis
        .current_dir(folder.path())
        .arg("--config-file")
        .arg(Path::new(ROOT).join("schemathesis.toml"))
        .args(["run", "--no-color", "--continue-on-failure", "--generation-database", "none"])
        .args(["--seed", &seed.to_string(), "--max-examples", &examples.to_string()])
        .args(["--report", "json,ndjson", "--report-json-path", "summary.json"])
        .args(["--report-ndjson-path", "requests.ndjson"])
        .args(["--header", &format!("Authorization: Bearer {}", tenant.organization.key)])
        .arg(format!("{}/openapi.json", stack.connection.base_url))
        .env("SCHEMATHESIS_HOOKS", Path::new(ROOT).join("tests/openapi/hooks.py"))
        .env("TIDEMARK_TEST_IDS", &ids_file);
    let output = tokio::task::spawn_blocking(move || schemathesis.output()).await.unwrap().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));

    let summary: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("summary.json")).unwrap()).unwrap();
    let rates = success_rates(&summary);
    assert!(!rates.is_empty() && rates.values().all(|rate| *rate >= MIN_SUCCESS_RATE), "{rates:#?}");
    let requests = std::fs::read_to_string(folder.path().join("requests.ndjson")).unwrap();
    let (responses, rejected) = wrongly_rejected(&requests);
    assert!(responses > 20 * rates.len() && rejected.is_empty(), "{rejected:#?}");
}

/// Returns the share of the valid requests to each operation that succeeded.
fn success_rates(summary: &Value) -> BTreeMap<&str, f64> {
    let operations = summary["valid_rates"].as_object().unwrap();
    let rate = |phases: &Value| {
        let (mut succeeded, mut all) = (0, 0);
        for outcomes in phases.as_object().unwrap().values() {
            succeeded += outcomes["accepted"].as_u64().unwrap();
            all += outcomes.as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
        }
        if all < MIN_REQUESTS { f64::from(succeeded > 0) } else { succeeded as f64 / all as f64 }
    };
    operations.iter().map(|(name, phases)| (name.as_str(), rate(phases))).collect()
}

/// Whether no schema can express the violated rule.
fn is_beyond_schemas(error: &Value, body: &str) -> bool {
    let is_nested = |text: &str| error["field"].as_str().is_some_and(|field| field.starts_with(text));
    if is_nested("rule.") || is_nested("payout.") || is_nested("hashtag[") {
        return true;
    }
    if FIELDS_BEYOND_SCHEMAS.iter().any(|field| error["field"] == *field) {
        return true;
    }
    let Some(message) = error["message"].as_str() else { return false };
    // One of two lists is required. Repetitions do not count for the limit of a list.
    if message.starts_with("is required without") || message.ends_with("different entries") {
        return true;
    }
    // The length of a username and the host of a profile URL depend on the platform.
    let has_other_host =
        [("tiktok", "instagram.com/"), ("instagram", "tiktok.com/")].iter().any(|(platform, host)| {
            message.ends_with(&format!("not the URL of a profile on {platform}")) && body.contains(host)
        });
    error["field"] == "username" && (message.contains(" username: ") || has_other_host)
}

/// Decodes a body of the report.
fn decode_body(body: &Value) -> String {
    let bytes = STANDARD.decode(body["$base64"].as_str().unwrap_or_default()).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the number of responses, and the requests that were rejected although they are valid by the document.
fn wrongly_rejected(requests: &str) -> (usize, Vec<String>) {
    let (mut responses, mut rejected) = (0, Vec::new());
    for line in requests.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let recorder = &event["ScenarioFinished"]["recorder"];
        for (id, interaction) in recorder["interactions"].as_object().into_iter().flatten() {
            responses += 1;
            let meta = &recorder["cases"][id]["value"]["meta"];
            // A stateful request may take a value from a response that does not have it.
            let is_valid = meta["generation"]["mode"] == "positive" && meta["phase"]["name"] != "stateful";
            if !is_valid || interaction["response"]["status_code"] != 422 {
                continue;
            }
            let problem: Value =
                serde_json::from_str(&decode_body(&interaction["response"]["content"])).unwrap();
            let mut errors = problem["errors"].as_array().into_iter().flatten();
            let body = decode_body(&interaction["request"]["body"]).to_lowercase();
            if !errors.all(|error| is_beyond_schemas(error, &body)) {
                rejected.push(format!("{} {}", interaction["request"]["uri"], problem["detail"]));
            }
        }
    }
    (responses, rejected)
}
