//! A part of the history of organizations, small enough for one statement.

use chrono::NaiveDate;
use clickhouse::Client;
use clickhouse::query::Query;
use uuid::Uuid;

use super::purge::fetch_all;
use crate::store::Error;

/// All subjects of some organizations, or some subjects of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectRange {
    pub organizations: Vec<Uuid>,
    first: u64,
    last: u64,
}

impl SubjectRange {
    /// The condition of rows of these subjects before a day.
    pub(super) const BEFORE_CUTOFF: &str = "org_id IN {orgs:Array(UUID)} \
        AND subject_id BETWEEN {first:UInt64} AND {last:UInt64} AND date < {since:Date}";

    pub fn all_subjects(organizations: &[Uuid]) -> Self {
        SubjectRange { organizations: organizations.to_vec(), first: 0, last: u64::MAX }
    }

    /// Binds the parameters of [`Self::BEFORE_CUTOFF`].
    pub(super) fn bind(&self, query: Query, since: NaiveDate) -> Query {
        query
            .param("orgs", &self.organizations)
            .param("first", self.first)
            .param("last", self.last)
            .param("since", since)
    }

    /// Divides the organizations, or the subjects of a single one that have snapshots before a day. Returns `None` for a
    /// single subject.
    pub async fn split(&self, client: &Client, since: NaiveDate) -> Result<Option<[Self; 2]>, Error> {
        let organizations = &self.organizations;
        if organizations.len() > 1 {
            let (first, second) = organizations.split_at(organizations.len() / 2);
            return Ok(Some([SubjectRange::all_subjects(first), SubjectRange::all_subjects(second)]));
        }
        let condition = Self::BEFORE_CUTOFF;
        let sql = format!(
            "SELECT min(subject_id), max(subject_id) FROM
             (
                 SELECT subject_id FROM video_snapshots WHERE {condition}
                 UNION ALL SELECT subject_id FROM account_snapshots WHERE {condition}
             )"
        );
        let bounds: Vec<(u64, u64)> = fetch_all(client, &sql, |query| self.bind(query, since)).await?;
        let range = |first, last| SubjectRange { organizations: organizations.clone(), first, last };
        let divide = |(min, max): (u64, u64)| {
            let middle = min + (max - min) / 2;
            [range(min, middle), range(middle + 1, max)]
        };
        Ok(bounds.into_iter().find(|(min, max)| min < max).map(divide))
    }
}
