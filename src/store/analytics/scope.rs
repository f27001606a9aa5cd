//! Which subjects a query over the rollup covers, and the statement for them.
//!
//! A query has one `.sql` file per kind of scope, because ClickHouse takes half a millisecond to evaluate a condition that
//! is always true. A parameter of its HTTP interface holds 128 KiB, so long lists are split into chunks without common
//! subjects. The parameters: `org`, `start` and `end` (both inclusive), and of the scope
//!
//! - `subjects`: accounts (internal ids) and individually tracked videos (subject ids)
//! - `removed`: subjects that are deleted in Postgres and maybe not yet in ClickHouse, all of them from `first` to `last`
//! - `platform`: instagram or tiktok

use std::collections::HashSet;

use clickhouse::query::Query;
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::accounts::AccountFilter;
use super::rollup_cache::{RollupRows, Selection};
use crate::model::period::{Window, clamp_day};
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::postgres::RecordsQuery;

/// An id has at most 19 digits, and a comma.
const MAX_IDS_PER_PARAMETER: usize = 6_000;

/// The statements of a query over an organization.
pub(super) struct OrganizationSql {
    pub all: &'static str,
    pub platform: &'static str,
    pub all_without_removed: &'static str,
    pub platform_without_removed: &'static str,
}

/// The statements of a query over an organization or over some subjects.
pub(super) struct ScopedSql {
    pub organization: OrganizationSql,
    pub subjects: &'static str,
}

/// The statements in a folder.
macro_rules! organization_sql {
    ($folder:literal) => {
        $crate::store::analytics::scope::OrganizationSql {
            all: include_str!(concat!($folder, "/organization.sql")),
            platform: include_str!(concat!($folder, "/platform.sql")),
            all_without_removed: include_str!(concat!($folder, "/organization_without_removed.sql")),
            platform_without_removed: include_str!(concat!($folder, "/platform_without_removed.sql")),
        }
    };
}
pub(super) use organization_sql;

/// All subjects of an organization, on one platform or all.
#[derive(Debug, Clone)]
pub struct OrganizationScope {
    platform: Option<Platform>,
    /// Ascending.
    removed: Vec<i64>,
}

/// Subjects of one organization.
#[derive(Debug, Clone)]
pub enum SubjectScope {
    Organization(OrganizationScope),
    Subjects(Vec<i64>),
}

/// One statement of a query.
pub(super) struct StatementChunk<'a> {
    pub sql: &'static str,
    filter: Filter<'a>,
    platform: Option<Platform>,
}

#[derive(Debug, PartialEq, Eq)]
enum Filter<'a> {
    All,
    Subjects(&'a [i64]),
    Without { removed: &'a [i64], first: i64, last: i64 },
}

/// The subjects of an organization that queries must exclude.
pub async fn fetch_removed_subjects(pg: &PgPool, organization: Uuid) -> Result<Vec<i64>, Error> {
    let mut query = QueryBuilder::new("select ");
    push_removed_subjects(&mut query, organization);
    Ok(query.build_query_scalar().fetch_one(pg).await?)
}

/// Pushes an expression, the array of the subjects that queries must exclude.
pub(super) fn push_removed_subjects(query: &mut QueryBuilder<Postgres>, organization: Uuid) {
    query.push("array(select subject_id from removed_subjects where organization_id = ");
    query.push_bind(organization).push(" and delivery is null)");
}

/// The columns of [`push_scope`].
#[derive(FromRow)]
pub(super) struct ScopeRow {
    /// The accounts that match, if the filter is limited to accounts.
    subjects: Vec<i64>,
    removed: Vec<i64>,
    has_account: bool,
    has_creator: bool,
}

/// Pushes the columns that a scope is made of to the select list of a query.
pub(super) fn push_scope(query: &mut QueryBuilder<Postgres>, organization: Uuid, filter: &AccountFilter) {
    if filter.is_limited_to_accounts() {
        query.push("array(select a.internal_id from accounts a where a.organization_id = ");
        query.push_bind(organization);
        filter.push_to(query);
        query.push(") as subjects, '{}'::bigint[] as removed");
    } else {
        query.push("'{}'::bigint[] as subjects, ");
        push_removed_subjects(query, organization);
        query.push(" as removed");
    }
    filter.push_existence(query, organization);
}

/// Finds the internal ids of the accounts that match. Fails if the organization lacks the account or the creator.
pub fn find_subjects(organization: Uuid, filter: &AccountFilter) -> RecordsQuery<Vec<i64>> {
    let mut query = QueryBuilder::new("select ");
    push_scope(&mut query, organization, filter);
    RecordsQuery::row(query).and_then(|row: ScopeRow| {
        row.require_parents()?;
        Ok(row.subjects)
    })
}

impl ScopeRow {
    /// Fails if the organization lacks the account or the creator to filter by.
    fn require_parents(&self) -> Result<(), Error> {
        match (self.has_account, self.has_creator) {
            (false, _) => Err(Error::NotFound("account")),
            (true, false) => Err(Error::NotFound("creator")),
            (true, true) => Ok(()),
        }
    }

    pub fn into_scope(self, filter: &AccountFilter) -> Result<SubjectScope, Error> {
        self.require_parents()?;
        if filter.is_limited_to_accounts() {
            return Ok(SubjectScope::Subjects(self.subjects));
        }
        Ok(SubjectScope::Organization(OrganizationScope::without(filter.platform, self.removed)))
    }
}

impl OrganizationScope {
    /// All subjects, on one platform or all, except some.
    pub(super) fn without(platform: Option<Platform>, mut removed: Vec<i64>) -> Self {
        removed.sort_unstable();
        removed.dedup();
        OrganizationScope { platform, removed }
    }

    pub(super) fn chunks(&self, sql: &OrganizationSql) -> Vec<StatementChunk<'_>> {
        let OrganizationScope { platform, removed } = self;
        let (all, without_removed) = match platform {
            None => (sql.all, sql.all_without_removed),
            Some(_) => (sql.platform, sql.platform_without_removed),
        };
        let chunk = |sql, filter| StatementChunk { sql, filter, platform: *platform };
        if removed.is_empty() {
            return vec![chunk(all, Filter::All)];
        }
        let starts = (0..removed.len()).step_by(MAX_IDS_PER_PARAMETER);
        starts
            .map(|start| {
                let end = removed.len().min(start + MAX_IDS_PER_PARAMETER);
                let filter = Filter::Without {
                    removed: &removed[start..end],
                    first: if start == 0 { 0 } else { removed[start] },
                    last: removed.get(end).map_or(i64::MAX, |next| next - 1),
                };
                chunk(without_removed, filter)
            })
            .collect()
    }
}

