//! Creators and their linked accounts, for the ranking.

use sqlx::PgPool;
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::store::Error;

/// A creator with the subjects of its accounts.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct CreatorSubjects {
    pub id: Uuid,
    pub name: String,
    pub name_key: String,
    /// Internal ids of its accounts, on the platform if one is given.
    pub subjects: Vec<i64>,
}

/// Lists all creators of the organization with their accounts.
pub async fn list_with_subjects(
    pg: &PgPool,
    organization: Uuid,
    platform: Option<Platform>,
) -> Result<Vec<CreatorSubjects>, Error> {
    let creators = sqlx::query_as(
        "select c.id, c.name, c.name_key,
                coalesce(array_agg(a.internal_id) filter (where a.id is not null), '{}') as subjects
         from creators c
         left join accounts a on a.organization_id = $1 and a.creator_id = c.id
            and ($2::text is null or a.platform = $2)
         where c.organization_id = $1
         group by c.id",
    )
    .bind(organization)
    .bind(platform)
    .fetch_all(pg)
    .await?;
    Ok(creators)
}
