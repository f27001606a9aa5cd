//! The scripts of `loadtest/`: all load, and their thresholds pass and fail when they should. `make loadtest` measures
//! with them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use harness::{Organization, Stack};
use serde_json::{Value, json};
use tidemark::model::organization::Scope;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Runs k6 with a script and the key of an organization.
fn k6(command: &str, script: impl AsRef<Path>, organization: &Organization) -> Output {
    k6_at(&organization.stack.connection.base_url, command, script, organization, &[])
}

/// Runs it against another API, with variables for the script.
fn k6_at(
    base_url: &str,
    command: &str,
    script: impl AsRef<Path>,
    organization: &Organization,
    variables: &[(&str, &str)],
) -> Output {
    let program = std::env::var_os("TIDEMARK_TEST_K6").expect("TIDEMARK_TEST_K6 is not set: run `make test`");
    let results = tempfile::tempdir().unwrap();
    Command::new(program)
        .arg(command)
        .args(["--include-system-env-vars", "--address", "127.0.0.1:0"])
        .arg(Path::new(ROOT).join(script))
        .env("K6_NO_USAGE_REPORT", "true")
        .env("TIDEMARK_BASE_URL", base_url)
        .env("TIDEMARK_API_KEY", &organization.key)
        .env("TIDEMARK_LOADTEST_RESULTS", results.path())
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn scripts() -> Vec<PathBuf> {
    let files = std::fs::read_dir(Path::new(ROOT).join("loadtest")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "js")).collect()
}

