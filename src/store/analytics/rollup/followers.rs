//! Follower levels: the level at the end of a day is the sum of the steps up to it, unknown without any.

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;

use super::super::rollup_cache::{RollupRows, RollupTotals};
use super::super::scope::{ScopedSql, StatementChunk, SubjectScope};
use super::RollupQuery;
use crate::model::period::{Window, clamp_day};

const SQL: ScopedSql = ScopedSql {
    organization: include_str!("followers_of_organization.sql"),
    subjects: include_str!("followers_of_subjects.sql"),
};

/// Asks for the steps of the follower level of each group on each day with an observation.
pub struct FollowerSteps<'a> {
    pub scope: &'a SubjectScope,
    pub window: Window,
    /// Days before the window, from this one, become one step on the day before it.
    pub first_day: NaiveDate,
}

/// The change of the follower level of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Row, Deserialize)]
pub struct FollowerStep {
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub day: NaiveDate,
    pub group_number: u32,
    /// None while no level is known.
    pub step: Option<i64>,
    /// The latest observation of the day.
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub as_of: DateTime<Utc>,
}

impl<'a> FollowerSteps<'a> {
    /// From the first observation to the end of a window.
    pub fn from_first_day(scope: &'a SubjectScope, window: Window) -> Self {
        FollowerSteps { scope, window, first_day: clamp_day(NaiveDate::MIN) }
    }
}

impl RollupQuery for FollowerSteps<'_> {
    type Row = FollowerStep;

    fn window(&self) -> Window {
        self.window
    }

    fn read_memory(&self, rows: &RollupRows) -> Vec<FollowerStep> {
        let (Window { start, end, .. }, grouping) = (self.window, rows.grouping(self.scope));
        let before = start - Days::new(1);
        let earlier = rows.totals(&grouping, self.first_day, before).into_iter().enumerate();
        let earlier = earlier.map(|(group, totals)| (before, group, totals));
        let step = |(day, group, totals): (NaiveDate, usize, RollupTotals)| {
            let (group_number, step) = (group as u32, totals.follower_step());
            Some(FollowerStep { day, group_number, step, as_of: totals.as_of()? })
        };
        earlier.chain(rows.by_day(&grouping, start, end)).filter_map(step).collect()
    }

    fn statements(&self) -> Vec<StatementChunk<'_>> {
        self.scope.chunks(SQL)
    }

    fn bind(&self, query: Query) -> Query {
        query.param("first_day", self.first_day)
    }
}
