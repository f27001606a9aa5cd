//! Points where a test crashes the process, before and after each durable step.
//!
//! `TIDEMARK_FAILPOINTS` names a folder. A process that reaches a point with a file of its name there removes the file and
//! aborts. Without the variable nothing happens.

use std::path::PathBuf;
use std::sync::LazyLock;

static FOLDER: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| std::env::var_os("TIDEMARK_FAILPOINTS").map(PathBuf::from));

/// Aborts the process if the point is armed.
pub fn reached(point: &str) {
    let Some(folder) = &*FOLDER else { return };
    if std::fs::remove_file(folder.join(point)).is_ok() {
        eprintln!("failpoint {point}: aborting");
        std::process::abort();
    }
}
