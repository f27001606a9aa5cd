//! Whether the search index folder is writable, has space, and holds an index of this database.

use std::fs;
use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use sqlx::PgPool;

use super::report::{Report, format_bytes, with_timeout};
use crate::store::search::{self, changes};

/// A rebuild needs space next to the index in use.
const MIN_FREE_BYTES: u64 = 1_000_000_000;

pub(super) async fn check(report: &mut Report, folder: &Path, pg: Option<&PgPool>) {
    let (inspected, path) = (folder.to_owned(), folder.display().to_string());
    let Ok(found) = tokio::task::spawn_blocking(move || inspect_folder(&inspected)).await else { return };
    match found.writable {
        Ok(()) if found.exists => report.ok("search-folder", format!("{path} is writable")),
        Ok(()) => report.ok("search-folder", format!("{path} will be created at the first start")),
        Err(error) => {
            return report.fail(
                "search-folder",
                format!("{path} is not writable ({error})"),
                "allow this user to write, or set TIDEMARK_SEARCH_INDEX",
            );
        }
    }
    if let Some(free) = found.free_bytes {
        let state = format!("{} free for the search index", format_bytes(free));
        if free < MIN_FREE_BYTES {
            report.warn("search-disk", state, "add space, a rebuild needs a second index");
        } else {
            report.ok("search-disk", state);
        }
    }
    match (found.index, pg) {
        (Some(Err(reason)), _) => report.warn(
            "search-index",
            format!("the index is not usable ({reason})"),
            "`tidemark serve` rebuilds it when it starts",
        ),
        (Some(Ok(position)), Some(pg)) => check_position(report, pg, &position).await,
        _ => {}
    }
}

async fn check_position(report: &mut Report, pg: &PgPool, position: &changes::IndexPosition) {
    let check = "search-index";
    match with_timeout(changes::can_resume(pg, position)).await {
        Ok(true) => report.ok(check, "the index is of this version and database"),
        Ok(false) => report.warn(
            check,
            "the index is of another database or too old",
            "`tidemark serve` rebuilds it when it starts",
        ),
        Err(Some(error)) => {
            let state = format!("the index cannot be compared with Postgres ({error})");
            report.warn(check, state, "check Postgres");
        }
        Err(None) => {
            let state = "the index cannot be compared with Postgres, which does not respond";
            report.warn(check, state, "check Postgres");
        }
    }
}

struct FolderState {
    exists: bool,
    writable: io::Result<()>,
    free_bytes: Option<u64>,
    index: Option<Result<changes::IndexPosition, String>>,
}

fn inspect_folder(folder: &Path) -> FolderState {
    let exists = folder.is_dir();
    let nearest = nearest_folder(folder);
    let free_bytes = statvfs(nearest).ok().map(|disk| disk.blocks_available() * disk.fragment_size());
    let index = exists.then(|| search::read_position(folder));
    FolderState { exists, writable: try_write(nearest), free_bytes, index }
}

/// Returns the nearest existing ancestor of a folder, in which it is created if it is missing.
pub(super) fn nearest_folder(folder: &Path) -> &Path {
    let mut ancestors = folder.ancestors().filter(|path| path.as_os_str().is_empty() || path.exists());
    ancestors.next().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn try_write(folder: &Path) -> io::Result<()> {
    let file = folder.join(format!(".tidemark-doctor-{}", std::process::id()));
    let written = fs::write(&file, [0; 4096]);
    // On a full disk the file exists although writing failed.
    let removed = fs::remove_file(&file);
    written.and(removed)
}
