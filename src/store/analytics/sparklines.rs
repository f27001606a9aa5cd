//! One metric on each day of a window, of many accounts, creators or videos at a time. Reads only the metric's columns.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::Row;
use clickhouse::query::Query;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::{FromRow, QueryBuilder};
use uuid::Uuid;

use super::reader::VersionedHistory;
use super::rollup_cache::{RollupRows, Sums};
use super::scope::{SubjectScope, subject_chunks};
use super::snapshots::VideoSnapshots;
use super::subjects::latest_observation_or;
use super::videos::{SnapshotQuery, VideoGains, VideoRef, fetch_gains};
use crate::model::gains::GainMetric;
use crate::model::period::{Window, clamp_day};
use crate::store::Error;
use crate::store::postgres::RecordsQuery;

/// A metric of accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SparklineMetric {
    Views,
    Likes,
    Comments,
    Shares,
    Engagement,
    Followers,
    NewPosts,
}

/// Accounts whose values are added up.
#[derive(Debug, Clone, FromRow)]
pub struct AccountGroup {
    /// Of the account, or of the creator of all of them.
    pub id: Uuid,
    /// Internal ids of the accounts.
    pub subjects: Vec<i64>,
    /// The days with posts in the window, only for that metric; maybe several times.
    days: Vec<NaiveDate>,
    /// How many.
    posts: Vec<i64>,
}

/// What an id of a request identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupKind {
    Account,
    Creator,
}

