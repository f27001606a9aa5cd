//! Gains by day.

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::Row;
use serde::Deserialize;

use super::super::rollup_cache::{RollupRows, RollupTotals};
use super::super::scope::{ScopedSql, StatementChunk, SubjectScope};
use super::{RollupQuery, known_gains};
use crate::model::gains::Gains;
use crate::model::period::Window;

const SQL: ScopedSql = ScopedSql {
    organization: include_str!("gains_of_organization.sql"),
    subjects: include_str!("gains_of_subjects.sql"),
};

/// Asks for the gains of each group on each day of a window with an observation.
pub struct GainsByDay<'a> {
    pub scope: &'a SubjectScope,
    pub window: Window,
}

/// Gains of a group on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Row, Deserialize)]
pub struct GroupGains {
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub day: NaiveDate,
    pub group_number: u32,
    #[serde(deserialize_with = "known_gains")]
    pub gains: Gains,
    /// Followers gained.
    pub followers: i64,
    /// Number of subjects observed on the day.
    pub observed: u64,
    /// The latest observation of the day.
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub as_of: DateTime<Utc>,
}

impl RollupQuery for GainsByDay<'_> {
    type Row = GroupGains;

    fn window(&self) -> Window {
        self.window
    }

    fn read_memory(&self, rows: &RollupRows) -> Vec<GroupGains> {
        let Window { start, end, .. } = self.window;
        let group_gains = |(day, group_number, totals): (NaiveDate, usize, RollupTotals)| {
            Some(GroupGains {
                day,
                group_number: group_number as u32,
                gains: totals.gains(),
                followers: totals.follower_gain(),
                observed: totals.observed,
                as_of: totals.as_of()?,
            })
        };
        rows.by_day(&rows.grouping(self.scope), start, end).filter_map(group_gains).collect()
    }

    fn statements(&self) -> Vec<StatementChunk<'_>> {
        self.scope.chunks(SQL)
    }
}
