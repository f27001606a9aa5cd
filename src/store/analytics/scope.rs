//! Which subjects a query of history covers, and the statements for them.
//!
//! A query has one `.sql` file for an organization and one for listed subjects, which ClickHouse reads less of. A parameter of
//! its HTTP interface holds 128 KiB, so long lists are split into statements without common subjects. Their parameters:
//!
//! - `subjects`: accounts (internal ids) and individually tracked videos (subject ids); `groups`: the group of each
//! - `platform`: instagram or tiktok, empty for both
//! - `removed`: subjects that are deleted in Postgres and maybe not yet in ClickHouse, all of them from `first` to `last`

use std::ops::Range;

use clickhouse::query::Query;
use sqlx::{FromRow, PgPool, Postgres, QueryBuilder};
use uuid::Uuid;

use super::accounts::SubjectFilter;
use crate::model::platform::Platform;
use crate::store::Error;
use crate::store::postgres::RecordsQuery;

/// An id has at most 19 digits, and a comma.
const MAX_IDS_PER_PARAMETER: usize = 6_000;

/// The statements of a query.
#[derive(Clone, Copy)]
pub(super) struct ScopedSql {
    pub organization: &'static str,
    pub subjects: &'static str,
}

/// Subjects of one organization, in groups.
#[derive(Debug, Clone)]
pub enum SubjectScope {
    /// All on a platform, or on all, except some, in ascending order. The platforms are the groups, in the order of
    /// [`Platform::ALL`].
    Organization {
        platform: Option<Platform>,
        removed: Vec<i64>,
    },
    Listed(ListedSubjects),
}

/// Some subjects, with the number of the group of each.
#[derive(Debug, Clone, Default)]
pub struct ListedSubjects {
    pub(super) ids: Vec<i64>,
    pub(super) groups: Vec<u32>,
}

/// One statement of a query.
pub struct StatementChunk<'a> {
    pub sql: &'static str,
    filter: Filter<'a>,
}

#[derive(Debug, PartialEq, Eq)]
enum Filter<'a> {
    Organization { platform: Option<Platform>, removed: &'a [i64], first: i64, last: i64 },
    Listed { ids: &'a [i64], groups: &'a [u32] },
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
    instagram: Vec<i64>,
    tiktok: Vec<i64>,
    removed: Vec<i64>,
    has_account: bool,
    has_creator: bool,
}

/// Pushes the columns that a scope is made of to the select list of a query.
pub(super) fn push_scope(query: &mut QueryBuilder<Postgres>, organization: Uuid, filter: &SubjectFilter) {
    for platform in Platform::ALL {
        if filter.is_limited_to_accounts() {
            query.push("array(select a.internal_id from accounts a where a.organization_id = ");
            query.push_bind(organization).push(" and a.platform = ").push_bind(platform);
            filter.push_to(query);
            query.push(")");
        } else {
            query.push("'{}'::bigint[]");
        }
        query.push(format_args!(" as {}, ", platform.as_str()));
    }
    if filter.is_limited_to_accounts() {
        query.push("'{}'::bigint[]");
    } else {
        push_removed_subjects(query, organization);
    }
    query.push(" as removed");
    filter.push_existence(query, organization);
}

