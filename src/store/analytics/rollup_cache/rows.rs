//! The rollup of an organization in memory: 40 bytes for each subject and day, and more for figures that 32 bits do not hold.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use clickhouse::Row;
use serde::Deserialize;

use super::super::scope::{ListedSubjects, SubjectScope};
use crate::model::gains::Gains;
use crate::model::platform::Platform;

/// Gains of views, plays, likes, comments, shares and followers; 0 if never reported.
type RowGains<T> = [T; 6];

/// A row of `account_daily`.
#[derive(Row, Deserialize)]
pub(super) struct StoredRow {
    #[serde(with = "clickhouse::serde::chrono::date")]
    date: NaiveDate,
    subject_id: u64,
    /// 0 = Instagram, 1 = TikTok, 2 = unknown.
    platform: u8,
    observed_micros: i64,
    gains: (i64, i64, i64, i64, i64, i64),
    /// Change of the follower level; null before the first observation.
    follower_step: Option<i64>,
    pub version: u64,
    is_deleted: u8,
}

/// Gains, and the change of the follower level, 0 if unknown.
type Figures<T> = (RowGains<T>, T);

/// One subject on one day.
#[derive(Clone, Copy)]
struct CompactRow {
    /// Position in [`RollupRows::subjects`].
    subject: u32,
    /// 0 if the row is large.
    figures: Figures<i32>,
    /// Microseconds since the beginning of the day, 40 bits.
    micros_low: u32,
    micros_high: u8,
    platform: u8,
    has_followers: bool,
    /// Whether its figures are in [`Day::large`].
    is_large: bool,
}

#[derive(Default)]
struct Day {
    /// By subject.
    rows: Vec<CompactRow>,
    /// Figures of which one needs more than 32 bits, by subject.
    large: HashMap<u32, Figures<i64>>,
}

/// The rows of an organization.
#[derive(Default)]
pub struct RollupRows {
    days: BTreeMap<NaiveDate, Day>,
    subjects: Vec<i64>,
    indexes: HashMap<i64, u32>,
}

/// Which rows are added up, in groups.
pub struct Grouping {
    /// The group of each subject, by its position.
    groups: Vec<Option<u32>>,
    platform: Option<Platform>,
    /// The platforms are the groups, in the order of [`Platform::ALL`].
    by_platform: bool,
    group_count: usize,
}

/// Sums of rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct RollupTotals {
    gains: RowGains<i64>,
    follower_steps: i64,
    has_followers: bool,
    latest_micros: i64,
    /// Number of rows.
    pub observed: u64,
}

/// The beginning of a day in microseconds.
fn day_micros(day: NaiveDate) -> i64 {
    day.and_time(NaiveTime::MIN).and_utc().timestamp_micros()
}

impl CompactRow {
    fn new(subject: u32, row: &StoredRow, figures: Option<Figures<i32>>) -> Self {
        let micros = row.observed_micros - day_micros(row.date);
        CompactRow {
            subject,
            figures: figures.unwrap_or_default(),
            micros_low: micros as u32,
            micros_high: (micros >> 32) as u8,
            platform: row.platform,
            has_followers: row.follower_step.is_some(),
            is_large: figures.is_none(),
        }
    }
}

impl StoredRow {
    fn figures(&self) -> Figures<i64> {
        let (views, plays, likes, comments, shares, followers) = self.gains;
        ([views, plays, likes, comments, shares, followers], self.follower_step.unwrap_or_default())
    }
}

/// The figures in 32 bits, if all of them fit.
fn compact((gains, follower_step): Figures<i64>) -> Option<Figures<i32>> {
    let mut compact = [0; 6];
    for (small, gain) in compact.iter_mut().zip(gains) {
        *small = i32::try_from(gain).ok()?;
    }
    Some((compact, i32::try_from(follower_step).ok()?))
}

impl Day {
    /// Replaces or removes the row of a subject.
    fn apply(&mut self, subject: u32, row: &StoredRow) {
        let position = self.rows.binary_search_by_key(&subject, |existing| existing.subject);
        self.large.remove(&subject);
        if row.is_deleted == 1 {
            if let Ok(position) = position {
                self.rows.remove(position);
            }
            return;
        }
        let compact = compact(row.figures());
        if compact.is_none() {
            self.large.insert(subject, row.figures());
        }
        let row = CompactRow::new(subject, row, compact);
        match position {
            Ok(position) => self.rows[position] = row,
            Err(position) => self.rows.insert(position, row),
        }
    }

    fn figures(&self, row: &CompactRow) -> Figures<i64> {
        if row.is_large {
            return self.large[&row.subject];
        }
        let (gains, follower_step) = row.figures;
        (gains.map(i64::from), i64::from(follower_step))
    }
}

impl RollupRows {
    pub(super) const ROW_BYTES: u64 = size_of::<CompactRow>() as u64;

    /// Replaces or removes the row of a subject and day.
    pub(super) fn apply(&mut self, row: &StoredRow) {
        let id = row.subject_id.cast_signed();
        let subject = *self.indexes.entry(id).or_insert_with(|| {
            self.subjects.push(id);
            self.subjects.len() as u32 - 1
        });
        self.days.entry(row.date).or_default().apply(subject, row);
    }

