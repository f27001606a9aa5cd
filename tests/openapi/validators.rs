//! Checks the document with a validator and a linter.

use std::path::PathBuf;
use std::process::Command;

use harness::Stack;

use crate::operation::fetch_document;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn program(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} is not set: run `make test`")).into()
}

async fn document_file() -> tempfile::NamedTempFile {
    let (document, _) = fetch_document(&Stack::shared()).await;
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    std::fs::write(file.path(), document.to_string()).unwrap();
    file
}

#[track_caller]
fn assert_passes(check: &mut Command) {
    let output = check.current_dir(ROOT).output().unwrap_or_else(|error| panic!("{check:?}: {error}"));
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{check:?}: {}\n{stdout}\n{stderr}", output.status);
}

#[tokio::test]
async fn document_is_valid() {
    let document = document_file().await;
    let mut check = Command::new(program("TIDEMARK_TEST_PYTHON"));
    assert_passes(check.args(["-m", "openapi_spec_validator"]).arg(document.path()));
}

#[tokio::test]
async fn document_passes_the_linter() {
    let document = document_file().await;
    let mut check = Command::new(program("TIDEMARK_TEST_SPECTRAL"));
    assert_passes(check.args(["lint", "--fail-severity", "hint"]).arg(document.path()));
}
