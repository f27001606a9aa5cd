//! What an index follows: the change sequence in Postgres and the documents it names, of all organizations; and who
//! follows it.
//!
//! A change only names a record; its state is read when the change is applied, so applying one twice, or late, ends
//! the same. A reader goes only as far as the oldest transaction still open, so that a late commit is never skipped.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;
use crate::store::write::Entity;

/// Changes that are read at once.
const BATCH: i64 = 20_000;
/// Documents that are read at once when an index is built.
const PAGE: i64 = 5_000;
/// How long a change is kept for indexes that are away.
const RETENTION_DAYS: i64 = 7;
/// How long a follower may be silent before it counts as gone.
pub const FOLLOWER_TIMEOUT: &str = "10 seconds";

/// A place in the change sequence of one database: every change before it is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexPosition {
    /// Which database it is a place in, and which course of its history.
    pub database: String,
    /// Every transaction with a lower number is applied.
    pub txid: i64,
    /// Of this transaction, what has been applied.
    pub position: i64,
    /// The last request to make every index anew that came before the index was begun.
    pub generation: i64,
}

impl IndexPosition {
    pub(super) fn encode(&self) -> String {
        serde_json::json!(self).to_string()
    }

    pub(super) fn decode(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// The changes after a position.
#[derive(Debug)]
pub struct ChangeBatch {
    /// Each record once.
    pub named: Vec<(Entity, Uuid)>,
    /// Organizations that are gone, of which nothing is left in Postgres.
    pub gone: Vec<Uuid>,
    /// Where the sequence goes on.
    pub next: IndexPosition,
    /// Whether it held all that could be read.
    pub complete: bool,
    /// The generation of which every index should be.
    pub generation: i64,
}

/// What can be found: the folded text of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub entity: Entity,
    pub id: Uuid,
    pub organization: Uuid,
    pub text: String,
}

impl ChangeBatch {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.gone.is_empty()
    }
}

/// What a change names that is no record: an organization that is gone.
const ORGANIZATION: &str = "organization";

/// Everything that can be found.
pub const ENTITIES: [Entity; 3] = [Entity::Account, Entity::Creator, Entity::Video];

