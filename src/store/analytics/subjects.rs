//! Gains and follower levels of subjects over windows, read from the rollup.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;

use super::reader::VersionedHistory;
use super::rollup_cache::RollupRows;
use super::scope::{ScopedSql, SubjectScope, organization_sql, subject_chunks};
use crate::model::gains::{AccountGains, Gains};
use crate::model::period::{Window, clamp_day};
use crate::model::platform::Platform;
use crate::store::Error;

const DAILY_SQL: ScopedSql =
    ScopedSql { organization: organization_sql!("daily"), subjects: include_str!("daily/subjects.sql") };
const LEVELS_SQL: ScopedSql =
    ScopedSql { organization: organization_sql!("levels"), subjects: include_str!("levels/subjects.sql") };

/// Gains of one subject over a window.
#[derive(Debug, Clone, Copy)]
pub struct SubjectTotals {
    pub subject_id: i64,
    pub gains: AccountGains,
    pub as_of: DateTime<Utc>,
}

#[derive(Row, Deserialize)]
struct SubjectTotalsRow {
    subject_id: u64,
    views: Option<i64>,
    plays: Option<i64>,
    likes: Option<i64>,
    comments: Option<i64>,
    shares: Option<i64>,
    followers: Option<i64>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    as_of: DateTime<Utc>,
}

/// Gains of one subject in a window and in the previous one.
#[derive(Debug, Clone, Copy, Default)]
pub struct ComparedTotals {
    pub current: AccountGains,
    pub previous: AccountGains,
    /// The latest observation in either.
    pub as_of: DateTime<Utc>,
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
    history: &VersionedHistory,
    subjects: &[i64],
    window: Window,
) -> Result<Vec<SubjectTotals>, Error> {
    let cached = history.read_rollup(window, |rows, start, end| {
        let positions: HashMap<i64, usize> = subjects.iter().copied().zip(0..).collect();
        let selection = rows.select(None, subjects.len(), |_, id| positions.get(&id).copied());
        let totals = subjects.iter().zip(rows.totals(&selection, start, end));
        let totals = totals.filter_map(|(subject, sums)| {
            Some(SubjectTotals { subject_id: *subject, gains: sums.account_gains(), as_of: sums.as_of()? })
        });
        totals.collect()
    });
    if let Some(totals) = cached.await {
        return Ok(totals);
    }
    let parts = subject_chunks(include_str!("subject_totals.sql"), subjects);
    let rows: Vec<SubjectTotalsRow> = history.fetch_chunks(parts, window).await?;
    let totals = rows.into_iter().map(|row| SubjectTotals {
        subject_id: row.subject_id.cast_signed(),
        gains: AccountGains {
            gains: gains([row.views, row.plays, row.likes, row.comments, row.shares]),
            followers: row.followers.unwrap_or_default(),
        },
        as_of: row.as_of,
    });
    Ok(totals.collect())
}

/// Gains of all subjects in a window and in the previous one, by subject. Those without an observation in either are absent;
/// deleted ones may be present.
pub async fn fetch_compared(
    history: &VersionedHistory,
    platform: Option<Platform>,
    window: Window,
) -> Result<HashMap<i64, ComparedTotals>, Error> {
    let both = Window { start: window.previous().start, ..window };
    let Some(retained) = history.clip(both) else { return Ok(HashMap::new()) };
    let cached = history.read_rollup(both, |rows, previous_start, end| {
        compare_in_memory(rows, platform, previous_start, clamp_day(window.start), end)
    });
    if let Some(compared) = cached.await {
        return Ok(compared);
    }
    let sql = match platform {
        None => include_str!("compared/organization.sql"),
        Some(_) => include_str!("compared/platform.sql"),
    };
    let bind = |query: Query| {
        let query = query
            .param("previous_start", clamp_day(retained.start))
            .param("start", clamp_day(window.start))
            .param("end", clamp_day(window.end));
        match platform {
            Some(platform) => query.param("platform", platform.as_str()),
            None => query,
        }
    };
    let mut compared: HashMap<i64, ComparedTotals> = HashMap::new();
    for row in history.fetch_all::<HalfTotalsRow>(sql, bind).await? {
        let totals = compared.entry(row.subject_id.cast_signed()).or_default();
        let half = if row.is_current == 1 { &mut totals.current } else { &mut totals.previous };
        *half = AccountGains {
            gains: gains([row.views, row.plays, row.likes, row.comments, row.shares]),
            followers: row.followers.unwrap_or_default(),
        };
        totals.as_of = totals.as_of.max(row.as_of);
    }
    Ok(compared)
}

