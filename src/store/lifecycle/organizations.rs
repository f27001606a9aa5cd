//! A deleted organization's rows in Postgres: they go some at a time, so that no statement holds locks for long, and the
//! organization itself goes last.

use sqlx::PgPool;
use uuid::Uuid;

use crate::store::Error;
use crate::store::postgres::Transaction;

/// Rows that one statement takes.
const BATCH: i64 = 2_000;
/// Rows of the outbox that one statement looks at, of whatever organizations they are.
const LOOKED_AT: i64 = 20_000;

macro_rules! some_of {
    ($table:literal) => {
        some_of!($table, "")
    };
    ($table:literal, $condition:literal) => {
        concat!(
            "delete from ",
            $table,
            " where ctid = any(array(select ctid from ",
            $table,
            " where organization_id = $1",
            $condition,
            " limit $2 for update skip locked))"
        )
    };
}

/// What stands under an organization, in an order in which hardly a row is left to a cascade. What another transaction has
/// in hand is passed over; in the end it goes with the organization.
const RECORDS: [&str; 9] = [
    some_of!("scrape_targets"),
    some_of!("api_keys"),
    some_of!("idempotency_keys"),
    some_of!("videos"),
    some_of!("caption_blocks"),
    some_of!("post_days"),
    some_of!("accounts"),
    some_of!("creators"),
    // Whether an index may follow is told by the oldest row, so there always is one: the last goes as another comes.
    some_of!("search_changes", " and txid < (select max(txid) from search_changes)"),
];

/// Organizations that are deleted and not gone yet.
pub async fn fetch_deleted(pg: &PgPool) -> Result<Vec<Uuid>, Error> {
    let deleted =
        sqlx::query_scalar("select id from organizations where deleted_at is not null order by deleted_at")
            .fetch_all(pg)
            .await?;
    Ok(deleted)
}

/// Removes up to so many rows of a deleted organization, and says whether any are left.
pub async fn delete_record_batch(pg: &PgPool, organization: Uuid) -> Result<bool, Error> {
    for statement in RECORDS {
        let removed =
            sqlx::query(statement).bind(organization).bind(BATCH).execute(pg).await?.rows_affected();
        if removed > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes what some rows of the outbox from a position on hold of a deleted organization, except what the relay has in
/// hand. Says where it goes on, if there are more rows.
pub async fn delete_outbox_batch(pg: &PgPool, organization: Uuid, from: i64) -> Result<Option<i64>, Error> {
    let next = sqlx::query_scalar(
        "with looked_at as (
            select position, organization_id from outbox where position >= $2 order by position limit $3
         ), removed as (
            delete from outbox
            where position = any(array(select position from looked_at where organization_id = $1))
                and (delivery is null or applied_at is not null)
         )
         select max(position) + 1 from looked_at",
    )
    .bind(organization)
    .bind(from)
    .bind(LOOKED_AT)
    .fetch_one(pg)
    .await?;
    Ok(next)
}

/// Where the first row of the outbox stands that the relay has in hand of a deleted organization.
pub async fn first_unapplied_position(pg: &PgPool, organization: Uuid) -> Result<Option<i64>, Error> {
    let in_hand = sqlx::query_scalar(
        "select min(position) from outbox where organization_id = $1 and applied_at is null",
    )
    .bind(organization)
    .fetch_one(pg)
    .await?;
    Ok(in_hand)
}

/// Removes an organization of which nothing else is left: every search index forgets it, and its id alone is kept.
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
    transaction.commit().await?;
    Ok(())
}

/// The ids of the organizations that are gone, in their order, after one of them.
pub async fn fetch_erased(pg: &PgPool, after: Uuid, most: i64) -> Result<Vec<Uuid>, Error> {
    let erased = sqlx::query_scalar("select id from erased_organizations where id > $1 order by id limit $2")
        .bind(after)
        .bind(most)
        .fetch_all(pg)
        .await?;
    Ok(erased)
}
