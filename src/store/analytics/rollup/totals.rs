//! Gains by subject, in a window and before it.

use chrono::{DateTime, Days, NaiveDate, Utc};
use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;

use super::super::rollup_cache::{RollupRows, RollupTotals};
use super::super::scope::{ScopedSql, StatementChunk, SubjectScope};
use super::{RollupQuery, known_gains};
use crate::model::gains::{AccountGains, Gains};
use crate::model::period::Window;

const SQL: ScopedSql = ScopedSql {
    organization: include_str!("totals_of_organization.sql"),
    subjects: include_str!("totals_of_subjects.sql"),
};

/// Asks for the gains of each subject, whatever its group, on the days from `current` to the end of the window and on those of
/// the window before `current`, if it was observed then.
pub struct TotalsBySubject<'a> {
    pub scope: &'a SubjectScope,
    pub window: Window,
    pub current: NaiveDate,
}

/// Gains of a subject before a day or from it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Row, Deserialize)]
pub struct SubjectGains {
    pub subject_id: u64,
    /// 1 from the day on, 0 before it.
    pub is_current: u8,
    #[serde(deserialize_with = "known_gains")]
    gains: Gains,
    followers: Option<i64>,
    /// The latest observation of these days.
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub as_of: DateTime<Utc>,
}

impl SubjectGains {
    pub fn gains(&self) -> AccountGains {
        AccountGains { gains: self.gains, followers: self.followers.unwrap_or_default() }
    }
}

impl RollupQuery for TotalsBySubject<'_> {
    type Row = SubjectGains;

    fn window(&self) -> Window {
        self.window
    }

    fn read_memory(&self, rows: &RollupRows) -> Vec<SubjectGains> {
        let (Window { start, end, .. }, grouping) = (self.window, rows.grouping_by_subject(self.scope));
        let halves = [(0, start, end.min(self.current - Days::new(1))), (1, self.current.max(start), end)];
        let subject_gains = |is_current: u8, (subject, totals): (&i64, RollupTotals)| {
            Some(SubjectGains {
                subject_id: subject.cast_unsigned(),
                is_current,
                gains: totals.gains(),
                followers: Some(totals.follower_gain()),
                as_of: totals.as_of()?,
            })
        };
        let rows_of = |(is_current, first, last)| {
            let totals = rows.subjects().iter().zip(rows.totals(&grouping, first, last));
            totals.filter_map(move |totals| subject_gains(is_current, totals))
        };
        halves.into_iter().flat_map(rows_of).collect()
    }

    fn statements(&self) -> Vec<StatementChunk<'_>> {
        self.scope.chunks(SQL)
    }

    fn bind(&self, query: Query) -> Query {
        query.param("current", self.current)
    }
}
