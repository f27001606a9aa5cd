//! Waits until committed changes are visible in ClickHouse and in all search indexes, for imports and tests.

use std::collections::HashSet;
use std::time::Duration;

use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;
use crate::store::search::changes::FOLLOWER_TIMEOUT;

const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Waits until all committed changes of an organization are visible in all endpoints.
pub async fn wait_for_all(pg: &PgPool, organization: Uuid) -> Result<(), Error> {
    wait_for_history(pg, organization).await?;
    wait_for_search(pg, organization).await
}

/// Waits until all committed changes of an organization are in ClickHouse.
pub async fn wait_for_history(pg: &PgPool, organization: Uuid) -> Result<(), Error> {
    let position: Option<i64> = sqlx::query_scalar(
        "select max(position) from outbox where organization_id = $1 and applied_at is null",
    )
    .bind(organization)
    .fetch_one(pg)
    .await?;
    match position {
        Some(position) => wait_for_position(pg, organization, position).await,
        None => Ok(()),
    }
}

/// Waits until the relay has applied an organization's outbox rows up to a position.
pub async fn wait_for_position(pg: &PgPool, organization: Uuid, position: i64) -> Result<(), Error> {
    let is_pending = || {
        sqlx::query_scalar(
            "select exists (
                select from outbox where organization_id = $1 and applied_at is null and position <= $2
             )",
        )
        .bind(organization)
        .bind(position)
        .fetch_one(pg)
    };
    while is_pending().await? {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Returns which of some organizations have outbox rows up to a position that are not applied.
pub async fn fetch_pending(
    pg: &PgPool,
    organizations: &[Uuid],
    position: i64,
) -> Result<HashSet<Uuid>, Error> {
    let pending: Vec<Uuid> = sqlx::query_scalar(
        "select distinct organization_id from outbox
         where applied_at is null and position <= $2 and organization_id = any($1)",
    )
    .bind(organizations)
    .bind(position)
    .fetch_all(pg)
    .await?;
    Ok(pending.into_iter().collect())
}

/// Returns the position of the last outbox row.
pub async fn last_position(pg: &PgPool) -> Result<i64, Error> {
    let position: Option<i64> = sqlx::query_scalar("select max(position) from outbox").fetch_one(pg).await?;
    Ok(position.unwrap_or_default())
}

/// Waits until all live search indexes contain an organization's latest change.
pub async fn wait_for_search(pg: &PgPool, organization: Uuid) -> Result<(), Error> {
    let latest: Option<i64> =
        sqlx::query_scalar("select max(txid)::text::bigint from search_changes where organization_id = $1")
            .bind(organization)
            .fetch_one(pg)
            .await?;
    let Some(latest) = latest else { return Ok(()) };
    let is_behind = || {
        sqlx::query_scalar(
            "select exists (
                select from search_followers where horizon <= $1 and seen_at > now() - $2::interval
             )",
        )
        .bind(latest)
        .bind(FOLLOWER_TIMEOUT)
        .fetch_one(pg)
    };
    while is_behind().await? {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
