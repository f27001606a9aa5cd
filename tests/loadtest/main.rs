//! The load tests of `loadtest/` themselves: that all of them load, that the smoke test passes against the service, and
//! that it fails where it should. How fast things are is measured by `make loadtest`.

#[path = "../harness/mod.rs"]
mod harness;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use harness::{Organization, Stack};
use tidemark::model::organization::Scope;
use tidemark::store::keys::NewKey;
use tidemark::store::organizations::OrganizationChange;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

/// k6 with a script, as somebody of an organization.
fn k6(command: &str, script: impl AsRef<Path>, organization: &Organization) -> Output {
    let program =
        std::env::var_os("TIDEMARK_TEST_K6").expect("no TIDEMARK_TEST_K6 to test with: run `make test`");
    let results = tempfile::tempdir().unwrap();
    Command::new(program)
        .arg(command)
        .args(["--include-system-env-vars", "--address", "127.0.0.1:0"])
        .arg(Path::new(FOLDER).join(script))
        .env("K6_NO_USAGE_REPORT", "true")
        .env("TIDEMARK_BASE_URL", &organization.stack.connection.base_url)
        .env("TIDEMARK_API_KEY", &organization.key)
        .env("TIDEMARK_LOADTEST_RESULTS", results.path())
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
