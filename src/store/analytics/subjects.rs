//! Gains and follower levels of subjects over windows, read from the rollup.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::Row;
use serde::Deserialize;
use uuid::Uuid;

use super::reader::HistoryReader;
use super::scope::{
    OrganizationScope, OrganizationSql, ScopedSql, SubjectScope, organization_sql, subject_parts,
};
use crate::model::gains::Gains;
use crate::model::period::Window;
use crate::store::Error;

const DAILY_SQL: ScopedSql =
    ScopedSql { organization: organization_sql!("daily"), subjects: include_str!("daily/subjects.sql") };
const LEVELS_SQL: ScopedSql =
    ScopedSql { organization: organization_sql!("levels"), subjects: include_str!("levels/subjects.sql") };
const ENGAGEMENT_SQL: OrganizationSql = organization_sql!("engagement");

/// Gains of one subject over a window.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct SubjectTotals {
    subject_id: u64,
    views: Option<i64>,
    plays: Option<i64>,
    likes: Option<i64>,
    comments: Option<i64>,
    shares: Option<i64>,
    followers: Option<i64>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub as_of: DateTime<Utc>,
}

impl SubjectTotals {
    pub const fn subject_id(&self) -> i64 {
        self.subject_id.cast_signed()
    }

    pub fn gains(&self) -> Gains {
        gains([self.views, self.plays, self.likes, self.comments, self.shares])
    }

    pub fn followers(&self) -> i64 {
        self.followers.unwrap_or_default()
    }
}

/// Gains in views and engagement of one subject over a window. Each further counter would cost ClickHouse half a
/// millisecond in 50,000 rows.
#[derive(Debug, Clone, Row, Deserialize)]
pub struct SubjectEngagement {
    subject_id: u64,
    views: Option<i64>,
    likes: Option<i64>,
    comments: Option<i64>,
    shares: Option<i64>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub as_of: DateTime<Utc>,
}

impl SubjectEngagement {
    pub const fn subject_id(&self) -> i64 {
        self.subject_id.cast_signed()
    }

    /// Without plays.
    pub fn gains(&self) -> Gains {
        gains([self.views, None, self.likes, self.comments, self.shares])
    }
}

/// Gains on one day.
#[derive(Debug, Clone, Copy, Default)]
pub struct DayGains {
    pub gains: Gains,
    pub as_of: Option<DateTime<Utc>>,
}

/// Followers at the end of a window and on the day before it, unknown before their first observation, and the latest
/// observation by the end of the window.
#[derive(Debug, Clone, Default, Row, Deserialize)]
pub struct FollowerLevels {
    pub followers: Option<i64>,
    pub previous_followers: Option<i64>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros::option")]
    pub as_of: Option<DateTime<Utc>>,
}

/// Gains of some subjects; those without an observation in the window are absent.
pub async fn fetch_totals(
    history: &HistoryReader,
    organization: Uuid,
    subjects: &[i64],
    window: Window,
) -> Result<Vec<SubjectTotals>, Error> {
    history
        .fetch_parts(organization, subject_parts(include_str!("subject_totals.sql"), subjects), window)
        .await
}

/// Gains in views and engagement of all subjects; those without an observation in the window are absent.
pub async fn fetch_engagement(
    history: &HistoryReader,
    scope: &OrganizationScope,
    window: Window,
) -> Result<Vec<SubjectEngagement>, Error> {
    history.fetch_parts(scope.organization, scope.parts(&ENGAGEMENT_SQL), window).await
}

/// Gains per day; days without an observation are absent.
pub async fn fetch_daily(
    history: &HistoryReader,
    scope: &SubjectScope,
    window: Window,
) -> Result<BTreeMap<NaiveDate, DayGains>, Error> {
    Ok(sum_by_day(history.fetch_parts(scope.organization(), scope.parts(&DAILY_SQL), window).await?))
}

/// Gains per day without plays; days without an observation are absent.
pub async fn fetch_daily_engagement(
    history: &HistoryReader,
    organization: Uuid,
    subjects: &[i64],
    window: Window,
) -> Result<BTreeMap<NaiveDate, DayGains>, Error> {
    let parts = subject_parts(include_str!("daily/subjects_engagement.sql"), subjects);
    Ok(sum_by_day(history.fetch_parts(organization, parts, window).await?))
}

#[derive(Row, Deserialize)]
struct DayGainsRow {
    #[serde(with = "clickhouse::serde::chrono::date")]
    date: NaiveDate,
    views: Option<i64>,
    plays: Option<i64>,
    likes: Option<i64>,
    comments: Option<i64>,
    shares: Option<i64>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    as_of: DateTime<Utc>,
}

fn sum_by_day(rows: Vec<DayGainsRow>) -> BTreeMap<NaiveDate, DayGains> {
    let mut days: BTreeMap<NaiveDate, DayGains> = BTreeMap::new();
    for row in rows {
        let day = days.entry(row.date).or_default();
        day.gains += gains([row.views, row.plays, row.likes, row.comments, row.shares]);
        day.as_of = day.as_of.max(Some(row.as_of));
    }
    days
}

/// Gains of views, plays, likes, comments and shares; unknown ones are 0.
fn gains(counters: [Option<i64>; 5]) -> Gains {
    let [views, plays, likes, comments, shares] = counters.map(Option::unwrap_or_default);
    Gains::new(views, plays, likes, comments, shares)
}

/// Follower levels of all subjects together.
pub async fn fetch_levels(
    history: &HistoryReader,
    scope: &SubjectScope,
    window: Window,
) -> Result<FollowerLevels, Error> {
    let parts: Vec<FollowerLevels> =
        history.fetch_parts(scope.organization(), scope.parts(&LEVELS_SQL), window).await?;
    let mut levels = parts.into_iter().fold(FollowerLevels::default(), |sum, part| FollowerLevels {
        followers: sum_known(sum.followers, part.followers),
        previous_followers: sum_known(sum.previous_followers, part.previous_followers),
        as_of: sum.as_of.max(part.as_of),
    });
    if !history.retains(window.start - Days::new(1)) {
        levels.previous_followers = None;
    }
    levels.as_of = history.clip_observation(levels.as_of);
    Ok(levels)
}

/// The latest observation by the end of a window: `latest`, that of the window itself, or an earlier one.
pub async fn resolve_as_of(
    history: &HistoryReader,
    scope: &SubjectScope,
    window: Window,
    latest: Option<DateTime<Utc>>,
) -> Result<Option<DateTime<Utc>>, Error> {
    if latest.is_some() {
        return Ok(latest);
    }
    Ok(fetch_levels(history, scope, window).await?.as_of)
}

/// A sum that is unknown only if both values are.
pub(super) fn sum_known(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}
