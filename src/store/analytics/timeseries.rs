//! Figures of each day of a window, per platform: gains and followers from the rollup, new posts from Postgres.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::Row;
use serde::Deserialize;
use sqlx::{FromRow, QueryBuilder};
use uuid::Uuid;

use super::accounts::AccountFilter;
use super::new_posts;
use super::reader::VersionedHistory;
use super::rollup_cache::{RollupRows, Selection, Sums};
use super::scope::{ScopeRow, ScopedSql, SubjectScope, organization_sql, push_scope};
use super::subjects::{gains, latest_observation_or, sum_known};
use crate::model::gains::Gains;
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::postgres::RecordsQuery;

const SQL: ScopedSql = ScopedSql {
    organization: organization_sql!("timeseries"),
    subjects: include_str!("timeseries/subjects.sql"),
};

/// In the order of [`Platform::ALL`].
type ByPlatform<T> = [T; Platform::ALL.len()];

/// Figures of one or more days.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    pub gains: Gains,
    /// Followers at the end, unknown before the first observation.
    pub followers: Option<i64>,
    /// Number of videos posted.
    pub new_posts: i64,
    /// Number of subjects observed, on the day with the most.
    pub observed: u64,
}

impl Figures {
    /// Adds other subjects on the same day.
    fn merge(&mut self, other: &Figures) {
        self.gains += other.gains;
        self.followers = sum_known(self.followers, other.followers);
        self.new_posts += other.new_posts;
        self.observed += other.observed;
    }

    /// Adds a later day.
    fn add_day(&mut self, later: &Figures) {
        self.gains += later.gains;
        self.followers = later.followers;
        self.new_posts += later.new_posts;
        self.observed = self.observed.max(later.observed);
    }
}

/// Figures of a range of days, in all and by platform.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket {
    pub total: Figures,
    pub platforms: ByPlatform<Figures>,
}

/// Every day of a window, and the latest observation by its end.
#[derive(Debug, Clone)]
pub struct TimeSeries {
    days: BTreeMap<NaiveDate, ByPlatform<Figures>>,
    pub as_of: Option<DateTime<Utc>>,
}

impl TimeSeries {
    /// Summarizes a range of days.
    pub fn bucket(&self, start: NaiveDate, end: NaiveDate) -> Bucket {
        let mut bucket = Bucket::default();
        for (_, platforms) in self.days.range(start..=end) {
            let mut total = Figures::default();
            for (sum, figures) in bucket.platforms.iter_mut().zip(platforms) {
                sum.add_day(figures);
                total.merge(figures);
            }
            bucket.total.add_day(&total);
        }
        bucket
    }
}

#[derive(Row, Deserialize)]
struct DayRow {
    #[serde(with = "clickhouse::serde::chrono::date")]
    day: NaiveDate,
    is_tiktok: u8,
    views: Option<i64>,
    plays: Option<i64>,
    likes: Option<i64>,
    comments: Option<i64>,
    shares: Option<i64>,
    followers: Option<i64>,
    observed: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    as_of: DateTime<Utc>,
}

/// What a time series takes from Postgres.
#[derive(Debug)]
pub struct SeriesRecords {
    scope: SubjectScope,
    posts: PostDays,
}

/// The days with posts, one for each platform.
#[derive(Debug, FromRow)]
struct PostDays {
    days: Vec<NaiveDate>,
    on_tiktok: Vec<bool>,
    posts: Vec<i64>,
}

#[derive(FromRow)]
struct SeriesRow {
    #[sqlx(flatten)]
    scope: ScopeRow,
    #[sqlx(flatten)]
    posts: PostDays,
}

