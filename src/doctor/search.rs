//! The folder of this machine's search index: whether it can be written, has room, and holds an index of this database.

use std::fs;
use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use sqlx::PgPool;

use super::{Report, bytes, within};
use crate::store::search::{self, changes};

/// What has to be free beside the index: one that is made anew stands beside the one in use.
const LITTLE: u64 = 1_000_000_000;

pub(super) async fn check(report: &mut Report, folder: &Path, pg: Option<&PgPool>) {
    let (looked_at, named) = (folder.to_owned(), folder.display().to_string());
    let Ok(found) = tokio::task::spawn_blocking(move || look(&looked_at)).await else { return };
    match found.written {
        Ok(()) if found.exists => report.ok("search-folder", format!("{named} can be written")),
        Ok(()) => report.ok("search-folder", format!("{named} is made at the first start")),
        Err(error) => {
            return report.fail(
                "search-folder",
                format!("{named} cannot be written ({error}): let this user write there, or set TIDEMARK_SEARCH_INDEX"),
            );
        }
    }
    if let Some(free) = found.free {
        let of = format!("{} are free beside the search index", bytes(free));
        if free < LITTLE {
            report.warn(
                "search-disk",
                format!("{of}: one that is made anew needs room beside it, give it more"),
            );
        } else {
            report.ok("search-disk", of);
        }
    }
    let position = match found.index {
        None => return,
        Some(Err(reason)) => {
            return report
                .warn("search-index", format!("the index is built when `tidemark serve` starts: {reason}"));
        }
        Some(Ok(position)) => position,
    };
    let Some(pg) = pg else { return };
    match within(changes::can_resume(pg, &position)).await {
        Some(Ok(true)) => report.ok("search-index", "the index is of this version and follows this database"),
        Some(Ok(false)) => report.warn(
            "search-index",
            "the index is of another database, or of a time long ago: it is made anew when `tidemark serve` starts",
        ),
        Some(Err(error)) => report.warn("search-index", format!("it cannot be told of what the index is: {error}")),
        None => report.warn("search-index", "it cannot be told of what the index is: Postgres does not answer in time"),
    }
}

struct Found {
    exists: bool,
    written: io::Result<()>,
    free: Option<u64>,
    index: Option<Result<changes::IndexPosition, String>>,
}

fn look(folder: &Path) -> Found {
    let exists = folder.is_dir();
    // What is not there yet is made in the nearest folder that is.
    let mut above = folder.ancestors().filter(|folder| folder.as_os_str().is_empty() || folder.exists());
    let nearest = above.next().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let free = statvfs(nearest).ok().map(|disk| disk.blocks_available() * disk.fragment_size());
    let index = exists.then(|| search::read_position(folder));
    Found { exists, written: try_writing(nearest), free, index }
}

fn try_writing(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!(".tidemark-doctor-{}", std::process::id()));
    let written = fs::write(&probe, [0; 4096]);
    // It may be there although writing failed, as on a full disk.
    let removed = fs::remove_file(&probe);
    written.and(removed)
}
