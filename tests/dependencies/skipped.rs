//! Tests that do less on some machines.

use crate::{files, read};

/// Files outside the repository may be missing: the summary of `make test` then names what was not tested.
#[test]
fn tests_with_outside_data_report_when_it_is_missing() {
    let mut tests = files("tests");
    tests.retain(|(name, text)| name.ends_with(".rs") && text.contains(concat!('"', "../shared")));
    assert!(!tests.is_empty());
    for (name, text) in tests {
        assert!(text.contains("report_skipped("), "{name}");
    }
    let summary = "sort -u \"$TIDEMARK_TEST_SKIPPED\" | sed 's/^/skipped: /'";
    assert!(read("scripts/run-tests").contains(summary));
}
