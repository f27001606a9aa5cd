//! Creators and their linked accounts.

use sqlx::QueryBuilder;
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::store::postgres::RecordsQuery;
use crate::store::postgres::keyset::push_equal;

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
    /// Internal ids of its accounts.
    pub subjects: Vec<i64>,
}

/// Finds the creators of the organization among ids.
pub fn find(organization: Uuid, ids: &[Uuid]) -> RecordsQuery<Vec<CreatorAccounts>> {
    let mut query = QueryBuilder::new(
        "select c.id, array(
             select a.internal_id from accounts a where a.organization_id = ",
    );
    query.push_bind(organization).push(
        " and a.creator_id = c.id
         ) as subjects
         from creators c where c.organization_id = ",
    );
    query.push_bind(organization).push(" and c.id = any(").push_bind(ids).push(")");
    RecordsQuery::rows(query)
}

/// Lists all creators of the organization with their accounts.
pub fn list_with_subjects(
    organization: Uuid,
    platform: Option<Platform>,
) -> RecordsQuery<Vec<CreatorSubjects>> {
    let mut query = QueryBuilder::new(
        "select c.id, c.name, c.name_key, coalesce(sum(a.follower_count), 0)::bigint as follower_count,
             coalesce(array_agg(a.internal_id) filter (where a.id is not null), '{}') as subjects
         from creators c
         left join accounts a on a.creator_id = c.id and a.organization_id = ",
    );
    query.push_bind(organization);
    push_equal(&mut query, "a.platform", platform);
    query.push(" where c.organization_id = ").push_bind(organization).push(" group by c.id");
    RecordsQuery::rows(query)
}
