//! Gains of single videos, many at a time, computed from their snapshots.

use std::collections::HashMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::query::Query;
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use super::reader::VersionedHistory;
use super::snapshots::{Snapshot, VideoSnapshots, deduplicate};
use crate::model::gains::Gains;
use crate::model::period::{Window, clamp_day};
use crate::store::Error;
use crate::store::postgres::RecordsQuery;
use crate::store::records::content::RankedContent;
use crate::store::records::videos::FROM_ZERO;

/// A video with what its gains depend on.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct VideoRef {
    pub id: Uuid,
    pub internal_id: i64,
    pub subject_id: i64,
    /// Whether the counters of its first snapshot are gains: it was posted on or after the day tracking started.
    pub from_zero: bool,
    /// UTC day of its own earliest observation: it has no earlier snapshots.
    pub tracked_since: Option<NaiveDate>,
}

impl From<&RankedContent> for VideoRef {
    fn from(RankedContent { identity, tracked_since, from_zero, .. }: &RankedContent) -> Self {
        VideoRef {
            id: identity.id,
            internal_id: identity.internal_id,
            subject_id: identity.subject_id,
            from_zero: *from_zero,
            tracked_since: *tracked_since,
        }
    }
}

/// A query for videos, to which conditions are added.
fn select_videos(organization: Uuid) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("select v.id, v.internal_id, v.subject_id, v.tracked_since, ");
    query.push(FROM_ZERO);
    query.push(" from videos v left join accounts a on a.id = v.account_id where v.organization_id = ");
    query.push_bind(organization);
    query
}

/// Finds account-discovered videos of the organization among internal ids of each platform.
pub fn find_discovered(organization: Uuid, instagram: &[i64], tiktok: &[i64]) -> RecordsQuery<Vec<VideoRef>> {
    let mut query = select_videos(organization);
    query.push(" and v.account_id is not null and v.internal_id = any(");
    query.push_bind([instagram, tiktok].concat());
    query.push(") and v.internal_id = any(case v.platform when 'instagram' then ").push_bind(instagram);
    query.push("::bigint[] else ").push_bind(tiktok).push("::bigint[] end)");
    RecordsQuery::rows(query)
}

/// Finds videos of the organization, of either kind, among ids.
pub fn find(organization: Uuid, ids: &[Uuid]) -> RecordsQuery<Vec<VideoRef>> {
    let mut query = select_videos(organization);
    query.push(" and v.id = any(").push_bind(ids).push(")");
    RecordsQuery::rows(query)
}

/// Finds one video of the organization, of either kind. Fails if it does not exist.
pub fn get(organization: Uuid, id: Uuid) -> RecordsQuery<VideoRef> {
    find(organization, &[id]).and_then(|mut found| found.pop().ok_or(Error::NotFound("video")))
}

/// Gains of videos, and the latest observation by the end.
#[derive(Debug, Clone, Default)]
pub struct VideoGains<T> {
    by_internal_id: HashMap<i64, T>,
    pub as_of: Option<DateTime<Utc>>,
}

impl<T> VideoGains<T> {
    /// The gains of a video; None without an observation by the end: it gained nothing.
    pub fn get(&self, video: &VideoRef) -> Option<&T> {
        self.by_internal_id.get(&video.internal_id)
    }
}

/// A video that is read monthly has two snapshots within this time, so reading this far before a window usually suffices even
/// if one of them lacks a counter.
const LOOKBACK: Days = Days::new(70);

/// Up to so many snapshots are returned by ClickHouse; more are summarized there, which costs less than to return them.
/// Assumes one per video and day, so whole histories, since 1970, are always summarized.
const MAX_SNAPSHOTS: usize = 20_000;

/// Reads the gains of videos over a window.
pub async fn fetch_totals(
    history: &VersionedHistory,
    videos: &[VideoRef],
    window: Window,
) -> Result<VideoGains<Gains>, Error> {
    let Some(retained) = history.clip(window) else { return Ok(VideoGains::default()) };
    let start = clamp_day(retained.start);
    let query = SnapshotQuery::for_all_counters(vec![start], clamp_day(window.end));
    let compute = |video: VideoSnapshots<'_>| {
        let counters: [_; 5] = std::array::from_fn(|counter| video.gain_since(start, counter));
        let [views, plays, likes, comments, shares] = counters.map(|counter| counter.gain);
        (Gains::new(views, plays, likes, comments, shares), counters.iter().all(|counter| counter.is_final))
    };
    fetch_gains(history, videos, query, compute).await
}

