//! Requests made up from the document by schemathesis, wrong ones too, and what the service does with them: it has to
//! answer each as the document says. The ids in them are mostly those of an organization that has something of all.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::harness::Stack;
use crate::tenant::Tenant;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
/// What a request that fits the document may be refused for: no schema can say what is wrong with it.
const BEYOND_SCHEMAS: [&str; 4] = ["cursor", "period", "start_date", "end_date"];
/// The part of the requests to each operation that has to reach what it does.
const SUCCESSFUL: f64 = 0.3;

#[tokio::test]
async fn made_up_requests_are_answered_as_the_document_says() {
    fuzz(6, 1).await;
}

#[tokio::test]
#[ignore = "it takes minutes: make test-deep"]
async fn many_made_up_requests_are_answered_as_the_document_says() {
    for seed in 1..=3 {
        fuzz(150, seed).await;
    }
}

async fn fuzz(examples: usize, seed: u64) {
    let stack = Stack::shared();
    let tenant = Tenant::with(&stack, 40).await;
    let folder = tempfile::tempdir().unwrap();
    let ids = folder.path().join("ids.json");
    let known = json!({
        "accounts": tenant.accounts,
        "usernames": tenant.usernames,
        "creators": tenant.creators,
        "links": tenant.links,
        "videos": tenant.videos,
        "internal_ids": tenant.internal_ids,
    });
    std::fs::write(&ids, known.to_string()).unwrap();
    let python = std::env::var_os("TIDEMARK_TEST_PYTHON").expect("no Python to test with: run `make test`");
    let mut check = Command::new(Path::new(&python).with_file_name("schemathesis"));
    check
        .current_dir(folder.path())
        .arg("--config-file")
        .arg(Path::new(FOLDER).join("schemathesis.toml"))
        .args(["run", "--no-color", "--continue-on-failure", "--generation-database", "none"])
        .args(["--seed", &seed.to_string(), "--max-examples", &examples.to_string()])
        .args(["--report", "json,ndjson", "--report-json-path", "verdict.json"])
        .args(["--report-ndjson-path", "requests.ndjson"])
        .args(["--header", &format!("Authorization: Bearer {}", tenant.organization.key)])
        .arg(format!("{}/openapi.json", stack.connection.base_url))
        .env("SCHEMATHESIS_HOOKS", Path::new(FOLDER).join("tests/openapi/hooks.py"))
        .env("TIDEMARK_TEST_IDS", &ids);
    let output = tokio::task::spawn_blocking(move || check.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));

    let verdict: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("verdict.json")).unwrap()).unwrap();
    let rates = success_rates(&verdict);
    assert!(!rates.is_empty() && rates.values().all(|rate| *rate >= SUCCESSFUL), "{rates:#?}");
    let requests = std::fs::read_to_string(folder.path().join("requests.ndjson")).unwrap();
    let (answers, refused) = wrongly_refused(&requests);
    assert!(answers > 20 * rates.len() && refused.is_empty(), "{refused:#?}");
}

/// How many of the requests to each operation that fit the document succeeded.
fn success_rates(verdict: &Value) -> BTreeMap<&str, f64> {
    let operations = verdict["valid_rates"].as_object().unwrap();
    let rate = |phases: &Value| {
        let (mut succeeded, mut all) = (0, 0);
        for outcomes in phases.as_object().unwrap().values() {
            succeeded += outcomes["accepted"].as_u64().unwrap();
            all += outcomes.as_object().unwrap().values().filter_map(Value::as_u64).sum::<u64>();
        }
        succeeded as f64 / all as f64
    };
    operations.iter().map(|(name, phases)| (name.as_str(), rate(phases))).collect()
}

fn is_beyond_schemas(error: &Value, sent: &str) -> bool {
    BEYOND_SCHEMAS.iter().any(|known| error["field"] == *known)
        || error["message"].as_str().is_some_and(|message| {
            // The other of two lists; and a name, or a profile's URL, of one platform for an account of the other.
            let of_the_other = [("tiktok", "instagram.com/"), ("instagram", "tiktok.com/")].iter().any(
                |(platform, other)| {
                    message.ends_with(&format!("no profile of {platform}")) && sent.contains(other)
                },
            );
            message.starts_with("is required without")
                || error["field"] == "username" && (message.contains("username has") || of_the_other)
        })
}

/// A body as the report has it.
fn decoded(body: &Value) -> String {
    let bytes = STANDARD.decode(body["$base64"].as_str().unwrap_or_default()).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How many answers there were, and which requests were refused although the document could say that they are good.
fn wrongly_refused(requests: &str) -> (usize, Vec<String>) {
    let (mut answers, mut refused) = (0, Vec::new());
    for line in requests.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        let recorder = &event["ScenarioFinished"]["recorder"];
        for (id, interaction) in recorder["interactions"].as_object().into_iter().flatten() {
            answers += 1;
            let meta = &recorder["cases"][id]["value"]["meta"];
            // What follows on an answer may take from it what it does not have.
            let fits = meta["generation"]["mode"] == "positive" && meta["phase"]["name"] != "stateful";
            if !fits || interaction["response"]["status_code"] != 422 {
                continue;
            }
            let problem: Value = serde_json::from_str(&decoded(&interaction["response"]["content"])).unwrap();
            let mut errors = problem["errors"].as_array().into_iter().flatten();
            let sent = decoded(&interaction["request"]["body"]).to_lowercase();
            if !errors.all(|error| is_beyond_schemas(error, &sent)) {
                refused.push(format!("{} {}", interaction["request"]["uri"], problem["detail"]));
            }
        }
    }
    (answers, refused)
}
