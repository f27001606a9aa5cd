//! One metric by day: reads only its columns, of many subjects on many days.

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::Row;
use clickhouse::query::Query;
use serde::Deserialize;

use super::super::rollup_cache::{RollupRows, RollupTotals};
use super::super::scope::{ListedSubjects, StatementChunk};
use super::RollupQuery;
use crate::model::gains::GainMetric;
use crate::model::period::Window;

/// Asks for the gains in a metric of each group of listed subjects on each day of a window with an observation.
pub struct MetricByDay<'a> {
    pub subjects: &'a ListedSubjects,
    pub metric: GainMetric,
    pub window: Window,
}

/// The gain in a metric of a group on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Row, Deserialize)]
pub struct GroupMetric {
    #[serde(with = "clickhouse::serde::chrono::date")]
    pub day: NaiveDate,
    pub group_number: u32,
    pub gain: i64,
    /// The latest observation of the day.
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    pub as_of: DateTime<Utc>,
}

impl RollupQuery for MetricByDay<'_> {
    type Row = GroupMetric;

    fn window(&self) -> Window {
        self.window
    }

    fn read_memory(&self, rows: &RollupRows) -> Vec<GroupMetric> {
        let Window { start, end, .. } = self.window;
        let group_metric = |(day, group, totals): (NaiveDate, usize, RollupTotals)| {
            let (group_number, gain) = (group as u32, self.metric.of(&totals.gains()));
            Some(GroupMetric { day, group_number, gain, as_of: totals.as_of()? })
        };
        rows.by_day(&rows.grouping_of(self.subjects), start, end).filter_map(group_metric).collect()
    }

    fn statements(&self) -> Vec<StatementChunk<'_>> {
        self.subjects.chunks(match self.metric {
            GainMetric::Engagement => include_str!("engagement_of_subjects.sql"),
            _ => include_str!("metric_of_subjects.sql"),
        })
    }

    fn bind(&self, query: Query) -> Query {
        query.param("gain", self.metric.gain_column())
    }
}