/// Returns the position from which an index has to follow that is built from what is read after this call.
pub async fn current_position(pg: &PgPool) -> Result<IndexPosition, Error> {
    // The timeline is another one after a restored backup or a failover, which may have lost what was applied, and the
    // table after a restored dump.
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

/// Tells whether the sequence still holds everything after a position, in the database that it is a place in.
pub async fn can_resume(pg: &PgPool, position: &IndexPosition) -> Result<bool, Error> {
    let (oldest, next): (Option<i64>, i64) = sqlx::query_as(
        "select (select min(txid) from search_changes)::text::bigint,
             pg_snapshot_xmax(pg_current_snapshot())::text::bigint",
    )
    .fetch_one(pg)
    .await?;
    // Pruning leaves at least one row, and nothing older than the oldest that is left was kept.
    let kept = oldest.is_none_or(|oldest| oldest <= position.txid);
    Ok(kept && position.txid <= next && position.database == current_position(pg).await?.database)
}

/// Reads the changes after a position, in the order of their transactions, as far as none can still come in between.
/// Fails when the sequence is another one than the position is a place in.
pub async fn read_batch(pg: &PgPool, after: &IndexPosition) -> Result<ChangeBatch, Error> {
    let (horizon, generation, relation): (i64, i64, String) = sqlx::query_as(
        "select pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
             (select coalesce(max(generation), 0) from search_generations), 'search_changes'::regclass::oid::text",
    )
    .fetch_one(pg)
    .await?;
    if after.database.rsplit('/').next() != Some(&relation) {
        return Err(Error::Search("a dump was restored to postgres: the index is made anew".to_owned()));
    }
    let rows: Vec<(i64, i64, String, Uuid)> = sqlx::query_as(
        "select txid::text::bigint, position, entity, entity_id
         from search_changes
         where (txid, position) > ($1::text::xid8, $2) and txid < $3::text::xid8
         order by txid, position
         limit $4",
    )
    .bind(after.txid.to_string())
    .bind(after.position)
    .bind(horizon.to_string())
    .bind(BATCH)
    .fetch_all(pg)
    .await?;
    let complete = rows.len() < BATCH as usize;
    let (txid, position) = match rows.last() {
        Some(&(txid, position, ..)) if !complete => (txid, position),
        _ => (horizon.max(after.txid), if horizon > after.txid { 0 } else { after.position }),
    };
    let gone = rows.iter().filter(|(.., entity, _)| entity == ORGANIZATION).map(|(.., id)| *id).collect();
    let named: BTreeSet<_> =
        rows.into_iter().filter_map(|(.., entity, id)| Some((parse(&entity)?, id))).collect();
    let next = IndexPosition { txid, position, ..after.clone() };
    Ok(ChangeBatch { named: named.into_iter().collect(), gone, next, complete, generation })
}

/// Counts the changes that an index does not hold which has applied all transactions below a number, up to a limit.
pub async fn count_pending(pg: &PgPool, applied: i64) -> Result<i64, Error> {
    let pending = sqlx::query_scalar(
        "select count(*) from (select from search_changes where txid >= $1::text::xid8 limit 100000) pending",
    )
    .bind(applied.to_string())
    .fetch_one(pg)
    .await?;
    Ok(pending)
}

fn parse(entity: &str) -> Option<Entity> {
    ENTITIES.into_iter().find(|known| known.as_str() == entity)
}

/// Reads what is to be found of the named records now; those that are gone, or have no text, are missing.
pub async fn read_documents(pg: &PgPool, named: &[(Entity, Uuid)]) -> Result<Vec<Document>, Error> {
    let mut documents = Vec::new();
    for entity in ENTITIES {
        let ids: Vec<_> = named.iter().filter(|(of, _)| *of == entity).map(|(_, id)| *id).collect();
        if ids.is_empty() {
            continue;
        }
        let statement = match entity {
            Entity::Account => "select id, organization_id, username from accounts where id = any($1)",
            Entity::Creator => "select id, organization_id, name_key from creators where id = any($1)",
            Entity::Video => {
                "select id, organization_id, description_key from videos where id = any($1) and description_key <> ''"
            }
        };
        documents.extend(texts(entity, sqlx::query_as(statement).bind(ids).fetch_all(pg).await?));
    }
    Ok(documents)
}

/// Reads the next documents of one kind in the order of their ids; none are left when there are none.
pub async fn read_page(pg: &PgPool, entity: Entity, after: Uuid) -> Result<Vec<Document>, Error> {
    let statement = match entity {
        Entity::Account => {
            "select id, organization_id, username from accounts where id > $1 order by id limit $2"
        }
        Entity::Creator => {
            "select id, organization_id, name_key from creators where id > $1 order by id limit $2"
        }
        Entity::Video => {
            "select id, organization_id, description_key from videos
             where id > $1 and description_key <> '' order by id limit $2"
        }
    };
    Ok(texts(entity, sqlx::query_as(statement).bind(after).bind(PAGE).fetch_all(pg).await?))
}

fn texts(entity: Entity, rows: Vec<(Uuid, Uuid, String)>) -> Vec<Document> {
    rows.into_iter().map(|(id, organization, text)| Document { entity, id, organization, text }).collect()
}

/// Tells whoever waits (`store::applied`, `tidemark reindex`) how far a follower is, of which generation its index is,
/// and that it lives.
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

/// Takes a follower off the list of those that others wait for.
pub async fn unregister_follower(pg: &PgPool, follower: Uuid) -> Result<(), Error> {
    sqlx::query("delete from search_followers where id = $1").bind(follower).execute(pg).await?;
    Ok(())
}

/// Removes the changes that every index in use has long applied; one that was away for longer is built anew.
///
/// What is removed is always the beginning of the sequence and never all of it, by which [`can_resume`] tells. What a dump
/// brought from a server that had counted more transactions than this one goes too: nobody can wait for their numbers.
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

/// Asks every follower, whether it lives now or later, to make its index anew. Returns the generation of those to come.
pub async fn request_rebuild(pg: &PgPool) -> Result<i64, Error> {
    Ok(sqlx::query_scalar("insert into search_generations default values returning generation")
        .fetch_one(pg)
        .await?)
}

/// The number of living followers, and how many of them have an index of an earlier generation.
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