/// Reads the gains in views over windows with these lengths in days, all ending on `end`; in the order of `windows`.
pub async fn fetch_view_deltas(
    history: &VersionedHistory,
    videos: &[VideoRef],
    end: NaiveDate,
    windows: &[u16],
) -> Result<VideoGains<Vec<i64>>, Error> {
    let end = clamp_day(end);
    let first_day = |days: &u16| history.clip_day(end + Days::new(1) - Days::new((*days).into()));
    let starts: Vec<_> = windows.iter().map(first_day).collect();
    let query = SnapshotQuery::for_counter("view_count", starts.clone(), end);
    let compute = |video: VideoSnapshots<'_>| {
        let gains: Vec<_> = starts.iter().map(|start| video.gain_since(*start, 0)).collect();
        (gains.iter().map(|gain| gain.gain).collect(), gains.iter().all(|gain| gain.is_final))
    };
    fetch_gains(history, videos, query, compute).await
}

/// The statements for windows that begin on `starts` and end on `end`.
pub(super) struct SnapshotQuery {
    /// Returns every snapshot.
    pub snapshots: &'static str,
    /// Returns rows from which the same gains follow, however many snapshots there are.
    pub summaries: &'static str,
    /// The column of statements that read any.
    pub counter: Option<&'static str>,
    pub starts: Vec<NaiveDate>,
    pub end: NaiveDate,
}

impl SnapshotQuery {
    pub fn for_counter(counter: &'static str, starts: Vec<NaiveDate>, end: NaiveDate) -> Self {
        SnapshotQuery {
            snapshots: include_str!("video_counter.sql"),
            summaries: include_str!("video_counter_summary.sql"),
            counter: Some(counter),
            starts,
            end,
        }
    }

    /// Reads views, plays, likes, comments and shares.
    pub fn for_all_counters(starts: Vec<NaiveDate>, end: NaiveDate) -> Self {
        SnapshotQuery {
            snapshots: include_str!("video_totals.sql"),
            summaries: include_str!("video_totals_summary.sql"),
            counter: None,
            starts,
            end,
        }
    }

    /// Reads the days since `since`. The rows of each video are adjacent and ascending.
    async fn fetch(
        &self,
        history: &VersionedHistory,
        videos: &[VideoRef],
        since: NaiveDate,
    ) -> Result<Vec<Snapshot>, Error> {
        let keys: Vec<_> = videos.iter().map(|video| (video.subject_id, video.internal_id)).collect();
        let bind = |query: Query| {
            let query = query.param("videos", keys).param("since", since).param("end", self.end);
            self.counter.into_iter().fold(query, |query, counter| query.param("counter", counter))
        };
        let days = usize::try_from((self.end - since).num_days() + 1).unwrap_or_default();
        if videos.len() * days <= MAX_SNAPSHOTS {
            return Ok(deduplicate(history.fetch_all(self.snapshots, bind).await?));
        }
        let bind = |query| bind(query).param("starts", &self.starts);
        history.fetch_all(self.summaries, bind).await
    }
}

/// Reads snapshots and computes gains from them; `compute` also returns whether earlier snapshots cannot change the result.
///
/// First reads snapshots since shortly before the windows, which costs the same however long the history is; then the
/// whole history of the videos whose gains these do not decide. A video without a snapshot since then gained nothing; if no
/// video has one, the latest observation is an earlier one.
pub(super) async fn fetch_gains<T: Default>(
    history: &VersionedHistory,
    videos: &[VideoRef],
    query: SnapshotQuery,
    compute: impl Fn(VideoSnapshots<'_>) -> (T, bool),
) -> Result<VideoGains<T>, Error> {
    let mut gains = VideoGains::default();
    let mut pending = videos.to_vec();
    let start = query.starts.iter().copied().min().unwrap_or(query.end);
    for since in [start - LOOKBACK, NaiveDate::default()] {
        if pending.is_empty() {
            break;
        }
        let rows = query.fetch(history, &pending, since).await?;
        let by_video: HashMap<_, _> = rows
            .chunk_by(|one, next| one.video_id == next.video_id)
            .map(|snapshots| (snapshots[0].video_id.cast_signed(), snapshots))
            .collect();
        pending.retain(|video| {
            let is_complete =
                since == NaiveDate::default() || video.tracked_since.is_some_and(|first| first >= since);
            let Some(snapshots) = by_video.get(&video.internal_id).copied() else {
                return rows.is_empty() && !is_complete;
            };
            let video_snapshots = VideoSnapshots { snapshots, from_zero: video.from_zero };
            let (gained, is_final) = compute(video_snapshots);
            if !is_final && !is_complete {
                return true;
            }
            gains.by_internal_id.insert(video.internal_id, gained);
            gains.as_of = gains.as_of.max(video_snapshots.latest_observation());
            false
        });
    }
    gains.as_of = history.clip_observation(gains.as_of);
    Ok(gains)
}
