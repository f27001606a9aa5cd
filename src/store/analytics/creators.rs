//! Creators and their linked accounts.

use sqlx::PgPool;
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::store::Error;

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

pub const FIND: &str = "
    select c.id, array(
        select a.internal_id from accounts a where a.organization_id = $1 and a.creator_id = c.id
    ) as subjects
    from creators c
    where c.organization_id = $1 and c.id = any($2)";

/// Finds the creators of the organization among ids.
pub async fn find(pg: &PgPool, organization: Uuid, ids: &[Uuid]) -> Result<Vec<CreatorAccounts>, Error> {
    Ok(sqlx::query_as(FIND).bind(organization).bind(ids).fetch_all(pg).await?)
}

pub const LIST: &str = "
    select c.id, c.name, c.name_key, coalesce(sum(a.follower_count), 0)::bigint as follower_count,
        coalesce(array_agg(a.internal_id) filter (where a.id is not null), '{}') as subjects
    from creators c
    left join accounts a
        on a.organization_id = $1 and a.creator_id = c.id and ($2::text is null or a.platform = $2)
    where c.organization_id = $1
    group by c.id";

/// Lists all creators of the organization with their accounts.
pub async fn list_with_subjects(
    pg: &PgPool,
    organization: Uuid,
    platform: Option<Platform>,
) -> Result<Vec<CreatorSubjects>, Error> {
    Ok(sqlx::query_as(LIST).bind(organization).bind(platform).fetch_all(pg).await?)
}
