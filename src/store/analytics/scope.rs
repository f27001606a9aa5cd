//! Whose history is asked for. A parameter of ClickHouse's HTTP interface holds 128 KiB, so a scope with a long list
//! is asked for part by part; the parts have no subject in common.

use clickhouse::{RowOwned, RowRead};
use sqlx::PgPool;
use uuid::Uuid;

use super::history::{HistoryReader, Query};
use super::stored_day;
use crate::model::period::Window;
use crate::model::platform::Platform;
use crate::store::Error;

/// Subjects that one parameter may list: an id has at most 19 digits, and a comma.
const LIST: usize = 6_000;

/// From the first subject there may be to the last.
const EVERY: (i64, i64) = (0, i64::MAX);

/// Subjects of one organization.
#[derive(Debug, Clone)]
pub struct SubjectScope {
    organization: Uuid,
    platform: Option<Platform>,
    who: Who,
}

#[derive(Debug, Clone)]
enum Who {
    /// Everybody but those that are deleted in Postgres, and possibly not yet in ClickHouse; ascending.
    AllBut(Vec<i64>),
    /// Accounts that are in Postgres.
    These(Vec<i64>),
}

/// What one statement is told of a scope.
struct Part<'a> {
    subjects: &'a [i64],
    deleted: &'a [i64],
    first: i64,
    last: i64,
}

/// Subjects of tracking that every total has to leave out.
pub async fn fetch_removed_subjects(pg: &PgPool, organization: Uuid) -> Result<Vec<i64>, Error> {
    let removed = sqlx::query_scalar(
        "select subject_id from removed_subjects where organization_id = $1 and delivery is null order by subject_id",
    )
    .bind(organization)
    .fetch_all(pg)
    .await?;
    Ok(removed)
}

impl SubjectScope {
    /// Everything that the organization has, of one platform or both.
    pub async fn for_organization(
        pg: &PgPool,
        organization: Uuid,
        platform: Option<Platform>,
    ) -> Result<Self, Error> {
        let removed = fetch_removed_subjects(pg, organization).await?;
        Ok(SubjectScope { organization, platform, who: Who::AllBut(removed) })
    }

    /// Accounts by their internal ids, those of one platform or both.
    pub fn for_subjects(organization: Uuid, platform: Option<Platform>, subjects: Vec<i64>) -> Self {
        SubjectScope { organization, platform, who: Who::These(subjects) }
    }

    /// The rows of a statement over all parts of the scope, one part after the other; none of days without history.
    pub(super) async fn fetch<T: RowOwned + RowRead>(
        &self,
        history: &HistoryReader,
        sql: &str,
        window: Window,
    ) -> Result<Vec<T>, Error> {
        let mut rows = Vec::new();
        let Some(window) = history.kept(window) else { return Ok(rows) };
        for part in self.parts() {
            rows.extend(self.query(history, sql, window, &part).fetch().await?);
        }
        Ok(rows)
    }

    /// The statement with what the part needs of it: a line of its own for each condition, which stays away where it
    /// would let everything through, because ClickHouse takes half a millisecond to see that.
    fn query(&self, history: &HistoryReader, sql: &str, window: Window, part: &Part<'_>) -> Query {
        let whole = matches!(self.who, Who::AllBut(_));
        let (all, any_platform) = ((part.first, part.last) == EVERY, self.platform.is_none());
        let without = |line: &&str| {
            let says = |parameter: &str| line.contains(parameter);
            !(whole && says("{whole_org:")
                || part.deleted.is_empty() && says("{deleted:")
                || all && says("{first:")
                || any_platform && says("{platform:"))
        };
        let sql: Vec<_> = sql.lines().filter(without).collect();
        let mut query = history
            .ask(self.organization, &sql.join("\n"))
            .param("start", stored_day(window.start))
            .param("end", stored_day(window.end));
        if !whole {
            query = query.param("whole_org", false).param("subjects", part.subjects.to_vec());
        }
        if !part.deleted.is_empty() {
            query = query.param("deleted", part.deleted.to_vec());
        }
        if !all {
            query = query.param("first", part.first).param("last", part.last);
        }
        if let Some(platform) = self.platform {
            query = query.param("platform", platform.as_str());
        }
        query
    }

    fn parts(&self) -> Vec<Part<'_>> {
        match &self.who {
            Who::These(subjects) => subjects
                .chunks(LIST)
                .map(|subjects| Part { subjects, deleted: &[], first: 0, last: i64::MAX })
                .collect(),
            Who::AllBut(removed) => (0..removed.len().max(1))
                .step_by(LIST)
                .map(|start| Part {
                    subjects: &[],
                    deleted: &removed[start..removed.len().min(start + LIST)],
                    first: if start == 0 { 0 } else { removed[start] },
                    last: removed.get(start + LIST).map_or(i64::MAX, |next| next - 1),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(who: Who) -> Vec<(usize, usize, i64, i64)> {
        let scope = SubjectScope { organization: Uuid::nil(), platform: None, who };
        scope
            .parts()
            .iter()
            .map(|part| (part.subjects.len(), part.deleted.len(), part.first, part.last))
            .collect()
    }

    #[test]
    fn a_scope_is_asked_for_in_parts_that_have_no_subject_in_common() {
        let ids = |count: i64| (1..=count).map(|id| id * 10).collect::<Vec<_>>();
        assert_eq!(parts(Who::AllBut(vec![])), [(0, 0, 0, i64::MAX)]);
        assert_eq!(parts(Who::AllBut(ids(6_000))), [(0, 6_000, 0, i64::MAX)]);
        assert_eq!(
            parts(Who::AllBut(ids(12_001))),
            [(0, 6_000, 0, 60_009), (0, 6_000, 60_010, 120_009), (0, 1, 120_010, i64::MAX)]
        );
        assert_eq!(parts(Who::These(vec![])), []);
        assert_eq!(parts(Who::These(ids(6_001))), [(6_000, 0, 0, i64::MAX), (1, 0, 0, i64::MAX)]);
        const { assert!(LIST * 20 < 128 << 10) };
    }
}
