//! Deletes a deleted organization's rows in Postgres, in batches with short locks, and the organization itself last.

use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use crate::store::Error;
use crate::store::postgres::Transaction;
use crate::store::postgres::notifications::Topic;

const RECORD_BATCH_ROWS: i64 = 2_000;
/// Outbox rows that a statement scans, of all organizations.
const OUTBOX_SCAN_ROWS: i64 = 20_000;

/// Tables with the condition of the rows to delete, ordered so that few rows are left to cascades.
const TABLES: [(&str, &str); 22] = [
    ("scrape_targets", "true"),
    ("scrape_wakeups", "true"),
    ("target_counts", "true"),
    ("ended_attempts", "true"),
    ("api_keys", "true"),
    ("idempotency_keys", "true"),
    ("uploads", "true"),
    ("webhook_attempts", "true"),
    ("webhook_messages", "true"),
    ("webhooks", "true"),
    ("events", "true"),
    ("breakout_candidates", "true"),
    ("record_pictures", "true"),
    ("collection_marks", "true"),
    ("collection_shares", "true"),
    ("collections", "true"),
    ("videos", "true"),
    ("caption_blocks", "true"),
    ("post_days", "true"),
    ("accounts", "true"),
    ("creators", "true"),
    // Search indexes need an oldest row to know whether they can catch up, so the newest row stays.
    ("search_changes", "txid < (select max(txid) from search_changes)"),
];

/// Returns the organizations that are deleted and not erased yet.
pub async fn fetch_deleted(pg: &PgPool) -> Result<Vec<Uuid>, Error> {
    let deleted =
        sqlx::query_scalar("select id from organizations where deleted_at is not null order by deleted_at")
            .fetch_all(pg)
            .await?;
    Ok(deleted)
}

/// Deletes a batch of rows of a deleted organization. Returns false if there were none. Rows locked by
/// another transaction are skipped: the cascade of the organization deletes them.
pub async fn delete_record_batch(pg: &PgPool, organization: Uuid) -> Result<bool, Error> {
    for (table, condition) in TABLES {
        let statement = format!(
            "delete from {table} where ctid = any(array(
                select ctid from {table} where organization_id = $1 and {condition} limit $2
                for update skip locked
             ))"
        );
        let deleted = sqlx::query(AssertSqlSafe(statement))
            .bind(organization)
            .bind(RECORD_BATCH_ROWS)
            .execute(pg)
            .await?
            .rows_affected();
        if deleted > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Deletes a deleted organization's rows in a range of the outbox that starts at a position, except rows being delivered.
/// Returns the start of the next range, if there are more rows.
pub async fn delete_outbox_batch(pg: &PgPool, organization: Uuid, from: i64) -> Result<Option<i64>, Error> {
    let next = sqlx::query_scalar(
        "with scanned as (
            select position, organization_id from outbox where position >= $2 order by position limit $3
         ), deleted as (
            delete from outbox
            where position = any(array(select position from scanned where organization_id = $1))
                and (delivery is null or applied_at is not null)
         )
         select max(position) + 1 from scanned",
    )
    .bind(organization)
    .bind(from)
    .bind(OUTBOX_SCAN_ROWS)
    .fetch_one(pg)
    .await?;
    Ok(next)
}

/// Returns the position of an organization's first outbox row that is not applied.
pub async fn first_unapplied_position(pg: &PgPool, organization: Uuid) -> Result<Option<i64>, Error> {
    let position = sqlx::query_scalar(
        "select min(position) from outbox where organization_id = $1 and applied_at is null",
    )
    .bind(organization)
    .fetch_one(pg)
    .await?;
    Ok(position)
}

/// Deletes an organization whose records are deleted. Search indexes drop it, and only its id remains.
pub async fn delete(pg: &PgPool, organization: Uuid) -> Result<(), Error> {
    let mut transaction = Transaction::begin(pg).await?;
    for statement in [
        "delete from removed_subjects where organization_id = $1",
        "delete from history_versions where organization_id = $1",
        "delete from search_changes where organization_id = $1",
        "insert into search_changes (organization_id, entity, entity_id)
         values ('00000000-0000-0000-0000-000000000000', 'organization', $1)",
        "insert into erased_organizations (id, deleted_at)
         select id, deleted_at from organizations where id = $1 and deleted_at is not null
         on conflict do nothing",
        "delete from organizations where id = $1 and deleted_at is not null",
    ] {
        sqlx::query(statement).bind(organization).execute(&mut *transaction).await?;
    }
    transaction.commit_and_notify(Topic::Writes).await?;
    Ok(())
}

/// Returns ids of erased organizations, in order.
pub async fn fetch_erased(pg: &PgPool, after: Uuid, limit: i64) -> Result<Vec<Uuid>, Error> {
    let erased = sqlx::query_scalar("select id from erased_organizations where id > $1 order by id limit $2")
        .bind(after)
        .bind(limit)
        .fetch_all(pg)
        .await?;
    Ok(erased)
}
