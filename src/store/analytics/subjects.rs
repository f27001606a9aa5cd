//! Gains and follower levels of subjects over windows.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Days, NaiveDate, Utc};

use super::reader::VersionedHistory;
use super::rollup::{FollowerSteps, GainsByDay, TotalsBySubject};
use super::scope::SubjectScope;
use crate::model::gains::AccountGains;
use crate::model::period::{Window, clamp_day};
use crate::model::platform::Platform;
use crate::store::Error;

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
    pub gains: AccountGains,
    pub as_of: Option<DateTime<Utc>>,
}

/// Followers at the end of a window and on the day before it, unknown before their first observation, and the latest
/// observation by the end of the window.
#[derive(Debug, Clone, Default)]
pub struct FollowerLevels {
    pub followers: Option<i64>,
    pub previous_followers: Option<i64>,
    pub as_of: Option<DateTime<Utc>>,
}

/// Gains of some subjects, by subject; those without an observation in the window are absent.
pub async fn fetch_totals(
    history: &VersionedHistory,
    subjects: &[i64],
    window: Window,
) -> Result<HashMap<i64, ComparedTotals>, Error> {
    let scope = SubjectScope::from_subjects(subjects.to_vec());
    compare(history, &scope, window, window.start).await
}

/// Gains of all subjects in a window and in the previous one, by subject. Those without an observation in either are absent;
/// deleted ones may be present.
pub async fn fetch_compared(
    history: &VersionedHistory,
    platform: Option<Platform>,
    window: Window,
) -> Result<HashMap<i64, ComparedTotals>, Error> {
    let both = Window { start: window.previous().start, ..window };
    compare(history, &SubjectScope::without(platform, Vec::new()), both, window.start).await
}

/// Gains before a day of a window and from it on.
async fn compare(
    history: &VersionedHistory,
    scope: &SubjectScope,
    window: Window,
    day: NaiveDate,
) -> Result<HashMap<i64, ComparedTotals>, Error> {
    let current = clamp_day(day);
    let mut compared: HashMap<i64, ComparedTotals> = HashMap::new();
    for row in history.ask(window, |window| TotalsBySubject { scope, window, current }).await? {
        let totals = compared.entry(row.subject_id.cast_signed()).or_default();
        *(if row.is_current == 1 { &mut totals.current } else { &mut totals.previous }) += row.gains();
        totals.as_of = totals.as_of.max(row.as_of);
    }
    Ok(compared)
}

/// Gains per day of all groups together; days without an observation are absent.
pub async fn fetch_daily(
    history: &VersionedHistory,
    scope: &SubjectScope,
    window: Window,
) -> Result<BTreeMap<NaiveDate, DayGains>, Error> {
    let mut days: BTreeMap<NaiveDate, DayGains> = BTreeMap::new();
    for row in history.ask(window, |window| GainsByDay { scope, window }).await? {
        let day = days.entry(row.day).or_default();
        day.gains += AccountGains { gains: row.gains, followers: row.followers };
        day.as_of = day.as_of.max(Some(row.as_of));
    }
    Ok(days)
}

/// Follower levels of all groups together.
pub async fn fetch_levels(
    history: &VersionedHistory,
    scope: &SubjectScope,
    window: Window,
) -> Result<FollowerLevels, Error> {
    let steps = history.ask(window, |window| FollowerSteps::from_first_day(scope, window)).await?;
    let mut levels = FollowerLevels::default();
    for row in &steps {
        levels.followers = sum_known(levels.followers, row.step);
        if row.day < clamp_day(window.start) {
            levels.previous_followers = sum_known(levels.previous_followers, row.step);
        }
        levels.as_of = levels.as_of.max(Some(row.as_of));
    }
    if !history.retains(window.start - Days::new(1)) {
        levels.previous_followers = None;
    }
    levels.as_of = history.clip_observation(levels.as_of);
    Ok(levels)
}

/// Followers of each of `group_count` groups at the end of each day of a window, unknown before their first observation and
/// before retention, and the latest observation by the end.
pub(super) async fn fetch_daily_levels(
    history: &VersionedHistory,
    scope: &SubjectScope,
    group_count: usize,
    window: Window,
) -> Result<(Vec<Vec<Option<i64>>>, Option<DateTime<Utc>>), Error> {
    let mut steps = history.ask(window, |window| FollowerSteps::from_first_day(scope, window)).await?;
    steps.sort_unstable_by_key(|step| step.day);
    let as_of = history.clip_observation(steps.iter().map(|step| step.as_of).max());
    let mut steps = steps.into_iter().peekable();
    let mut current = vec![None; group_count];
    let mut levels = vec![Vec::new(); group_count];
    for date in window.iter_days() {
        while let Some(step) = steps.next_if(|step| step.day <= clamp_day(date)) {
            let level = &mut current[step.group_number as usize];
            *level = sum_known(*level, step.step);
        }
        for (series, level) in levels.iter_mut().zip(&current) {
            series.push(level.filter(|_| history.retains(date)));
        }
    }
    Ok((levels, as_of))
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
pub async fn fetch_latest_observation(
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
