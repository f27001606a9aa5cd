//! Gains of single videos, many at a time, read from their snapshots.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::Row;
use serde::Deserialize;
use sqlx::{PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::history::{History, Query};
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
}

/// Begins a selection of videos by a condition. A video on an account follows the history of that account, any other
/// its own.
fn select(organization: Uuid) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(
        "select v.id, v.internal_id, v.subject_id,
                coalesce((v.create_time at time zone 'UTC')::date
                    >= case when v.account_id is null then v.tracked_since else a.tracked_since end, false) as from_zero
         from videos v left join accounts a on a.id = v.account_id
         where v.organization_id = ",
    );
    query.push_bind(organization);
    query
}

/// Account-discovered videos of the organization among internal ids of one platform.
pub async fn discovered(
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

/// What a statement about many videos says of one: gains over one window or several.
#[derive(Debug, Clone, Row, Deserialize)]
struct VideoRow {
    video_id: u64,
    gains: Vec<i64>,
    /// Whether no snapshot before those that were looked at could change the gains.
    settled: bool,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    as_of: DateTime<Utc>,
}

/// Gains of videos by their internal ids; those that were not observed by the end are absent and gained nothing.
#[derive(Debug, Clone)]
pub struct VideoGains<T> {
    pub of: HashMap<i64, T>,
    /// The latest observation by the end.
    pub as_of: Option<DateTime<Utc>>,
}

/// How far before a window its first look goes: a video that is scraped at all was seen within this time.
const FIRST_LOOK: Days = Days::new(40);

/// What videos gained over a window.
pub async fn totals(
    history: &History,
    organization: Uuid,
    videos: &[VideoRef],
    window: Window,
) -> Result<VideoGains<Gains>, Error> {
    let start = stored_day(window.start);
    let query = history
        .ask(organization, include_str!("video_totals.sql"))
        .param("start", start)
        .param("end", stored_day(window.end));
    // In the order of the counters' names: views, likes, comments, shares, saves, plays.
    let of_counters = |gains: &[i64]| {
        let gain = |counter| gains.get(counter).copied().unwrap_or_default();
        Gains::new(gain(0), gain(5), gain(1), gain(2), gain(3))
    };
    look_back(query, videos, start, |row| of_counters(&row.gains)).await
}

/// What videos gained in views over windows of so many days, all of which end on one day; in the windows' order.
pub async fn deltas(
    history: &History,
    organization: Uuid,
    videos: &[VideoRef],
    end: NaiveDate,
    windows: &[u16],
) -> Result<VideoGains<Vec<i64>>, Error> {
    let longest = windows.iter().copied().max().unwrap_or_default();
    let query = history
        .ask(organization, include_str!("video_deltas.sql"))
        .param("end", stored_day(end))
        .param("windows", windows);
    look_back(query, videos, stored_day(end - Days::new(longest.into())), |row| row.gains).await
}

/// Asks about videos whose windows begin on a day or later.
///
/// Most videos were observed shortly before that day, so that is looked at first and costs the same however long the
/// history is; only the others are looked up in all of theirs.
async fn look_back<T>(
    query: Query,
    videos: &[VideoRef],
    start: NaiveDate,
    read: impl Fn(VideoRow) -> T,
) -> Result<VideoGains<T>, Error> {
    let mut rows = look(&query, videos, start - FIRST_LOOK).await?;
    rows.retain(|row| row.settled);
    let settled: HashSet<_> = rows.iter().map(|row| row.video_id.cast_signed()).collect();
    let others: Vec<_> =
        videos.iter().filter(|video| !settled.contains(&video.internal_id)).copied().collect();
    rows.extend(look(&query, &others, NaiveDate::default()).await?);
    let as_of = rows.iter().map(|row| row.as_of).max();
    let of = rows.into_iter().map(|row| (row.video_id.cast_signed(), read(row))).collect();
    Ok(VideoGains { of, as_of })
}

async fn look(query: &Query, videos: &[VideoRef], since: NaiveDate) -> Result<Vec<VideoRow>, Error> {
    if videos.is_empty() {
        return Ok(Vec::new());
    }
    let places: Vec<_> = videos.iter().map(|video| (video.subject_id, video.internal_id)).collect();
    let from_zero: Vec<_> =
        videos.iter().filter(|video| video.from_zero).map(|video| video.internal_id).collect();
    let query = query.clone().param("videos", places).param("from_zero", from_zero).param("since", since);
    query.fetch().await
}
