//! History that ClickHouse has and Postgres does not know, after an older Postgres was restored. Totals count a post twice
//! that is found again.

use clickhouse::Client;
use sqlx::PgPool;
use uuid::Uuid;

use super::recovery::{last_delivery_number, raise_id_sequence};
use crate::store::Error;
use crate::store::clickhouse::history_writer::{self, RecordedDelivery};

/// Records whether ClickHouse has deliveries that Postgres does not know, and prevents that ids of these are used again.
/// Forgets those that it lost since, because an older one was restored. Has to precede what raises Postgres' delivery
/// numbers.
pub async fn detect(pg: &PgPool, clickhouse: &Client, recorded: RecordedDelivery) -> Result<(), Error> {
    let known = last_delivery_number(pg).await?;
    if recorded.number > known {
        raise_id_sequence(pg, history_writer::highest_id(clickhouse).await?.max(1)).await?;
        sqlx::query(
            "insert into unknown_history (organization_id, after_delivery)
             select id, $1 from organizations where deleted_at is null
             on conflict (organization_id)
             do update set after_delivery = least(unknown_history.after_delivery, excluded.after_delivery)",
        )
        .bind(known)
        .execute(pg)
        .await?;
    }
    let forgotten = "delete from unknown_history where after_delivery >= $1";
    sqlx::query(forgotten).bind(recorded.number).execute(pg).await?;
    Ok(())
}

pub async fn is_recorded(pg: &PgPool, organization: Uuid) -> Result<bool, Error> {
    let sql = "select exists (select from unknown_history where organization_id = $1)";
    Ok(sqlx::query_scalar(sql).bind(organization).fetch_one(pg).await?)
}

/// Records that an organization has no unknown history any more.
pub async fn clear(pg: &PgPool, organization: Uuid) -> Result<(), Error> {
    let sql = "delete from unknown_history where organization_id = $1";
    sqlx::query(sql).bind(organization).execute(pg).await?;
    Ok(())
}

/// Describes unknown history of any organization, and its remedies.
pub async fn describe(pg: &PgPool) -> Result<Option<String>, Error> {
    let sql = "select count(*) from unknown_history join organizations on id = organization_id where deleted_at is null";
    let organizations: i64 = sqlx::query_scalar(sql).fetch_one(pg).await?;
    Ok((organizations > 0).then(|| {
        format!(
            "postgres was restored older than clickhouse, whose totals of {organizations} organizations may count posts twice: \
             restore a backup of clickhouse made before that of postgres, or run `tidemark rebuild`"
        )
    }))
}
