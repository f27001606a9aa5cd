//! Gains of single videos, many at a time, read from their snapshots.

use std::collections::HashMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use sqlx::{PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::history::{HistoryReader, Query};
use super::snapshots::{Snapshots, snapshots};
use super::stored_day;
use crate::model::gains::Gains;
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::Error;

/// A video as its history is found: where its facts lie, and whether its first snapshot counts in full because it
/// was posted on or after the day on which its tracking began.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct VideoRef {
    pub id: Uuid,
    pub internal_id: i64,
    pub subject_id: i64,
    pub from_zero: bool,
    /// UTC day of its own earliest observation: there is nothing to look up before it.
    pub tracked_since: Option<NaiveDate>,
}

/// Begins a selection of videos by a condition. A video on an account follows the history of that account, any other
/// its own.
fn select(organization: Uuid) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(
        "select v.id, v.internal_id, v.subject_id, v.tracked_since,
                coalesce((v.create_time at time zone 'UTC')::date
                    >= case when v.account_id is null then v.tracked_since else a.tracked_since end, false) as from_zero
         from videos v left join accounts a on a.id = v.account_id
         where v.organization_id = ",
    );
    query.push_bind(organization);
    query
}

/// Account-discovered videos of the organization among internal ids of one platform.
pub async fn find_discovered(
    pg: &PgPool,
    organization: Uuid,
    platform: Platform,
    internal_ids: &[i64],
) -> Result<Vec<VideoRef>, Error> {
    if internal_ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = select(organization);
    query.push(" and v.account_id is not null and v.platform = ").push_bind(platform);
    query.push(" and v.internal_id = any(").push_bind(internal_ids).push(")");
    Ok(query.build_query_as().fetch_all(pg).await?)
}

/// Videos of the organization, of either kind, among ids.
pub async fn find(pg: &PgPool, organization: Uuid, ids: &[Uuid]) -> Result<Vec<VideoRef>, Error> {
    let mut query = select(organization);
    query.push(" and v.id = any(").push_bind(ids).push(")");
    Ok(query.build_query_as().fetch_all(pg).await?)
}

/// One video of the organization, of either kind.
pub async fn get(pg: &PgPool, organization: Uuid, id: Uuid) -> Result<VideoRef, Error> {
    find(pg, organization, &[id]).await?.pop().ok_or(Error::NotFound("video"))
}

/// Gains of videos by their internal ids; those that were not observed by the end are absent and gained nothing.
#[derive(Debug, Clone)]
pub struct VideoGains<T> {
    pub of: HashMap<i64, T>,
    /// The latest observation by the end.
    pub as_of: Option<DateTime<Utc>>,
}

impl<T> Default for VideoGains<T> {
    fn default() -> Self {
        VideoGains { of: HashMap::new(), as_of: None }
    }
}

impl<T> VideoGains<T> {
    fn observed(self, history: &HistoryReader) -> Self {
        VideoGains { as_of: history.observed(self.as_of), ..self }
    }
}

/// How far before a window its first look goes: a video that is scraped at all was seen within this time.
const FIRST_LOOK: Days = Days::new(40);

/// What videos gained over a window.
pub async fn fetch_totals(
    history: &HistoryReader,
    organization: Uuid,
    videos: &[VideoRef],
    window: Window,
) -> Result<VideoGains<Gains>, Error> {
    let Some(kept) = history.kept(window) else { return Ok(VideoGains::default()) };
    let start = stored_day(kept.start);
    let query =
        history.ask(organization, include_str!("video_totals.sql")).param("end", stored_day(window.end));
    let gains = look_back(query, videos, start, |snapshots| {
        let [views, plays, likes, comments, shares] =
            std::array::from_fn(|counter| snapshots.gained(counter, start));
        let settled = [views, plays, likes, comments, shares].iter().all(|gained| gained.settled);
        (Gains::new(views.gain, plays.gain, likes.gain, comments.gain, shares.gain), settled)
    });
    gains.await.map(|gains| gains.observed(history))
}

/// What videos gained in views over windows of so many days, all of which end on one day; in the windows' order.
pub async fn fetch_view_deltas(
    history: &HistoryReader,
    organization: Uuid,
    videos: &[VideoRef],
    end: NaiveDate,
    windows: &[u16],
) -> Result<VideoGains<Vec<i64>>, Error> {
    let end = stored_day(end);
    let query = history.ask(organization, include_str!("video_deltas.sql")).param("end", end);
    let first_day = |days: u16| history.first_kept(end + Days::new(1) - Days::new(days.into()));
    let longest = first_day(windows.iter().copied().max().unwrap_or_default());
    let gains = look_back(query, videos, longest, |snapshots| {
        let gained: Vec<_> = windows.iter().map(|days| snapshots.gained(0, first_day(*days))).collect();
        (gained.iter().map(|gained| gained.gain).collect(), gained.iter().all(|gained| gained.settled))
    });
    gains.await.map(|gains| gains.observed(history))
}

/// Asks about videos whose windows begin on a day or later. `read` says what a history gained, and whether no snapshot
/// before those that were looked at could change that.
///
/// Most videos were observed shortly before that day, so that is looked at first and costs the same however long the
/// history is; only the others are looked up in all of theirs.
async fn look_back<T>(
    query: Query,
    videos: &[VideoRef],
    start: NaiveDate,
    read: impl Fn(Snapshots<'_>) -> (T, bool),
) -> Result<VideoGains<T>, Error> {
    let mut gains = VideoGains::default();
    let first = look(&query, videos, start - FIRST_LOOK, &read, &mut gains).await?;
    look(&query, &first, NaiveDate::default(), |history| (read(history).0, true), &mut gains).await?;
    Ok(gains)
}

/// Looks at the snapshots since a day, and says which videos have to be looked up further back.
async fn look<T>(
    query: &Query,
    videos: &[VideoRef],
    since: NaiveDate,
    read: impl Fn(Snapshots<'_>) -> (T, bool),
    gains: &mut VideoGains<T>,
) -> Result<Vec<VideoRef>, Error> {
    if videos.is_empty() {
        return Ok(Vec::new());
    }
    let places: Vec<_> = videos.iter().map(|video| (video.subject_id, video.internal_id)).collect();
    let snapshots = snapshots(query.clone().param("videos", places).param("since", since)).await?;
    let histories = snapshots.chunk_by(|one, next| one.video_id == next.video_id);
    let histories: HashMap<_, _> =
        histories.map(|snapshots| (snapshots[0].video_id.cast_signed(), snapshots)).collect();
    let mut others = Vec::new();
    for video in videos {
        let is_whole = video.tracked_since.is_some_and(|first| first >= since);
        let Some(snapshots) = histories.get(&video.internal_id).copied() else {
            if !is_whole {
                others.push(*video);
            }
            continue;
        };
        let (gained, settled) = read(Snapshots { snapshots, from_zero: video.from_zero });
        if settled || is_whole {
            gains.of.insert(video.internal_id, gained);
            gains.as_of = gains.as_of.max(snapshots.iter().map(|snapshot| snapshot.observed_at).max());
        } else {
            others.push(*video);
        }
    }
    Ok(others)
}