/// Finds the accounts, or the creators with their accounts, among ids of the organization.
pub fn find(
    organization: Uuid,
    kind: GroupKind,
    ids: &[Uuid],
    metric: SparklineMetric,
    window: Window,
) -> RecordsQuery<Vec<AccountGroup>> {
    let (table, column) = match kind {
        GroupKind::Account => ("accounts", "id"),
        GroupKind::Creator => ("creators", "creator_id"),
    };
    let mut query = QueryBuilder::new("select g.id, subjects, days, posts from ");
    query.push(format_args!(
        "{table} g cross join lateral (
        select coalesce(array_agg(a.internal_id), '{{}}') as subjects
        from accounts a where a.{column} = g.id and a.organization_id = "
    ));
    query.push_bind(organization).push(") members cross join lateral (");
    if metric == SparklineMetric::NewPosts {
        let [start, end] = window.times();
        // A range of the index `videos_of_account` per account.
        query.push(
            "select coalesce(array_agg(day), '{}') as days, coalesce(array_agg(posts), '{}') as posts
             from accounts a cross join lateral (
                 select (create_time at time zone 'UTC')::date as day, count(*) as posts
                 from videos
                 where account_id = a.id and create_time >= ",
        );
        query.push_bind(start).push(" and create_time < ").push_bind(end);
        query.push(format_args!(" group by 1) posted where a.{column} = g.id and a.organization_id = "));
        query.push_bind(organization);
    } else {
        query.push("select '{}'::date[] as days, '{}'::bigint[] as posts");
    }
    query.push(") posted where g.organization_id = ").push_bind(organization);
    query.push(" and g.id = any(").push_bind(ids).push(")");
    RecordsQuery::rows(query)
}

/// The values of each day of a window by id, and the latest observation by its end.
#[derive(Debug, Clone, Default)]
pub struct Sparklines {
    /// None only for followers before their first observation.
    pub by_id: BTreeMap<Uuid, Vec<Option<i64>>>,
    pub as_of: Option<DateTime<Utc>>,
}

/// Reads a metric of accounts.
pub async fn fetch(
    history: &VersionedHistory,
    groups: &[AccountGroup],
    metric: SparklineMetric,
    window: Window,
) -> Result<Sparklines, Error> {
    let gain = match metric {
        SparklineMetric::NewPosts => return fetch_new_posts(history, groups, window).await,
        SparklineMetric::Followers => return fetch_followers(history, groups, window).await,
        SparklineMetric::Engagement => None,
        SparklineMetric::Views => Some("view_gain"),
        SparklineMetric::Likes => Some("like_gain"),
        SparklineMetric::Comments => Some("comment_gain"),
        SparklineMetric::Shares => Some("share_gain"),
    };
    let gain_of = |sums: &Sums| {
        let gains = sums.gains();
        Some(match metric {
            SparklineMetric::Likes => gains.likes,
            SparklineMetric::Comments => gains.comments,
            SparklineMetric::Shares => gains.shares,
            SparklineMetric::Engagement => gains.engagement,
            _ => gains.views,
        })
    };
    let cached = read_days(history, groups, window, false, gain_of);
    let days = match (cached.await, gain) {
        (Some(days), _) => days,
        (None, Some(gain)) => {
            let sql = include_str!("sparklines/gains.sql");
            fetch_days(history, groups, sql, window, |query| query.param("gain", gain)).await?
        }
        (None, None) => {
            let sql = include_str!("sparklines/engagement.sql");
            fetch_days(history, groups, sql, window, |query| query).await?
        }
    };
    let scope = SubjectScope::Subjects(subjects(groups).collect());
    let as_of = latest_observation_or(history, &scope, window, days.as_of).await?;
    Ok(Sparklines { by_id: days.into_values(groups, window), as_of })
}

fn subjects(groups: &[AccountGroup]) -> impl Iterator<Item = i64> {
    groups.iter().flat_map(|group| &group.subjects).copied()
}

/// The index of the group of each subject.
fn series(groups: &[AccountGroup]) -> impl Iterator<Item = usize> {
    groups.iter().enumerate().flat_map(|(number, group)| std::iter::repeat_n(number, group.subjects.len()))
}

#[derive(Row, Deserialize)]
struct DayRow {
    number: u64,
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    value: Option<i64>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    as_of: DateTime<Utc>,
}

/// The known values of each series, by its index and the day.
#[derive(Default)]
struct SeriesDays {
    values: BTreeMap<(usize, NaiveDate), i64>,
    as_of: Option<DateTime<Utc>>,
}

/// Runs a statement over the accounts; a series is the index of a group.
async fn fetch_days(
    history: &VersionedHistory,
    groups: &[AccountGroup],
    sql: &'static str,
    window: Window,
    bind: impl Fn(Query) -> Query,
) -> Result<SeriesDays, Error> {
    let subjects: Vec<_> = subjects(groups).collect();
    let series: Vec<_> = series(groups).map(|number| number as u64).collect();
    let mut days = SeriesDays::default();
    let mut remaining = &series[..];
    for part in subject_chunks(sql, &subjects) {
        let (series, rest) = remaining.split_at(part.subject_count());
        remaining = rest;
        let bind = |query| bind(query).param("series", series);
        let rows: Vec<DayRow> = history.fetch_chunk(&part, window, bind).await?;
        for DayRow { number, day, value, as_of } in rows {
            days.as_of = days.as_of.max(Some(as_of));
            if let Some(value) = value {
                *days.values.entry((number as usize, day)).or_default() += value;
            }
        }
    }
    Ok(days)
}

/// Adds up days from memory, as `value` of each series and day. With earlier days, which become the day before the window.
async fn read_days(
    history: &VersionedHistory,
    groups: &[AccountGroup],
    window: Window,
    with_earlier: bool,
    value: impl Fn(&Sums) -> Option<i64>,
) -> Option<SeriesDays> {
    let read = |rows: &RollupRows, start: NaiveDate, end| {
        let numbers: HashMap<i64, usize> = subjects(groups).zip(series(groups)).collect();
        let selection = rows.select(None, groups.len(), |_, id| numbers.get(&id).copied());
        let (mut days, before) = (SeriesDays::default(), start - Days::new(1));
        let first = if with_earlier { NaiveDate::MIN } else { start };
        let earlier = rows.totals(&selection, first, before).into_iter().enumerate();
        let earlier = earlier.map(|(number, sums)| (before, number, sums)).filter(|day| day.2.observed > 0);
        for (day, number, sums) in earlier.chain(rows.series(&selection, start, end)) {
            days.as_of = days.as_of.max(sums.as_of());
            if let Some(value) = value(&sums) {
                days.values.insert((number, day), value);
            }
        }
        days
    };
    history.read_rollup(window, read).await
}

impl SeriesDays {
    /// The values of every day, 0 where none is known.
    fn into_values(self, groups: &[AccountGroup], window: Window) -> BTreeMap<Uuid, Vec<Option<i64>>> {
        let value = |number, day| self.values.get(&(number, day)).copied().unwrap_or_default();
        let values = groups.iter().enumerate().map(|(number, group)| {
            (group.id, window.iter_days().map(|day| Some(value(number, day))).collect())
        });
        values.collect()
    }

    /// The running sums of a series at the end of every day, unknown before its first value.
    fn levels(&self, number: usize, window: Window) -> impl Iterator<Item = (NaiveDate, Option<i64>)> {
        let mut changes = self.values.range((number, NaiveDate::MIN)..).peekable();
        let mut level = None;
        window.iter_days().map(move |date| {
            let is_due = |(series, day): &(usize, NaiveDate)| *series == number && *day <= clamp_day(date);
            while let Some((_, change)) = changes.next_if(|(key, _)| is_due(key)) {
                level = Some(level.unwrap_or(0) + change);
            }
            (date, level)
        })
    }
}

/// Reads the followers at the end of each day.
async fn fetch_followers(
    history: &VersionedHistory,
    groups: &[AccountGroup],
    window: Window,
) -> Result<Sparklines, Error> {
    let sql = include_str!("sparklines/followers.sql");
    let days = match read_days(history, groups, window, true, Sums::follower_step).await {
        Some(days) => days,
        None => fetch_days(history, groups, sql, window, |query| query).await?,
    };
    let levels = |number| {
        let levels = days.levels(number, window);
        levels.map(|(date, level)| level.filter(|_| history.retains(date))).collect()
    };
    let by_id = groups.iter().enumerate().map(|(number, group)| (group.id, levels(number))).collect();
    Ok(Sparklines { by_id, as_of: history.clip_observation(days.as_of) })
}

/// Adds up the discovered videos by the day of their creation.
async fn fetch_new_posts(
    history: &VersionedHistory,
    groups: &[AccountGroup],
    window: Window,
) -> Result<Sparklines, Error> {
    let scope = SubjectScope::Subjects(subjects(groups).collect());
    let as_of = latest_observation_or(history, &scope, window, None).await?;
    let mut days = SeriesDays { as_of, ..SeriesDays::default() };
    for (number, group) in groups.iter().enumerate() {
        for (day, posts) in group.days.iter().zip(&group.posts) {
            *days.values.entry((number, *day)).or_default() += posts;
        }
    }
    Ok(Sparklines { by_id: days.into_values(groups, window), as_of })
}

/// Reads a metric of videos: its gains on each day of the window.
pub async fn fetch_videos(
    history: &VersionedHistory,
    videos: &[VideoRef],
    metric: GainMetric,
    window: Window,
) -> Result<VideoGains<Vec<i64>>, Error> {
    let Some(retained) = history.clip(window) else { return Ok(VideoGains::default()) };
    let start = clamp_day(retained.start);
    let (starts, end) = (retained.iter_days().map(clamp_day).collect(), clamp_day(window.end));
    let (counters, query) = match metric {
        GainMetric::Views => (1, SnapshotQuery::for_counter("view_count", starts, end)),
        GainMetric::Likes => (1, SnapshotQuery::for_counter("like_count", starts, end)),
        GainMetric::Comments => (1, SnapshotQuery::for_counter("comment_count", starts, end)),
        GainMetric::Shares => (1, SnapshotQuery::for_counter("share_count", starts, end)),
        GainMetric::Engagement => (3, SnapshotQuery::for_engagement(starts, end)),
    };
    let compute = |video: VideoSnapshots<'_>| {
        let mut days = vec![0; window.days() as usize];
        for (date, gain) in (0..counters).flat_map(|counter| video.gains(counter)) {
            if date >= start {
                days[(date - window.start).num_days() as usize] += gain;
            }
        }
        (days, (0..counters).all(|counter| video.gain_since(start, counter).has_baseline))
    };
    fetch_gains(history, videos, query, compute).await
}
