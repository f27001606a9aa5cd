//! Places where a test kills the process: after each durable step of the way of a number.
//!
//! Without `TIDEMARK_FAILPOINTS` in the environment nothing can happen at them. With it, a process that reaches a point
//! for which the folder it names has a file takes the file away and ends at once, as by SIGKILL.

use std::path::PathBuf;
use std::sync::LazyLock;

static FOLDER: LazyLock<Option<PathBuf>> =
    LazyLock::new(|| std::env::var_os("TIDEMARK_FAILPOINTS").map(PathBuf::from));

/// Marks a point of the way; ends the process if it is armed.
pub fn reached(point: &str) {
    let Some(folder) = &*FOLDER else { return };
    if std::fs::remove_file(folder.join(point)).is_ok() {
        eprintln!("the failpoint {point} is reached");
        std::process::abort();
    }
}
