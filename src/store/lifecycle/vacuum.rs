//! Rows that Postgres removed stay in its files until they are vacuumed, which by itself it does once a fifth of a table
//! is gone. Here it does so wherever anything was deleted. Nobody waits for it. Their place is free then and not blank: what
//! stood there is gone when something else is written there, or the file anew (docs/lifecycle.md).

use std::collections::HashMap;
use std::time::Duration;

use sqlx::PgPool;

use crate::store::Error;

/// How long one table may take.
const LONGEST: Duration = Duration::from_secs(3600);

/// The statement that cleans a table's file.
macro_rules! vacuum {
    ($table:literal) => {
        concat!("vacuum (skip_locked, truncate false, index_cleanup on) ", $table)
    };
}

/// The tables that hold what an organization may delete, each with the statement that cleans its file.
macro_rules! vacuumed {
    ($($table:literal),+ $(,)?) => {
        [$(($table, vacuum!($table))),+]
    };
}

const TABLES: [(&str, &str); 13] = vacuumed![
    "accounts",
    "api_keys",
    "caption_blocks",
    "creators",
    "history_versions",
    "idempotency_keys",
    "organizations",
    "outbox",
    "post_days",
    "removed_subjects",
    "scrape_targets",
    "search_changes",
    "videos",
];

/// How many rows were deleted of each table when it was vacuumed last; of the outbox, which a sweep writes anew, also how
/// many were updated.
#[derive(Debug, Default)]
pub struct VacuumTracker(HashMap<String, i64>);

impl VacuumTracker {
    /// Vacuums the tables of which rows were deleted since the last time, and says how many those were. At first that is
    /// each of which rows were ever deleted. A table that fails keeps no other waiting; the first failure is told.
    pub async fn vacuum_changed_tables(&mut self, pg: &PgPool) -> Result<usize, Error> {
        let deleted: HashMap<_, _> = counts(pg).await?.into_iter().collect();
        let (mut vacuumed, mut all) = (0, Ok(()));
        for (table, statement) in TABLES {
            let Some((rows, before)) = deleted.get(table) else { continue };
            if *rows == 0 || self.0.get(table) == Some(rows) {
                continue;
            }
            if let Err(error) = run(pg, statement).await {
                all = all.and(Err(error));
                continue;
            }
            // It is passed over, and no error, while somebody else has a lock on it or where the role may not.
            let times = counts(pg).await?.into_iter().find(|(name, _)| name == table);
            if times.is_some_and(|(_, (_, times))| times > *before) {
                self.0.insert(table.to_owned(), *rows);
                vacuumed += 1;
            }
        }
        all.map(|()| vacuumed)
    }
}

/// Vacuums the answers that are kept under idempotency keys.
pub async fn vacuum_idempotency_keys(pg: &PgPool) -> Result<(), Error> {
    run(pg, vacuum!("idempotency_keys")).await
}

async fn run(pg: &PgPool, statement: &'static str) -> Result<(), Error> {
    match tokio::time::timeout(LONGEST, sqlx::query(statement).execute(pg)).await {
        Ok(done) => Ok(done.map(drop)?),
        Err(_) => Err(Error::Postgres(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))),
    }
}

/// How many rows of each table were deleted, and how often it was vacuumed.
async fn counts(pg: &PgPool) -> Result<Vec<(String, (i64, i64))>, Error> {
    let counts: Vec<(String, i64, i64)> = sqlx::query_as(
        "select relname::text, n_tup_del + case relname when 'outbox' then n_tup_upd else 0 end, vacuum_count
         from pg_stat_user_tables where schemaname = current_schema()",
    )
    .fetch_all(pg)
    .await?;
    Ok(counts.into_iter().map(|(table, rows, times)| (table, (rows, times))).collect())
}
