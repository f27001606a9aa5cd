//! The form of the document, judged by programs that others use: a validator and a linter.

use std::path::PathBuf;
use std::process::Command;

use crate::harness::Stack;
use crate::operation::served;

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn program(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap_or_else(|| panic!("no {variable} to test with: run `make test`")).into()
}

/// The served document as a file.
async fn file() -> tempfile::NamedTempFile {
    let (document, _) = served(&Stack::shared()).await;
    let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    std::fs::write(file.path(), document.to_string()).unwrap();
    file
}

#[track_caller]
fn passes(check: &mut Command) {
    let output = check.current_dir(FOLDER).output().unwrap_or_else(|error| panic!("{check:?}: {error}"));
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{check:?}: {}\n{said}\n{complained}", output.status);
}

#[tokio::test]
async fn the_document_is_valid() {
    let document = file().await;
    let mut check = Command::new(program("TIDEMARK_TEST_PYTHON"));
    passes(check.args(["-m", "openapi_spec_validator"]).arg(document.path()));
}

#[tokio::test]
async fn the_document_is_as_a_linter_wants_it() {
    let document = file().await;
    let mut check = Command::new(program("TIDEMARK_TEST_SPECTRAL"));
    passes(check.args(["lint", "--fail-severity", "hint"]).arg(document.path()));
}