/// Reads the accounts that match and, unless the filter is limited to accounts, individually tracked videos; and the posts of
/// each day. Fails if the organization lacks the account or the creator to filter by.
pub fn records(organization: Uuid, filter: &AccountFilter, window: Window) -> RecordsQuery<SeriesRecords> {
    let mut query = QueryBuilder::new("select posted.*, ");
    push_scope(&mut query, organization, filter);
    query.push(
        " from (select coalesce(array_agg(day), '{}') as days,
                       coalesce(array_agg(platform = 'tiktok'), '{}') as on_tiktok,
                       coalesce(array_agg(posts), '{}') as posts from (",
    );
    new_posts::push_days(&mut query, organization, filter, window);
    query.push(") days) posted");
    let filter = filter.clone();
    RecordsQuery::row(query).and_then(move |SeriesRow { scope, posts }| {
        Ok(SeriesRecords { scope: scope.into_scope(&filter)?, posts })
    })
}

/// Reads the days of a window.
pub async fn fetch(
    history: &VersionedHistory,
    SeriesRecords { scope, posts }: &SeriesRecords,
    window: Window,
) -> Result<TimeSeries, Error> {
    let read =
        |rows: &RollupRows, start, end| read_steps(rows, &scope.select(rows).by_platform(), start, end);
    let rows: Vec<DayRow> = match history.read_rollup(window, read).await {
        Some(rows) => rows,
        None => history.fetch_chunks(scope.chunks(&SQL), window).await?,
    };
    let latest = rows.iter().filter(|row| row.observed > 0).map(|row| row.as_of).max();
    let as_of = latest_observation_or(history, scope, window, latest).await?;
    let mut days = accumulate(rows, window);
    for (date, platforms) in &mut days {
        if !history.retains(*date) {
            platforms.iter_mut().for_each(|figures| figures.followers = None);
        }
    }
    for ((day, on_tiktok), posts) in posts.days.iter().zip(&posts.on_tiktok).zip(&posts.posts) {
        if let Some(platforms) = days.get_mut(day) {
            platforms[usize::from(*on_tiktok)].new_posts += posts;
        }
    }
    Ok(TimeSeries { days, as_of })
}

/// Reads the rows that the statements return from memory.
fn read_steps(rows: &RollupRows, selection: &Selection, start: NaiveDate, end: NaiveDate) -> Vec<DayRow> {
    let before = start - Days::new(1);
    let earlier = rows.totals(selection, NaiveDate::MIN, before).into_iter().enumerate();
    let earlier = earlier.map(|(platform, sums)| (before, platform, sums.only_followers()));
    let step = |(day, platform, sums): (NaiveDate, usize, Sums)| {
        let gains = sums.gains();
        DayRow {
            day,
            is_tiktok: platform as u8,
            views: Some(gains.views),
            plays: Some(gains.plays),
            likes: Some(gains.likes),
            comments: Some(gains.comments),
            shares: Some(gains.shares),
            followers: sums.follower_step(),
            observed: sums.observed,
            as_of: sums.as_of().unwrap_or_default(),
        }
    };
    earlier.chain(rows.series(selection, start, end)).map(step).collect()
}

/// Returns every day of the window, with follower levels carried forward from earlier rows.
fn accumulate(rows: Vec<DayRow>, window: Window) -> BTreeMap<NaiveDate, ByPlatform<Figures>> {
    // `followers` of a step is the change of the level.
    let mut steps: BTreeMap<NaiveDate, ByPlatform<Figures>> = BTreeMap::new();
    for row in rows {
        let step = Figures {
            gains: gains([row.views, row.plays, row.likes, row.comments, row.shares]),
            followers: row.followers,
            new_posts: 0,
            observed: row.observed,
        };
        steps.entry(row.day).or_default()[usize::from(row.is_tiktok)].merge(&step);
    }
    let mut steps = steps.into_iter().peekable();
    let mut levels = ByPlatform::default();
    let days = window.iter_days().map(|date| {
        let mut platforms: ByPlatform<Figures> = ByPlatform::default();
        while let Some((day, step)) = steps.next_if(|(day, _)| *day <= date) {
            for (level, step) in levels.iter_mut().zip(&step) {
                *level = sum_known(*level, step.followers);
            }
            if day == date {
                platforms = step;
            }
        }
        for (figures, level) in platforms.iter_mut().zip(levels) {
            figures.followers = level;
        }
        (date, platforms)
    });
    days.collect()
}
