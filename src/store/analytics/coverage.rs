//! How many subjects are expected to be observed on each day, and how many were.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use clickhouse::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use super::reader::HistoryReader;
use super::scope::{OrganizationScope, OrganizationSql, ScopedSql, SubjectScope};
use super::subjects;
use crate::model::period::Window;
use crate::store::Error;

const ALL: &str = include_str!("coverage/organization.sql");
const WITHOUT_SOME: &str = include_str!("coverage/organization_without_removed.sql");
/// Of all platforms only.
const OBSERVED_SQL: ScopedSql = ScopedSql {
    organization: OrganizationSql {
        all: ALL,
        platform: ALL,
        all_without_removed: WITHOUT_SOME,
        platform_without_removed: WITHOUT_SOME,
    },
    subjects: include_str!("coverage/subjects.sql"),
};

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

/// The subjects that were added or first observed on a day, whichever was earlier; on the first day of a window, also those
/// of earlier days.
#[derive(sqlx::FromRow)]
struct SubjectsSince {
    day: NaiveDate,
    active: Vec<i64>,
    paused: Vec<i64>,
}

#[derive(Row, Deserialize)]
struct ObservedRow {
    #[serde(with = "clickhouse::serde::chrono::date")]
    date: NaiveDate,
    observed: u64,
    #[serde(with = "clickhouse::serde::chrono::datetime64::micros")]
    as_of: DateTime<Utc>,
}

/// Counts the subjects of each day that are not paused now.
pub async fn fetch(
    pg: &PgPool,
    history: &HistoryReader,
    organization: Uuid,
    window: Window,
) -> Result<Coverage, Error> {
    let subjects = fetch_subjects(pg, organization, window.start).await?;
    let added: BTreeMap<_, _> = subjects.iter().map(|since| (since.day, since.active.len() as i64)).collect();
    let scope = scope(pg, organization, subjects).await?;
    let rows: Vec<ObservedRow> =
        history.fetch_parts(organization, scope.parts(&OBSERVED_SQL), window).await?;
    let mut observed: BTreeMap<NaiveDate, i64> = BTreeMap::new();
    for row in &rows {
        *observed.entry(row.date).or_default() += row.observed.cast_signed();
    }
    let latest = rows.iter().map(|row| row.as_of).max();
    let as_of = subjects::resolve_as_of(history, &scope, window, latest).await?;
    let mut expected = 0;
    let days = window.iter_days().map(|date| {
        expected += added.get(&date).copied().unwrap_or_default();
        CoverageDay { date, observed: observed.get(&date).copied().unwrap_or_default(), expected }
    });
    Ok(Coverage { days: days.collect(), as_of })
}

/// Reads all subjects of an organization: its accounts, and its individually tracked videos without account.
async fn fetch_subjects(
    pg: &PgPool,
    organization: Uuid,
    start: NaiveDate,
) -> Result<Vec<SubjectsSince>, Error> {
    let subjects = sqlx::query_as(
        "select greatest(least((added_at at time zone 'UTC')::date, tracked_since), $2) as day,
            coalesce(array_agg(subject_id) filter (where is_active), '{}') as active,
            coalesce(array_agg(subject_id) filter (where not is_active), '{}') as paused
         from (
            select a.internal_id as subject_id, a.added_at, a.tracked_since,
                a.is_active and coalesce(c.is_active, true) as is_active
            from accounts a left join creators c on c.id = a.creator_id
            where a.organization_id = $1
            union all
            select subject_id, coalesce(tracked_at, added_at), tracked_since, is_active
            from videos where organization_id = $1 and is_tracked and account_id is null
         ) subjects
         group by 1",
    )
    .bind(organization)
    .bind(start)
    .fetch_all(pg)
    .await?;
    Ok(subjects)
}

/// The subjects that are not paused: by their ids, or as all but the paused ones, whichever are fewer.
async fn scope(pg: &PgPool, organization: Uuid, subjects: Vec<SubjectsSince>) -> Result<SubjectScope, Error> {
    let (mut active, mut paused) = (Vec::new(), Vec::new());
    for since in subjects {
        active.extend(since.active);
        paused.extend(since.paused);
    }
    if active.len() <= paused.len() {
        return Ok(SubjectScope::for_subjects(organization, active));
    }
    Ok(SubjectScope::Organization(OrganizationScope::fetch_without(pg, organization, paused).await?))
}
