//! Creators and their linked accounts.

use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::model::account::AccountLabels;
use crate::model::platform::Platform;
use crate::store::postgres::RecordsQuery;
use crate::store::postgres::keyset::{push_equal, push_labels};

/// A creator in the ranking.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct CreatorSubjects {
    pub id: Uuid,
    pub name: String,
    pub name_key: String,
    /// Current followers of these accounts together.
    pub follower_count: i64,
    /// Internal ids of its accounts, on the platform if one is given.
    pub subjects: Vec<i64>,
}

/// A creator, and the subjects of its accounts.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct CreatorAccounts {
    pub id: Uuid,
    /// Current followers of these accounts together.
    pub follower_count: i64,
    /// Internal ids of its accounts that have the labels.
    pub subjects: Vec<i64>,
}

/// Finds the creators of the organization among ids, with their accounts that have labels.
pub fn find(organization: Uuid, ids: &[Uuid], labels: &AccountLabels) -> RecordsQuery<Vec<CreatorAccounts>> {
    let mut query = QueryBuilder::new(
        "select c.id, own.follower_count, own.subjects
         from creators c cross join lateral (
             select coalesce(sum(a.follower_count), 0)::bigint as follower_count,
                 coalesce(array_agg(a.internal_id), '{}') as subjects
             from accounts a where a.creator_id = c.id and a.organization_id = ",
    );
    query.push_bind(organization);
    push_labels(&mut query, "a", labels);
    query.push(") own where c.organization_id = ").push_bind(organization);
    query.push(" and c.id = any(").push_bind(ids).push(")");
    RecordsQuery::rows(query)
}

/// Lists all creators of the organization with their accounts; with labels, those of such accounts.
pub fn list_with_subjects(
    organization: Uuid,
    platform: Option<Platform>,
    labels: &AccountLabels,
) -> RecordsQuery<Vec<CreatorSubjects>> {
    let mut query = QueryBuilder::new(
        "select c.id, c.name, c.name_key, coalesce(sum(a.follower_count), 0)::bigint as follower_count,
             coalesce(array_agg(a.internal_id) filter (where a.id is not null), '{}') as subjects
         from creators c ",
    );
    query.push(if labels.is_empty() { "left join" } else { "join" });
    query.push(" accounts a on a.creator_id = c.id and a.organization_id = ").push_bind(organization);
    push_equal(&mut query, "a.platform", platform);
    push_labels(&mut query, "a", labels);
    query.push(" where c.organization_id = ").push_bind(organization).push(" group by c.id");
    RecordsQuery::rows(query)
}
