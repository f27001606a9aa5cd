//! The load tests of `loadtest/` themselves: that all of them load, that the smoke test passes against the service, and
//! that it fails where it should. How fast things are is measured by `make loadtest`.

#[path = "../harness/mod.rs"]
mod harness;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use harness::{Organization, Stack};
use tidemark::model::organization::Scope;
use tidemark::store::records::keys::NewKey;
use tidemark::store::records::organizations::OrganizationChange;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// k6 with a script, as somebody of an organization.
fn k6(command: &str, script: impl AsRef<Path>, organization: &Organization) -> Output {
    k6_at(&organization.stack.connection.base_url, command, script, organization, &[])
}

/// The same against another API process, with variables for the script.
fn k6_at(
    base_url: &str,
    command: &str,
    script: impl AsRef<Path>,
    organization: &Organization,
    variables: &[(&str, &str)],
) -> Output {
    let program =
        std::env::var_os("TIDEMARK_TEST_K6").expect("no TIDEMARK_TEST_K6 to test with: run `make test`");
    let results = tempfile::tempdir().unwrap();
    Command::new(program)
        .arg(command)
        .args(["--include-system-env-vars", "--address", "127.0.0.1:0"])
        .arg(Path::new(FOLDER).join(script))
        .env("K6_NO_USAGE_REPORT", "true")
        .env("TIDEMARK_BASE_URL", base_url)
        .env("TIDEMARK_API_KEY", &organization.key)
        .env("TIDEMARK_LOADTEST_RESULTS", results.path())
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn scripts() -> Vec<PathBuf> {
    let files = std::fs::read_dir(Path::new(FOLDER).join("loadtest")).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "js")).collect()
}

#[tokio::test]
async fn every_script_loads_and_the_readme_tells_of_it() {
    let organization = Stack::shared().organization().await;
    let readme = std::fs::read_to_string(Path::new(FOLDER).join("loadtest/README.md")).unwrap();
    let scripts = scripts();
    assert!(scripts.len() >= 7, "{scripts:?}");
    for script in scripts {
        let output = k6("inspect", &script, &organization);
        assert!(output.status.success(), "{script:?}: {}", said(&output));
        let name = script.file_name().unwrap().to_str().unwrap();
        assert!(readme.contains(name), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_smoke_test_passes_and_leaves_nothing_behind() {
    let organization = Stack::shared().organization().await;
    let output = k6("run", "loadtest/smoke.js", &organization);
    assert!(output.status.success(), "{}", said(&output));
    for list in ["/accounts", "/creators", "/videos"] {
        assert_eq!(organization.get(list).await.ok(200).at("/data").as_array().unwrap().len(), 0, "{list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_smoke_test_fails_when_something_is_refused() {
    let reader = NewKey { scopes: vec![Scope::Read], ..NewKey::named("reader") };
    let organization = Stack::shared().organization_with(OrganizationChange::default(), reader).await;
    let output = k6("run", "loadtest/smoke.js", &organization);
    assert!(!output.status.success(), "{}", said(&output));
}

#[tokio::test]
async fn the_shape_of_an_answer_is_judged_rightly() {
    let organization = Stack::shared().organization().await;
    let output = k6("run", "tests/loadtest/shape.js", &organization);
    assert!(output.status.success(), "{}", said(&output));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "asks two API processes far more than they can answer, and the machine with them"]
async fn a_crowd_without_places_is_refused_well_and_one_that_is_answered_fails() {
    let key = NewKey { rate_limit: Some(1_000_000), ..NewKey::named("crowd") };
    let organization = Stack::shared().organization_with(OrganizationChange::default(), key).await;
    organization.track(organization.stack.sandbox_account("tiktok")).await;
    let (_process, base) = organization.stack.serve(&[("TIDEMARK_ANALYTICS_CONCURRENCY", "1".to_owned())]);
    let crowd = |rate| k6_at(&base, "run", "loadtest/crowd.js", &organization, &[("SECONDS", "5"), rate]);
    // Whether it passes is a matter of time too.
    let told = said(&crowd(("QUESTIONS_PER_SECOND", "400")));
    for held in [
        "200 or 503",
        "a rejection has Retry-After",
        "all requests succeed afterwards",
        "broken_responses rate==0",
        "unavailable count>0",
    ] {
        assert!(told.contains(&format!("ok     {held}")), "{held}: {told}");
    }
    let output = crowd(("QUESTIONS_PER_SECOND", "1"));
    let told = said(&output);
    assert!(!output.status.success() && told.contains("FAILED unavailable count>0"), "{told}");
}
