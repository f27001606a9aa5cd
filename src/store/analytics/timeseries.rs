//! Figures of each day of a window, per platform: gains and followers from the rollup, new posts from Postgres.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::{FromRow, QueryBuilder};
use uuid::Uuid;

use super::accounts::SubjectFilter;
use super::new_posts;
use super::reader::VersionedHistory;
use super::rollup::GainsByDay;
use super::scope::{ScopeRow, SubjectScope, push_scope};
use super::subjects::{fetch_daily_levels, sum_known};
use crate::model::gains::Gains;
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::postgres::RecordsQuery;

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

/// The part of a time series that is in Postgres.
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
pub fn records(organization: Uuid, filter: &SubjectFilter, window: Window) -> RecordsQuery<SeriesRecords> {
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
    let (gains, (levels, as_of)) = tokio::try_join!(
        history.ask(window, |window| GainsByDay { scope, window }),
        fetch_daily_levels(history, scope, Platform::ALL.len(), window),
    )?;
    let mut days: BTreeMap<NaiveDate, ByPlatform<Figures>> = BTreeMap::new();
    for (position, date) in window.iter_days().enumerate() {
        let followers = |platform: usize| levels[platform][position];
        let figures = |platform| Figures { followers: followers(platform), ..Figures::default() };
        days.insert(date, std::array::from_fn(figures));
    }
    for row in gains {
        if let Some(platforms) = days.get_mut(&row.day) {
            let figures = &mut platforms[row.group_number as usize];
            figures.gains += row.gains;
            figures.observed += row.observed;
        }
    }
    for ((day, on_tiktok), count) in posts.days.iter().zip(&posts.on_tiktok).zip(&posts.posts) {
        if let Some(platforms) = days.get_mut(day) {
            platforms[usize::from(*on_tiktok)].new_posts += count;
        }
    }
    Ok(TimeSeries { days, as_of })
}