/// Finds the internal ids of the accounts that match. Fails if the organization lacks the account or the creator.
pub fn find_subjects(organization: Uuid, filter: &SubjectFilter) -> RecordsQuery<Vec<i64>> {
    let mut query = QueryBuilder::new("select ");
    push_scope(&mut query, organization, filter);
    RecordsQuery::row(query).and_then(|row: ScopeRow| {
        row.require_parents()?;
        Ok([row.instagram, row.tiktok].concat())
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

    /// The groups are the platforms.
    pub fn into_scope(self, filter: &SubjectFilter) -> Result<SubjectScope, Error> {
        self.require_parents()?;
        Ok(if filter.is_limited_to_accounts() {
            SubjectScope::Listed(ListedSubjects::from_groups([&self.instagram[..], &self.tiktok]))
        } else {
            SubjectScope::without(filter.platform, self.removed)
        })
    }
}

impl SubjectScope {
    /// Finds the accounts that match, and unless the filter is limited to accounts, individually tracked videos, by platform.
    /// Fails if the organization lacks the account or the creator.
    pub fn find(organization: Uuid, filter: &SubjectFilter) -> RecordsQuery<Self> {
        let mut query = QueryBuilder::new("select ");
        push_scope(&mut query, organization, filter);
        let filter = filter.clone();
        RecordsQuery::row(query).and_then(move |row: ScopeRow| row.into_scope(&filter))
    }

    /// All subjects, on one platform or all, except some.
    pub fn without(platform: Option<Platform>, mut removed: Vec<i64>) -> Self {
        removed.sort_unstable();
        removed.dedup();
        SubjectScope::Organization { platform, removed }
    }

    /// Subjects in one group.
    pub fn from_subjects(ids: Vec<i64>) -> Self {
        let groups = vec![0; ids.len()];
        SubjectScope::Listed(ListedSubjects { ids, groups })
    }

    pub(super) fn chunks(&self, sql: ScopedSql) -> Vec<StatementChunk<'_>> {
        let (platform, removed) = match self {
            SubjectScope::Organization { platform, removed } => (*platform, removed),
            SubjectScope::Listed(subjects) => return subjects.chunks(sql.subjects),
        };
        let chunk = |range: Range<usize>| {
            let first = if range.start == 0 { 0 } else { removed[range.start] };
            let last = removed.get(range.end).map_or(i64::MAX, |next| next - 1);
            let filter = Filter::Organization { platform, removed: &removed[range], first, last };
            StatementChunk { sql: sql.organization, filter }
        };
        ranges(removed.len().max(1), removed.len()).map(chunk).collect()
    }
}

impl ListedSubjects {
    /// The subjects of each group.
    pub fn from_groups<'a>(grouped: impl IntoIterator<Item = &'a [i64]>) -> Self {
        let numbered = grouped.into_iter().zip(0..);
        let (ids, groups) = numbered.flat_map(|(ids, group)| ids.iter().map(move |id| (*id, group))).unzip();
        ListedSubjects { ids, groups }
    }

    pub(super) fn chunks(&self, sql: &'static str) -> Vec<StatementChunk<'_>> {
        let chunk = |range: Range<usize>| {
            let filter = Filter::Listed { ids: &self.ids[range.clone()], groups: &self.groups[range] };
            StatementChunk { sql, filter }
        };
        ranges(self.ids.len(), self.ids.len()).map(chunk).collect()
    }
}

/// Divides `count` positions, and limits their ends.
fn ranges(count: usize, end: usize) -> impl Iterator<Item = Range<usize>> {
    let starts = (0..count).step_by(MAX_IDS_PER_PARAMETER);
    starts.map(move |start| start..end.min(start + MAX_IDS_PER_PARAMETER))
}

impl StatementChunk<'_> {
    /// Binds the parameters of the scope.
    pub fn bind(&self, query: Query) -> Query {
        match self.filter {
            Filter::Listed { ids, groups } => query.param("subjects", ids).param("groups", groups),
            Filter::Organization { platform, removed, first, last } => query
                .param("platform", platform.map_or("", |platform| platform.as_str()))
                .param("removed", removed)
                .param("first", first)
                .param("last", last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQL: ScopedSql = ScopedSql { organization: "o", subjects: "s" };

    fn ids(count: i64) -> Vec<i64> {
        (1..=count).map(|id| id * 10).collect()
    }

    #[test]
    fn long_lists_are_split_without_common_subjects() {
        let chunks = |excluded: Vec<i64>| -> Vec<(usize, i64, i64)> {
            let scope = SubjectScope::without(None, excluded);
            let range = |chunk: &StatementChunk<'_>| match chunk.filter {
                Filter::Organization { removed, first, last, .. } => (removed.len(), first, last),
                Filter::Listed { .. } => panic!("{:?}", chunk.filter),
            };
            scope.chunks(SQL).iter().map(range).collect()
        };
        assert_eq!(chunks(Vec::new()), [(0, 0, i64::MAX)]);
        assert_eq!(chunks(ids(6_000)), [(6_000, 0, i64::MAX)]);
        assert_eq!(
            chunks(ids(12_001)),
            [(6_000, 0, 60_009), (6_000, 60_010, 120_009), (1, 120_010, i64::MAX)]
        );
        let lengths = |count| -> Vec<(usize, usize)> {
            let scope = SubjectScope::from_subjects(ids(count));
            let length = |chunk: &StatementChunk<'_>| match chunk.filter {
                Filter::Listed { ids, groups } => (ids.len(), groups.len()),
                Filter::Organization { .. } => panic!("{:?}", chunk.filter),
            };
            scope.chunks(SQL).iter().map(length).collect()
        };
        assert_eq!(lengths(0), []);
        assert_eq!(lengths(6_001), [(6_000, 6_000), (1, 1)]);
        const { assert!(MAX_IDS_PER_PARAMETER * 20 < 128 << 10) };
    }

    #[test]
    fn groups_are_numbered() {
        let ListedSubjects { ids, groups } = ListedSubjects::from_groups([&[7, 8][..], &[], &[9]]);
        assert_eq!((ids, groups), (vec![7, 8, 9], vec![0, 0, 2]));
    }
}
