//! The change sequence in Postgres that search indexes follow, the documents of the changed records, and the followers.
//!
//! A change names a record only; its state is read when the change is applied, so changes may be applied twice or late.
//! Readers stop at the oldest open transaction, so that a late commit is never skipped.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;
use crate::store::postgres::notifications::{self, Topic};
use crate::store::write::Entity;

/// Changed records after which a batch ends.
const MAX_BATCH_IDS: i64 = 20_000;
/// Documents per page when an index is built.
const PAGE_ROWS: i64 = 5_000;
/// Changes are deleted afterwards; an index that was offline for longer is rebuilt.
const RETENTION_DAYS: i64 = 7;
/// A follower without a heartbeat for this long is dead.
pub const FOLLOWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A position in the change sequence of one database; every change before it is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexPosition {
    /// Identifies the database and its timeline.
    pub database: String,
    /// All transactions with a lower id are applied.
    pub txid: i64,
    /// The last applied change of this transaction.
    pub position: i64,
    /// The last rebuild request before the index was built.
    pub generation: i64,
}

/// The changes after a position.
#[derive(Debug)]
pub struct ChangeBatch {
    /// Changed records, each once.
    pub records: Vec<(Entity, Uuid)>,
    /// Deleted organizations, whose records are not in Postgres any more.
    pub removed_organizations: Vec<Uuid>,
    /// The position after the batch.
    pub next: IndexPosition,
    /// Whether nothing more can be read now.
    pub is_last: bool,
    /// Whether no committed change waits for an open transaction.
    pub is_settled: bool,
    /// The generation that every index should have.
    pub generation: i64,
}

/// A searchable record with its folded text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub entity: Entity,
    pub id: Uuid,
    pub organization: Uuid,
    pub text: String,
}

impl ChangeBatch {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.removed_organizations.is_empty()
    }
}

/// The entity of a change that names a deleted organization.
const ORGANIZATION: &str = "organization";

/// All searchable entities.
pub const ENTITIES: [Entity; 3] = [Entity::Account, Entity::Creator, Entity::Video];

/// The position from which an index follows that is built from records read after this call.
pub async fn current_position(pg: &PgPool) -> Result<IndexPosition, Error> {
    // The timeline changes with a restored backup or a failover, which may have lost applied changes; the table's oid with
    // a restored dump.
    let (database, txid, generation) = sqlx::query_as(
        "select format('%s/%s/%s/%s', system_identifier, timeline_id,
                 (select oid from pg_database where datname = current_database()), 'search_changes'::regclass::oid),
             pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
             (select coalesce(max(generation), 0) from search_generations)
         from pg_control_system(), pg_control_checkpoint()",
    )
    .fetch_one(pg)
    .await?;
    Ok(IndexPosition { database, txid, position: 0, generation })
}

/// Whether the sequence still has every change after a position.
pub async fn can_resume(pg: &PgPool, position: &IndexPosition) -> Result<bool, Error> {
    let (oldest, next): (Option<i64>, i64) = sqlx::query_as(
        "select (select min(txid) from search_changes)::text::bigint,
             pg_snapshot_xmax(pg_current_snapshot())::text::bigint",
    )
    .fetch_one(pg)
    .await?;
    // Pruning removes the oldest rows and leaves at least one.
    let is_available = oldest.is_none_or(|oldest| oldest <= position.txid);
    Ok(is_available && position.txid <= next && position.database == current_position(pg).await?.database)
}

/// Reads the changes after a position in the order of their transactions, up to the oldest open one. Fails if the position
/// is in another sequence.
pub async fn read_batch(pg: &PgPool, after: &IndexPosition) -> Result<ChangeBatch, Error> {
    let (horizon, is_settled, generation, relation): (i64, bool, i64, String) = sqlx::query_as(
        "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
             not exists (select from search_changes where txid >= pg_snapshot_xmin(pg_current_snapshot())),
             (select coalesce(max(generation), 0) from search_generations), 'search_changes'::regclass::oid::text",
    )
    .fetch_one(pg)
    .await?;
    if after.database.rsplit('/').next() != Some(&relation) {
        return Err(Error::Search("postgres was restored from a dump: the index is rebuilt".to_owned()));
    }
    let rows: Vec<(i64, i64, String, Vec<Uuid>)> = sqlx::query_as(
        "select txid::text::bigint, position, entity, entity_id || more_ids
         from (
            select txid, position, entity, entity_id, more_ids,
                count(*) over earlier + coalesce(sum(cardinality(more_ids)) over earlier, 0) as ids
            from (
                select * from search_changes
                where (txid, position) > ($1::text::xid8, $2) and txid < $3::text::xid8
                order by txid, position
                limit $4
            ) c
            window earlier as (order by txid, position rows between unbounded preceding and 1 preceding)
         ) c
         where ids < $4
         order by txid, position",
    )
    .bind(after.txid.to_string())
    .bind(after.position)
    .bind(horizon.to_string())
    .bind(MAX_BATCH_IDS)
    .fetch_all(pg)
    .await?;
    let is_last = rows.iter().map(|(.., ids)| ids.len()).sum::<usize>() < MAX_BATCH_IDS as usize;
    let (txid, position) = match rows.last() {
        Some(&(txid, position, ..)) if !is_last => (txid, position),
        _ => (horizon.max(after.txid), if horizon > after.txid { 0 } else { after.position }),
    };
    let (mut records, mut removed_organizations) = (BTreeSet::new(), Vec::new());
    for (.., entity, ids) in rows {
        match parse(&entity) {
            Some(entity) => records.extend(ids.into_iter().map(|id| (entity, id))),
            None if entity == ORGANIZATION => removed_organizations.extend(ids),
            None => {}
        }
    }
    Ok(ChangeBatch {
        records: records.into_iter().collect(),
        removed_organizations,
        next: IndexPosition { txid, position, ..after.clone() },
        is_last,
        is_settled,
        generation,
    })
}