#[tokio::test]
async fn scripts_load_and_are_in_the_readme() {
    let organization = Stack::shared().organization().await;
    let readme = std::fs::read_to_string(Path::new(ROOT).join("loadtest/README.md")).unwrap();
    let scripts = scripts();
    assert!(scripts.len() >= 7, "{scripts:?}");
    for script in scripts {
        let output = k6("inspect", &script, &organization);
        assert!(output.status.success(), "{script:?}: {}", text(&output));
        let name = script.file_name().unwrap().to_str().unwrap();
        assert!(readme.contains(name), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn smoke_test_passes_and_deletes_its_records() {
    let organization = Stack::shared().organization().await;
    let output = k6("run", "loadtest/smoke.js", &organization);
    assert!(output.status.success(), "{}", text(&output));
    for list in ["/accounts", "/creators", "/videos"] {
        assert_eq!(organization.get(list).await.ok(200).list("/data").len(), 0, "{list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn smoke_test_fails_without_write_scope() {
    let reader = NewKey { scopes: vec![Scope::Read], ..NewKey::named("reader") };
    let organization = Stack::shared().organization_with(OrganizationChange::default(), reader).await;
    let output = k6("run", "loadtest/smoke.js", &organization);
    let message = "the key reader lacks the scope write: create one with tidemark key create";
    assert!(!output.status.success() && text(&output).contains(message), "{}", text(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_say_that_an_organization_is_empty() {
    let organization = Stack::shared().organization().await;
    for (script, missing) in [("dashboard", "accounts"), ("search", "captions"), ("analytics", "accounts")] {
        let report = k6("run", format!("loadtest/{script}.js"), &organization);
        let message = format!("the organization has no {missing}, which this script needs");
        assert!(!report.status.success() && text(&report).contains(&message), "{script}: {}", text(&report));
    }
}

/// Runs loadtest/generate in a folder.
fn generate(folder: &Path, pages: &[&str]) -> Output {
    let generator = Path::new(ROOT).join("loadtest/generate");
    Command::new(generator).arg("front-end.js").args(pages).current_dir(folder).output().unwrap()
}

/// What a browser saves: requests of two pages, one of another host, and a write.
fn recording() -> Value {
    let entry = |page: &str, method: &str, url: &str| {
        let url = format!("https://front.example{url}");
        json!({"pageref": page, "request": {"method": method, "url": url}})
    };
    let account = "/api/v2/accounts/01a22666-2f3b-7003-ad39-3619d458f338";
    json!({"log": {"entries": [
        entry("1", "GET", "/app.js"),
        entry("1", "OPTIONS", "/api/v2/overview"),
        entry("1", "GET", "/api/v2/overview?period=7d&platform=tiktok"),
        entry("1", "GET", "/api/v2/accounts/top"),
        entry("2", "GET", &format!("{account}/analytics?period=30d")),
        entry("2", "PATCH", account),
    ]}})
}

#[tokio::test(flavor = "multi_thread")]
async fn script_of_a_front_end_is_generated() {
    let organization = Stack::shared().organization().await;
    organization.track(organization.stack.sandbox_account("tiktok")).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("recorded.har"), recording().to_string()).unwrap();
    let pages = ["/content?limit=5&metadata.team=north /content/{video_id}", "recorded.har"];
    let output = generate(folder.path(), &pages);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(text(&output).matches("left out").count(), 1, "{}", text(&output));

    let variables = [("VISITS_PER_SECOND", "1"), ("DURATION", "1s")];
    let base_url = &organization.stack.connection.base_url;
    let script = folder.path().join("front-end.js");
    // Its exit code depends on latencies as well.
    let report = text(&k6_at(base_url, "run", &script, &organization, &variables));
    for route in
        ["/content", "/content/{video_id}", "/overview", "/accounts/top", "/accounts/{account_id}/analytics"]
    {
        assert!(report.contains(&format!("ok     http_reqs{{name:GET {route}}}")), "{route}: {report}");
    }
    assert!(report.contains("ok     checks rate==1"), "{report}");

    let empty = Stack::shared().organization().await;
    let report = text(&k6_at(base_url, "run", &script, &empty, &variables));
    assert!(report.contains("the organization has no /content, which this script needs"), "{report}");
}

#[test]
fn unknown_requests_of_a_front_end_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for (page, message) in [
        ("/overviev", "the API has no GET /overviev: did you mean /overview?"),
        ("/overview?perod=7d", "GET /overview has no parameter perod: did you mean period?"),
        ("/accounts/metrics", "GET /accounts/metrics needs the parameter account_ids"),
        ("/creators/{creator_id}/accounts/{account_id}", "give some of the organization"),
    ] {
        let output = generate(folder.path(), &[page]);
        assert!(!output.status.success() && text(&output).contains(message), "{page}: {}", text(&output));
    }
}

#[tokio::test]
async fn libraries_of_scripts_pass_their_tests() {
    let organization = Stack::shared().organization().await;
    for script in ["tests/loadtest/shape.js", "tests/loadtest/text.js"] {
        let output = k6("run", script, &organization);
        assert!(output.status.success(), "{script}: {}", text(&output));
    }
}

/// A threshold that is always true would be shown as a passed check.
#[tokio::test]
async fn every_threshold_can_fail() {
    let organization = Stack::shared().organization().await;
    for script in scripts() {
        let output = k6("inspect", &script, &organization);
        let options: Value = serde_json::from_slice(&output.stdout).unwrap();
        let thresholds = options["thresholds"].as_object().unwrap();
        assert!(thresholds.contains_key("checks"), "{script:?}");
        for rule in thresholds.values().flat_map(|rules| rules.as_array().unwrap()) {
            let rule = rule.as_str().unwrap();
            assert!(!rule.replace(' ', "").ends_with(">=0"), "{script:?}: {rule}");
        }
    }
}

/// Captions of the sandbox are in many scripts.
#[tokio::test(flavor = "multi_thread")]
async fn search_script_checks_every_caption() {
    let key = NewKey { rate_limit: Some(1_000_000), ..NewKey::named("search") };
    let organization = Stack::shared().organization_with(OrganizationChange::default(), key).await;
    organization.track(organization.stack.sandbox_account("tiktok")).await;
    let variables = [("CLIENTS", "1"), ("DURATION", "1s")];
    let base_url = &organization.stack.connection.base_url;
    // Its exit code depends on latencies as well.
    let report = text(&k6_at(base_url, "run", "loadtest/search.js", &organization, &variables));
    for check in
        ["a text of a caption is found", "every video found has the text", "an absent text is not found"]
    {
        assert!(report.contains(&format!("ok     {check}")), "{check}: {report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "overloads two API processes and the machine"]
async fn crowd_script_passes_only_under_overload() {
    let key = NewKey { rate_limit: Some(1_000_000), ..NewKey::named("crowd") };
    let organization = Stack::shared().organization_with(OrganizationChange::default(), key).await;
    organization.track(organization.stack.sandbox_account("tiktok")).await;
    let settings = [("TIDEMARK_ANALYTICS_CONCURRENCY", "1"), ("TIDEMARK_ROLLUP_CACHE", "0")];
    let (_api, base_url) = organization.stack.serve(&settings.map(|(name, value)| (name, value.to_owned())));
    let crowd = |rate| k6_at(&base_url, "run", "loadtest/crowd.js", &organization, &[("SECONDS", "5"), rate]);
    // Its exit code depends on latencies as well.
    let report = text(&crowd(("QUESTIONS_PER_SECOND", "400")));
    for threshold in [
        "200 or 503",
        "a rejection has Retry-After",
        "all requests succeed afterwards",
        "broken_responses rate==0",
        "unavailable count>0",
    ] {
        assert!(report.contains(&format!("ok     {threshold}")), "{threshold}: {report}");
    }
    let output = crowd(("QUESTIONS_PER_SECOND", "1"));
    let report = text(&output);
    assert!(!output.status.success() && report.contains("FAILED unavailable count>0"), "{report}");
}
