//! The queries that a recompute reads, of the same subjects and in the same order.
//!
//! subjects  (organization, subject)
//! since     the first day whose numbers may change

use std::sync::LazyLock;

use crate::model::counters::Counters;

/// All days of the rollup, in any order: earlier ones tell the start of tracking and which counters are known.
pub(super) const STORED_DAYS: &str = "
    SELECT
        org_id, subject_id, date,
        view_gain, like_gain, comment_gain, share_gain, saved_gain, play_gain, ig_play_gain, fb_play_gain, fb_like_gain,
        follower_gain, digest
    FROM account_daily FINAL
    WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}";

pub(super) const PROFILES: &str = "
    SELECT org_id, subject_id, date, observed_at, follower_count
    FROM account_snapshots FINAL
    WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
    ORDER BY org_id, subject_id, date";

/// All snapshots of all videos.
pub(super) static SNAPSHOTS: LazyLock<String> =
    LazyLock::new(|| snapshots_of("(org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}"));

/// All snapshots of the videos that were observed since.
pub(super) static OBSERVED_SNAPSHOTS: LazyLock<String> = LazyLock::new(|| {
    snapshots_of(
        "(org_id, subject_id, video_id) IN
        (
            SELECT org_id, subject_id, video_id FROM video_snapshots
            WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND date >= {since:Date}
        )",
    )
});

fn snapshots_of(condition: &str) -> String {
    let counters = Counters::NAMES.join(", ");
    format!(
        "SELECT org_id, subject_id, video_id, date, observed_at, {counters} FROM video_snapshots FINAL
        WHERE {condition}
        ORDER BY org_id, subject_id, video_id, date"
    )
}

pub(super) const STORED_VIDEO_DAYS: &str = "
    SELECT
        org_id, date, subject_id, video_id, platform,
        view_gain, play_gain, like_gain, comment_gain, share_gain, saved_gain, version, is_deleted
    FROM video_daily FINAL
    WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND date >= {since:Date}
    ORDER BY org_id, subject_id, video_id, date";

pub(super) const STORED_AGES: &str = "
    SELECT
        org_id, subject_id, video_id, id, platform,
        media_type, posted_at, views_1, views_3, views_7, views_14, views_30,
        interpolated, version, is_deleted
    FROM video_ages FINAL
    WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))}
    ORDER BY org_id, subject_id, video_id";

/// Days whose snapshots were removed; those of profiles as of video 0.
pub(super) const REMOVED_DAYS: &str = "
    SELECT DISTINCT org_id, subject_id, video_id, date FROM video_snapshots
    WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND is_deleted = 1
    UNION ALL
    SELECT DISTINCT org_id, subject_id, toUInt64(0) AS video_id, date FROM account_snapshots
    WHERE (org_id, subject_id) IN {subjects:Array(Tuple(UUID, UInt64))} AND is_deleted = 1";