/// Counts changes, up to 100,000, that an index lacks if it has applied all transactions below `txid`.
pub async fn count_pending(pg: &PgPool, txid: i64) -> Result<i64, Error> {
    let pending = sqlx::query_scalar(
        "select least(count(*) + coalesce(sum(cardinality(more_ids)), 0), 100000)::bigint
         from (select more_ids from search_changes where txid >= $1::text::xid8 limit 100000) pending",
    )
    .bind(txid.to_string())
    .fetch_one(pg)
    .await?;
    Ok(pending)
}

fn parse(entity: &str) -> Option<Entity> {
    ENTITIES.into_iter().find(|known| known.as_str() == entity)
}

/// The statement for the ids, organizations and texts of an entity's records that match a condition.
macro_rules! select_documents {
    ($entity:expr, $condition:literal) => {
        match $entity {
            Entity::Account => {
                concat!("select id, organization_id, username from accounts where ", $condition)
            }
            Entity::Creator => {
                concat!(
                    "select id, organization_id, coalesce(name_search, name_key) from creators where ",
                    $condition
                )
            }
            Entity::Video => concat!(
                "select id, organization_id, description_key from videos where description_key <> '' and ",
                $condition
            ),
        }
    };
}

/// Reads the documents of records in their current state; deleted ones, and those without text, are absent.
pub async fn read_documents(pg: &PgPool, records: &[(Entity, Uuid)]) -> Result<Vec<Document>, Error> {
    let mut found = Vec::new();
    for entity in ENTITIES {
        let ids: Vec<_> = records.iter().filter(|(other, _)| *other == entity).map(|(_, id)| *id).collect();
        if ids.is_empty() {
            continue;
        }
        let statement = select_documents!(entity, "id = any($1)");
        found.extend(documents(entity, sqlx::query_as(statement).bind(ids).fetch_all(pg).await?));
    }
    Ok(found)
}

/// Reads the next documents of an entity in the order of their ids; none at the end.
pub async fn read_page(pg: &PgPool, entity: Entity, after: Uuid) -> Result<Vec<Document>, Error> {
    let statement = select_documents!(entity, "id > $1 order by id limit $2");
    Ok(documents(entity, sqlx::query_as(statement).bind(after).bind(PAGE_ROWS).fetch_all(pg).await?))
}

fn documents(entity: Entity, rows: Vec<(Uuid, Uuid, String)>) -> Vec<Document> {
    rows.into_iter().map(|(id, organization, text)| Document { entity, id, organization, text }).collect()
}

/// Records the heartbeat and progress of a follower, for which imports and `tidemark reindex` wait.
pub async fn register_follower(
    pg: &PgPool,
    follower: Uuid,
    horizon: i64,
    generation: i64,
) -> Result<(), Error> {
    sqlx::query(
        "insert into search_followers (id, horizon, generation) values ($1, $2, $3)
         on conflict (id) do update set horizon = $2, generation = $3, seen_at = now()",
    )
    .bind(follower)
    .bind(horizon)
    .bind(generation)
    .execute(pg)
    .await?;
    Ok(())
}

/// Removes a follower, so that nothing waits for it.
pub async fn unregister_follower(pg: &PgPool, follower: Uuid) -> Result<(), Error> {
    sqlx::query("delete from search_followers where id = $1").bind(follower).execute(pg).await?;
    Ok(())
}

/// Deletes old changes.
///
/// They are always the beginning of the sequence and never all of it, so that [`can_resume`] notices. Changes restored from
/// a dump of a server with higher transaction ids are deleted too, because their ids are in the future.
pub async fn prune(pg: &PgPool) -> Result<u64, Error> {
    sqlx::query("delete from search_followers where seen_at < now() - interval '1 hour'").execute(pg).await?;
    sqlx::query("delete from search_changes where txid >= pg_snapshot_xmax(pg_current_snapshot())")
        .execute(pg)
        .await?;
    let removed = sqlx::query(
        "delete from search_changes
         where txid < least(
             (select coalesce(min(txid) filter (where created_at >= now() - $1), max(txid)) from search_changes),
             pg_snapshot_xmin(pg_current_snapshot()))",
    )
    .bind(TimeDelta::days(RETENTION_DAYS))
    .execute(pg)
    .await?;
    Ok(removed.rows_affected())
}

/// Requests that every present and future follower rebuilds its index. Returns the new generation.
pub async fn request_rebuild(pg: &PgPool) -> Result<i64, Error> {
    let insert = "insert into search_generations default values returning generation";
    let generation = sqlx::query_scalar(insert).fetch_one(pg).await?;
    notifications::send(pg, Topic::Writes).await?;
    Ok(generation)
}

/// The number of live followers, and of those with an index of an earlier generation.
pub async fn count_followers(pg: &PgPool, generation: i64) -> Result<(i64, i64), Error> {
    Ok(sqlx::query_as(
        "select count(*), count(*) filter (where generation < $1)
         from search_followers where seen_at > now() - $2::interval",
    )
    .bind(generation)
    .bind(FOLLOWER_TIMEOUT)
    .fetch_one(pg)
    .await?)
}