fn compare_in_memory(
    rows: &RollupRows,
    platform: Option<Platform>,
    previous_start: NaiveDate,
    start: NaiveDate,
    end: NaiveDate,
) -> HashMap<i64, ComparedTotals> {
    let selection = rows.select(platform, rows.subjects.len(), |position, _| Some(position));
    let previous = rows.totals(&selection, previous_start, start - Days::new(1));
    let current = rows.totals(&selection, start.max(previous_start), end);
    let compared = rows.subjects.iter().zip(current.iter().zip(&previous)).filter_map(|(subject, sums)| {
        let (current, previous) = sums;
        let as_of = current.as_of().max(previous.as_of())?;
        let (current, previous) = (current.account_gains(), previous.account_gains());
        Some((*subject, ComparedTotals { current, previous, as_of }))
    });
    compared.collect()
}

/// Gains of one subject in a window or in the previous one. Grouping rows by window takes ClickHouse less than twelve
/// conditional sums.
#[derive(Row, Deserialize)]
struct HalfTotalsRow {
    subject_id: u64,
    is_current: u8,
    views: Option<i64>,
    plays: Option<i64>,
    likes: Option<i64>,
    comments: Option<i64>,
    shares: Option<i64>,
    followers: Option<i64>,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    as_of: DateTime<Utc>,
}

/// Gains per day; days without an observation are absent.
pub async fn fetch_daily(
    history: &VersionedHistory,
    scope: &SubjectScope,
    window: Window,
) -> Result<BTreeMap<NaiveDate, DayGains>, Error> {
    if let Some(days) = read_daily(history, scope, window).await {
        return Ok(days);
    }
    Ok(sum_by_day(history.fetch_chunks(scope.chunks(&DAILY_SQL), window).await?))
}

/// Gains per day from memory.
async fn read_daily(
    history: &VersionedHistory,
    scope: &SubjectScope,
    window: Window,
) -> Option<BTreeMap<NaiveDate, DayGains>> {
    let read = |rows: &RollupRows, start, end| {
        let selection = scope.select(rows);
        let days = rows.series(&selection, start, end);
        days.map(|(date, _, sums)| (date, DayGains { gains: sums.gains(), as_of: sums.as_of() })).collect()
    };
    history.read_rollup(window, read).await
}

/// Gains per day, maybe without plays; days without an observation are absent.
pub async fn fetch_daily_engagement(
    history: &VersionedHistory,
    subjects: &[i64],
    window: Window,
) -> Result<BTreeMap<NaiveDate, DayGains>, Error> {
    let scope = SubjectScope::Subjects(subjects.to_vec());
    if let Some(days) = read_daily(history, &scope, window).await {
        return Ok(days);
    }
    let parts = subject_chunks(include_str!("daily/subjects_engagement.sql"), subjects);
    Ok(sum_by_day(history.fetch_chunks(parts, window).await?))
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
pub(super) fn gains(counters: [Option<i64>; 5]) -> Gains {
    let [views, plays, likes, comments, shares] = counters.map(Option::unwrap_or_default);
    Gains::new(views, plays, likes, comments, shares)
}

/// Follower levels of all subjects together.
pub async fn fetch_levels(
    history: &VersionedHistory,
    scope: &SubjectScope,
    window: Window,
) -> Result<FollowerLevels, Error> {
    let parts = match read_levels(history, scope, window).await {
        Some(levels) => vec![levels],
        None => history.fetch_chunks(scope.chunks(&LEVELS_SQL), window).await?,
    };
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

/// Follower levels from memory, of all days up to the end of a window.
async fn read_levels(
    history: &VersionedHistory,
    scope: &SubjectScope,
    window: Window,
) -> Option<FollowerLevels> {
    let read = |rows: &RollupRows, start: NaiveDate, end| {
        let selection = scope.select(rows);
        let before = rows.totals(&selection, NaiveDate::MIN, start - Days::new(1))[0];
        let within = rows.totals(&selection, start, end)[0];
        FollowerLevels {
            followers: sum_known(before.follower_step(), within.follower_step()),
            previous_followers: before.follower_step(),
            as_of: before.as_of().max(within.as_of()),
        }
    };
    history.read_rollup(window, read).await
}

/// The latest observation by the end of a window: `latest`, that of the window itself, or an earlier one.
pub async fn latest_observation_or(
    history: &VersionedHistory,
    scope: &SubjectScope,
    window: Window,
    latest: Option<DateTime<Utc>>,
) -> Result<Option<DateTime<Utc>>, Error> {
    if latest.is_some() {
        return Ok(latest);
    }
    Ok(fetch_levels(history, scope, window).await?.as_of)
}

/// The latest observation by the end of a window. Reads the last week only if there is one in it.
pub async fn fetch_as_of(
    history: &VersionedHistory,
    scope: &SubjectScope,
    window: Window,
) -> Result<Option<DateTime<Utc>>, Error> {
    let last_week = Window { start: window.end - Days::new(6), ..window };
    let latest =
        fetch_daily(history, scope, last_week).await?.into_values().filter_map(|day| day.as_of).max();
    latest_observation_or(history, scope, window, latest).await
}

/// A sum that is unknown only if both values are.
pub(super) fn sum_known(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}