impl SubjectScope {
    /// Finds the accounts that match, and unless the filter is limited to accounts, individually tracked videos. Fails if the
    /// organization lacks the account or the creator.
    pub fn find(organization: Uuid, filter: &AccountFilter) -> RecordsQuery<Self> {
        let mut query = QueryBuilder::new("select ");
        push_scope(&mut query, organization, filter);
        let filter = filter.clone();
        RecordsQuery::row(query).and_then(move |row: ScopeRow| row.into_scope(&filter))
    }

    /// Selects its subjects as one group.
    pub(super) fn select(&self, rows: &RollupRows) -> Selection {
        match self {
            SubjectScope::Organization(OrganizationScope { platform, removed }) => {
                rows.select(*platform, 1, |_, id| removed.binary_search(&id).is_err().then_some(0))
            }
            SubjectScope::Subjects(ids) => {
                let ids: HashSet<_> = ids.iter().copied().collect();
                rows.select(None, 1, |_, id| ids.contains(&id).then_some(0))
            }
        }
    }

    pub(super) fn chunks(&self, sql: &ScopedSql) -> Vec<StatementChunk<'_>> {
        match self {
            SubjectScope::Organization(scope) => scope.chunks(&sql.organization),
            SubjectScope::Subjects(ids) => subject_chunks(sql.subjects, ids),
        }
    }
}

/// The chunks of a statement over some subjects; none without any.
pub(super) fn subject_chunks<'a>(sql: &'static str, ids: &'a [i64]) -> Vec<StatementChunk<'a>> {
    let chunk = |ids| StatementChunk { sql, filter: Filter::Subjects(ids), platform: None };
    ids.chunks(MAX_IDS_PER_PARAMETER).map(chunk).collect()
}

impl StatementChunk<'_> {
    /// The number of subjects that it names.
    pub const fn subject_count(&self) -> usize {
        match self.filter {
            Filter::Subjects(ids) => ids.len(),
            Filter::All | Filter::Without { .. } => 0,
        }
    }

    /// Binds the parameters of the scope and the window.
    pub fn bind(&self, query: Query, window: Window) -> Query {
        let query = query.param("start", clamp_day(window.start)).param("end", clamp_day(window.end));
        let query = match self.filter {
            Filter::All => query,
            Filter::Subjects(ids) => query.param("subjects", ids),
            Filter::Without { removed, first, last } => {
                query.param("removed", removed).param("first", first).param("last", last)
            }
        };
        match self.platform {
            Some(platform) => query.param("platform", platform.as_str()),
            None => query,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQL: OrganizationSql = OrganizationSql {
        all: "a",
        platform: "p",
        all_without_removed: "ar",
        platform_without_removed: "pr",
    };

    fn ids(count: i64) -> Vec<i64> {
        (1..=count).map(|id| id * 10).collect()
    }

    #[test]
    fn long_lists_are_split_without_common_subjects() {
        let chunks = |removed: &[i64]| -> Vec<(usize, i64, i64)> {
            let removed = removed.to_vec();
            let scope = OrganizationScope { platform: None, removed };
            let range = |chunk: &StatementChunk<'_>| match chunk.filter {
                Filter::Without { removed, first, last } => (removed.len(), first, last),
                _ => panic!("{:?}", chunk.filter),
            };
            scope.chunks(&SQL).iter().map(range).collect()
        };
        assert_eq!(chunks(&ids(6_000)), [(6_000, 0, i64::MAX)]);
        assert_eq!(
            chunks(&ids(12_001)),
            [(6_000, 0, 60_009), (6_000, 60_010, 120_009), (1, 120_010, i64::MAX)]
        );
        let lengths = |count| -> Vec<usize> {
            let ids = ids(count);
            let length = |chunk: &StatementChunk<'_>| match chunk.filter {
                Filter::Subjects(ids) => ids.len(),
                _ => panic!("{:?}", chunk.filter),
            };
            subject_chunks("s", &ids).iter().map(length).collect()
        };
        assert_eq!(lengths(0), [0; 0]);
        assert_eq!(lengths(6_001), [6_000, 1]);
        const { assert!(MAX_IDS_PER_PARAMETER * 20 < 128 << 10) };
    }

    #[test]
    fn scope_selects_the_statement() {
        let statement = |platform, removed: &[i64]| {
            let removed = removed.to_vec();
            OrganizationScope { platform, removed }.chunks(&SQL)[0].sql
        };
        assert_eq!(statement(None, &[]), "a");
        assert_eq!(statement(Some(Platform::Tiktok), &[]), "p");
        assert_eq!(statement(None, &[7]), "ar");
        assert_eq!(statement(Some(Platform::Tiktok), &[7]), "pr");
    }
}
