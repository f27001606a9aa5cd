//! Whether the folder of pictures is there, writable and large enough, and whether pictures wait.

use nix::sys::statvfs::statvfs;
use sqlx::PgPool;

use super::report::{Report, format_bytes, with_timeout};
use super::search::{nearest_folder, try_write};
use crate::media::MediaFolder;
use crate::store::pictures::{self, UsageSummary};
use crate::worker::pictures::PictureArgs;

/// A tracker fetches fewer within minutes.
const MAX_WAITING: i64 = 10_000;

pub(super) async fn check(report: &mut Report, args: &PictureArgs, pg: Option<&PgPool>) {
    let Some(folder) = args.media.folder() else {
        return report.ok("media", "pictures are not copied, TIDEMARK_MEDIA_DIR is not set");
    };
    let folder = MediaFolder::new(folder);
    let path = folder.root().display().to_string();
    let inspected = folder.clone();
    let inspect = move || {
        let nearest = nearest_folder(inspected.root()).to_owned();
        let free = statvfs(&nearest).ok().map(|disk| disk.blocks_available() * disk.fragment_size());
        (inspected.is_present(), try_write(&nearest), free)
    };
    let Ok((is_present, writable, free)) = tokio::task::spawn_blocking(inspect).await else { return };
    let summary = match pg {
        Some(pg) => with_timeout(pictures::fetch_summary(pg)).await.ok().flatten(),
        None => None,
    };
    let used = summary.map_or(0, |summary| summary.used_bytes.max(0) as u64);
    match summary {
        Some(UsageSummary { used_bytes: 1.., .. }) if !is_present => report.warn(
            "media",
            format!("{path} is not the folder of the pictures: responses have the platforms' URLs"),
            "mount it, or let the tracker fetch them again; all processes need the same folder",
        ),
        _ if !is_present => match writable {
            Ok(()) => report.ok("media", format!("{path} will be created by a tracker")),
            Err(error) => report.fail(
                "media",
                format!("{path} is not writable ({error})"),
                "allow the tracker's user to write, or set TIDEMARK_MEDIA_DIR",
            ),
        },
        _ => {
            let access = if writable.is_ok() { "" } else { ", read-only here: trackers have to write" };
            let [used, limit] = [used, args.media_max_bytes].map(format_bytes);
            report.ok("media", format!("{path} has {used} of {limit}{access}"));
        }
    }
    let missing = args.media_max_bytes.saturating_sub(used);
    if let Some(free) = free.filter(|free| *free < missing) {
        report.warn(
            "media-disk",
            format!("{} free, less than pictures may still take", format_bytes(free)),
            "add space, or lower TIDEMARK_MEDIA_MAX_BYTES",
        );
    }
    if let Some(UsageSummary { waiting: MAX_WAITING.., .. }) = summary {
        let action = "start a tracker with TIDEMARK_MEDIA_DIR, or wait after many accounts were added";
        report.warn("media-queue", format!("more than {MAX_WAITING} pictures wait"), action);
    }
}
