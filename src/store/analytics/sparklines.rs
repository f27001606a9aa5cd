//! One metric on each day of a window, of many accounts, creators or videos at a time.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::{FromRow, QueryBuilder};
use uuid::Uuid;

use super::reader::VersionedHistory;
use super::rollup::MetricByDay;
use super::scope::{ListedSubjects, SubjectScope};
use super::snapshots::VideoSnapshots;
use super::subjects::{fetch_daily_levels, latest_observation_or};
use super::videos::{SnapshotQuery, VideoGains, VideoRef, fetch_gains};
use crate::model::gains::GainMetric;
use crate::model::period::{Window, clamp_day};
use crate::store::Error;
use crate::store::postgres::RecordsQuery;

/// A metric of accounts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SparklineMetric {
    #[default]
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
    /// Id of the account, or of the creator of all of them.
    pub id: Uuid,
    /// Internal ids of the accounts.
    pub subjects: Vec<i64>,
    /// The days with posts in the window, only for that metric; maybe several times.
    days: Vec<NaiveDate>,
    /// Number of posts on each of them.
    posts: Vec<i64>,
}

/// The record that an id of a request identifies.
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
    /// None for followers before their first observation, and for gains as the caller asked.
    pub by_id: BTreeMap<Uuid, Vec<Option<i64>>>,
    pub as_of: Option<DateTime<Utc>>,
}

/// Reads a metric of accounts; a gain is `unobserved` on days without an observation.
pub async fn fetch(
    history: &VersionedHistory,
    groups: &[AccountGroup],
    metric: SparklineMetric,
    window: Window,
    unobserved: Option<i64>,
) -> Result<Sparklines, Error> {
    let subjects = ListedSubjects::from_groups(groups.iter().map(|group| &group.subjects[..]));
    let metric = match metric {
        SparklineMetric::Followers => return fetch_followers(history, groups, subjects, window).await,
        SparklineMetric::NewPosts => return fetch_new_posts(history, groups, subjects, window).await,
        SparklineMetric::Views => GainMetric::Views,
        SparklineMetric::Likes => GainMetric::Likes,
        SparklineMetric::Comments => GainMetric::Comments,
        SparklineMetric::Shares => GainMetric::Shares,
        SparklineMetric::Engagement => GainMetric::Engagement,
    };
    let rows = history.ask(window, |window| MetricByDay { subjects: &subjects, metric, window }).await?;
    let latest = rows.iter().map(|row| row.as_of).max();
    let mut days = DayValues::default();
    for row in rows {
        *days.entry((row.group_number as usize, row.day)).or_default() += row.gain;
    }
    let as_of = latest_observation_or(history, &SubjectScope::Listed(subjects), window, latest).await?;
    Ok(Sparklines { by_id: by_id(&days, groups, window, unobserved), as_of })
}

/// The values of groups, by their numbers and the day.
type DayValues = BTreeMap<(usize, NaiveDate), i64>;

/// The values of every day, `unknown` where there is none.
fn by_id(
    days: &DayValues,
    groups: &[AccountGroup],
    window: Window,
    unknown: Option<i64>,
) -> BTreeMap<Uuid, Vec<Option<i64>>> {
    let value = |number, day| days.get(&(number, day)).copied().or(unknown);
    let values = |number| window.iter_days().map(|day| value(number, day)).collect();
    groups.iter().enumerate().map(|(number, group)| (group.id, values(number))).collect()
}

/// Reads the followers at the end of each day.
async fn fetch_followers(
    history: &VersionedHistory,
    groups: &[AccountGroup],
    subjects: ListedSubjects,
    window: Window,
) -> Result<Sparklines, Error> {
    let scope = SubjectScope::Listed(subjects);
    let (levels, as_of) = fetch_daily_levels(history, &scope, groups.len(), window).await?;
    Ok(Sparklines { by_id: groups.iter().map(|group| group.id).zip(levels).collect(), as_of })
}

/// Adds up the discovered videos by the day of their creation.
async fn fetch_new_posts(
    history: &VersionedHistory,
    groups: &[AccountGroup],
    subjects: ListedSubjects,
    window: Window,
) -> Result<Sparklines, Error> {
    let as_of = latest_observation_or(history, &SubjectScope::Listed(subjects), window, None).await?;
    let mut days = DayValues::default();
    for (number, group) in groups.iter().enumerate() {
        for (day, posts) in group.days.iter().zip(&group.posts) {
            *days.entry((number, *day)).or_default() += posts;
        }
    }
    Ok(Sparklines { by_id: by_id(&days, groups, window, Some(0)), as_of })
}

/// Reads a metric of videos: its gains on each day of the window, `unobserved` on days without an observation.
pub async fn fetch_videos(
    history: &VersionedHistory,
    videos: &[VideoRef],
    metric: GainMetric,
    window: Window,
    unobserved: Option<i64>,
) -> Result<VideoGains<Vec<Option<i64>>>, Error> {
    let Some(retained) = history.clip(window) else { return Ok(VideoGains::default()) };
    let start = clamp_day(retained.start);
    let (starts, end) = (retained.iter_days().map(clamp_day).collect(), clamp_day(window.end));
    let (counters, query) = match metric {
        GainMetric::Views => (0..1, SnapshotQuery::for_counter("view_count", starts, end)),
        GainMetric::Likes => (0..1, SnapshotQuery::for_counter("like_count", starts, end)),
        GainMetric::Comments => (0..1, SnapshotQuery::for_counter("comment_count", starts, end)),
        GainMetric::Shares => (0..1, SnapshotQuery::for_counter("share_count", starts, end)),
        // Likes, comments and shares come after views and plays.
        GainMetric::Engagement => (2..5, SnapshotQuery::for_all_counters(starts, end)),
    };
    let compute = |video: VideoSnapshots<'_>| {
        let mut days = vec![unobserved; window.days() as usize];
        let observed = video.snapshots.iter().map(|snapshot| (snapshot.date, 0));
        for (date, gain) in observed.chain(counters.clone().flat_map(|counter| video.gains(counter))) {
            if date >= start {
                *days[(date - window.start).num_days() as usize].get_or_insert(0) += gain;
            }
        }
        (days, counters.clone().all(|counter| video.gain_since(start, counter).is_final))
    };
    fetch_gains(history, videos, query, compute).await
}
