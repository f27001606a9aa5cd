//! Checks that cannot run on this machine.

use std::fs::OpenOptions;
use std::io::Write;

/// Reports a check in the summary of `make test`.
pub fn report_skipped(check: &str) {
    eprintln!("skipped: {check}");
    if let Some(file) = std::env::var_os("TIDEMARK_TEST_SKIPPED") {
        let mut file = OpenOptions::new().create(true).append(true).open(file).expect("the file is writable");
        file.write_all(format!("{check}\n").as_bytes()).expect("the file is written");
    }
}