    /// Returns unused memory.
    pub(super) fn shrink(&mut self) {
        self.days.values_mut().for_each(|day| day.rows.shrink_to_fit());
    }

    pub(super) fn len(&self) -> u64 {
        self.days.values().map(|day| day.rows.len() as u64).sum()
    }

    /// The memory in use, with an allowance for the tables of days, subjects and large rows.
    pub(super) fn bytes(&self) -> u64 {
        let rows: usize = self.days.values().map(|day| day.rows.capacity() + 2 * day.large.capacity()).sum();
        rows as u64 * Self::ROW_BYTES + 96 * self.days.len() as u64 + 48 * self.subjects.len() as u64
    }

    pub fn subjects(&self) -> &[i64] {
        &self.subjects
    }

    /// Groups the rows of a scope.
    pub fn grouping(&self, scope: &SubjectScope) -> Grouping {
        match scope {
            SubjectScope::Organization { platform, removed } => Grouping {
                groups: self.groups(|id| removed.binary_search(&id).is_err().then_some(0)),
                platform: *platform,
                by_platform: true,
                group_count: Platform::ALL.len(),
            },
            SubjectScope::Listed(subjects) => self.grouping_of(subjects),
        }
    }

    /// Groups the rows of listed subjects.
    pub fn grouping_of(&self, ListedSubjects { ids, groups }: &ListedSubjects) -> Grouping {
        let group_count = groups.iter().max().map_or(0, |group| *group as usize + 1);
        let numbers: HashMap<i64, u32> = ids.iter().copied().zip(groups.iter().copied()).collect();
        Grouping {
            groups: self.groups(|id| numbers.get(&id).copied()),
            platform: None,
            by_platform: false,
            group_count,
        }
    }

    /// Groups the rows of a scope by subject: the groups are positions in [`RollupRows::subjects`].
    pub fn grouping_by_subject(&self, scope: &SubjectScope) -> Grouping {
        let mut grouping = self.grouping(scope);
        let positions = grouping.groups.iter_mut().zip(0..);
        positions.for_each(|(group, position)| *group = group.map(|_| position));
        Grouping { by_platform: false, group_count: self.subjects.len(), ..grouping }
    }

    fn groups(&self, group: impl Fn(i64) -> Option<u32>) -> Vec<Option<u32>> {
        self.subjects.iter().map(|id| group(*id)).collect()
    }

    /// Adds up days, both inclusive, by group.
    pub fn totals(&self, grouping: &Grouping, first: NaiveDate, last: NaiveDate) -> Vec<RollupTotals> {
        let mut totals = vec![RollupTotals::default(); grouping.group_count];
        if first <= last {
            self.days.range(first..=last).for_each(|(date, day)| grouping.add_up(*date, day, &mut totals));
        }
        totals
    }

    /// The totals of each day and group, ascending.
    pub fn by_day(
        &self,
        grouping: &Grouping,
        first: NaiveDate,
        last: NaiveDate,
    ) -> impl Iterator<Item = (NaiveDate, usize, RollupTotals)> {
        let days = self.days.range(first..=last.max(first)).take_while(move |(day, _)| **day <= last);
        days.flat_map(move |(day, _)| {
            let totals = self.totals(grouping, *day, *day).into_iter().enumerate();
            totals.map(|(group, totals)| (*day, group, totals))
        })
    }
}

impl Grouping {
    fn add_up(&self, date: NaiveDate, day: &Day, totals: &mut [RollupTotals]) {
        let (beginning, platform) = (day_micros(date), self.platform.map(|platform| platform as u8));
        for row in &day.rows {
            let Some(group) = self.groups[row.subject as usize] else { continue };
            if platform.is_some_and(|platform| platform != row.platform) {
                continue;
            }
            // Rows of no known platform belong to the first.
            let is_tiktok = row.platform == Platform::Tiktok as u8;
            let group = if self.by_platform { usize::from(is_tiktok) } else { group as usize };
            totals[group].add(row, day.figures(row), beginning);
        }
    }
}

impl RollupTotals {
    fn add(&mut self, row: &CompactRow, (gains, follower_step): Figures<i64>, day_micros: i64) {
        for (total, gain) in self.gains.iter_mut().zip(gains) {
            *total += gain;
        }
        self.follower_steps += follower_step;
        self.has_followers |= row.has_followers;
        let micros = i64::from(row.micros_high) << 32 | i64::from(row.micros_low);
        self.latest_micros = self.latest_micros.max(day_micros + micros);
        self.observed += 1;
    }

    pub const fn gains(&self) -> Gains {
        let [views, plays, likes, comments, shares, _] = self.gains;
        Gains::new(views, plays, likes, comments, shares)
    }

    pub const fn follower_gain(&self) -> i64 {
        self.gains[5]
    }

    /// The change of the follower level; None while it is unknown.
    pub fn follower_step(&self) -> Option<i64> {
        self.has_followers.then_some(self.follower_steps)
    }

    /// The latest observation; None without any.
    pub fn as_of(&self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp_micros(self.latest_micros).filter(|_| self.observed > 0)
    }
}
