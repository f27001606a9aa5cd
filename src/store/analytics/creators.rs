//! Creators for leaderboards: who there is, and which accounts belong to them as they are linked now.

use sqlx::PgPool;
use uuid::Uuid;

use crate::model::platform::Platform;
use crate::store::Error;

/// A creator that a leaderboard ranks.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct CreatorSubjects {
    pub id: Uuid,
    pub name: String,
    pub name_key: String,
    /// Its accounts of the platform asked for, by internal id.
    pub subjects: Vec<i64>,
}

/// Every creator of the organization with its accounts.
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
