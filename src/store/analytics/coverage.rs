//! How many subjects are expected to be observed on each day, and how many were.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use sqlx::{FromRow, QueryBuilder};
use uuid::Uuid;

use super::reader::VersionedHistory;
use super::rollup::GainsByDay;
use super::scope::{SubjectScope, push_removed_subjects};
use super::subjects;
use crate::model::period::Window;
use crate::store::Error;
use crate::store::postgres::RecordsQuery;

/// How many subjects were observed on a UTC day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CoverageDay {
    /// UTC day.
    pub date: NaiveDate,
    /// Expected subjects with an observation on this day.
    #[schemars(example = 126)]
    pub observed: i64,
    /// Subjects that were added or first observed by this day and are not paused now.
    #[schemars(example = 128)]
    pub expected: i64,
}

/// Every day of a window, ascending, and the latest observation of an expected subject by its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    pub days: Vec<CoverageDay>,
    pub as_of: Option<DateTime<Utc>>,
}

/// The subjects of an organization: its accounts, and its individually tracked videos without account.
#[derive(Debug)]
pub struct CoverageRecords {
    /// Those that are not paused.
    scope: SubjectScope,
    /// The days on which these were added or first observed, whichever was earlier.
    days: Vec<NaiveDate>,
}

#[derive(FromRow)]
struct SubjectsRow {
    subjects: Vec<i64>,
    days: Vec<NaiveDate>,
    are_active: Vec<bool>,
    removed: Vec<i64>,
}

/// Counts the subjects of each day that are not paused now.
pub async fn fetch(
    history: &VersionedHistory,
    CoverageRecords { scope, days }: &CoverageRecords,
    window: Window,
) -> Result<Coverage, Error> {
    // Nothing is expected before retention, because nothing is observed there.
    let first = history.clip_day(window.start);
    let mut added: BTreeMap<NaiveDate, i64> = BTreeMap::new();
    for day in days {
        *added.entry(first.max(*day)).or_default() += 1;
    }
    let rows = history.ask(window, |window| GainsByDay { scope, window }).await?;
    let mut observed: BTreeMap<NaiveDate, i64> = BTreeMap::new();
    for row in &rows {
        *observed.entry(row.day).or_default() += row.observed.cast_signed();
    }
    let latest = rows.iter().map(|row| row.as_of).max();
    let as_of = subjects::latest_observation_or(history, scope, window, latest).await?;
    let mut expected = 0;
    let coverage = window.iter_days().map(|date| {
        expected += added.get(&date).copied().unwrap_or_default();
        CoverageDay { date, observed: observed.get(&date).copied().unwrap_or_default(), expected }
    });
    Ok(Coverage { days: coverage.collect(), as_of })
}

/// Reads the subjects.
pub fn records(organization: Uuid) -> RecordsQuery<CoverageRecords> {
    let mut query = QueryBuilder::new(
        "select coalesce(array_agg(subject_id), '{}') as subjects,
             coalesce(array_agg(least((added_at at time zone 'UTC')::date, tracked_since)), '{}') as days,
             coalesce(array_agg(is_active), '{}') as are_active, ",
    );
    push_removed_subjects(&mut query, organization);
    query.push(
        " as removed from (
             select a.internal_id as subject_id, a.added_at, a.tracked_since,
                 a.is_active and coalesce(c.is_active, true) as is_active
             from accounts a left join creators c on c.id = a.creator_id
             where a.organization_id = ",
    );
    query.push_bind(organization).push(
        " union all
             select subject_id, coalesce(tracked_at, added_at), tracked_since, is_active
             from videos where is_tracked and account_id is null and organization_id = ",
    );
    query.push_bind(organization).push(") subjects");
    RecordsQuery::row(query).map(|row: SubjectsRow| row.into_records())
}

impl SubjectsRow {
    /// The scope has the active subjects by their ids, or as all but the paused ones, whichever are fewer.
    fn into_records(self) -> CoverageRecords {
        let SubjectsRow { subjects, days, are_active, mut removed } = self;
        let days = days.into_iter().zip(&are_active).filter(|(_, is_active)| **is_active);
        let days: Vec<_> = days.map(|(day, _)| day).collect();
        let of = |active: bool| {
            let subjects = subjects.iter().zip(&are_active).filter(move |(_, is)| **is == active);
            subjects.map(|(subject, _)| *subject)
        };
        let scope = if days.len() * 2 <= subjects.len() {
            SubjectScope::from_subjects(of(true).collect())
        } else {
            removed.extend(of(false));
            SubjectScope::without(None, removed)
        };
        CoverageRecords { scope, days }
    }
}
