//! Vacuums tables with deleted rows, which autovacuum does only after a fifth of a table. The space becomes reusable; the bytes
//! stay until it is overwritten (docs/lifecycle.md).

use std::collections::HashMap;
use std::time::Duration;

use sqlx::{AssertSqlSafe, PgPool};

use crate::store::Error;
use crate::store::postgres::with_timeout;

const TABLE_TIMEOUT: Duration = Duration::from_secs(3600);
const COUNTS_TIMEOUT: Duration = Duration::from_secs(60);

/// Tables with data that an organization may delete.
const TABLES: [&str; 21] = [
    "accounts",
    "api_keys",
    "caption_blocks",
    "collection_marks",
    "collection_shares",
    "collections",
    "creators",
    "events",
    "history_versions",
    "idempotency_keys",
    "organizations",
    "outbox",
    "pictures",
    "post_days",
    "record_pictures",
    "removed_subjects",
    "scrape_targets",
    "scrape_wakeups",
    "search_changes",
    "uploads",
    "videos",
];

/// The number of deleted rows of each table at its last vacuum. For the outbox, whose rows are rewritten, it includes updates.
#[derive(Debug, Default)]
pub struct VacuumTracker(HashMap<&'static str, i64>);

impl VacuumTracker {
    /// Vacuums tables with rows deleted since the last vacuum, at first all with any deleted rows. Returns their number, or the
    /// first error after trying all tables.
    pub async fn vacuum_changed_tables(&mut self, pg: &PgPool) -> Result<usize, Error> {
        let counts = fetch_counts(pg).await?;
        let (mut vacuumed, mut result) = (0, Ok(()));
        for table in TABLES {
            let Some(&(rows, vacuums)) = counts.get(table) else { continue };
            if rows == 0 || self.0.get(table) == Some(&rows) {
                continue;
            }
            if let Err(error) = vacuum_table(pg, table).await {
                result = result.and(Err(error));
                continue;
            }
            // Postgres skips a locked table, or one without permission, without an error.
            if fetch_counts(pg).await?.get(table).is_some_and(|(_, now)| *now > vacuums) {
                self.0.insert(table, rows);
                vacuumed += 1;
            }
        }
        result.map(|()| vacuumed)
    }
}

/// Vacuums a table, unless it is locked.
pub async fn vacuum_table(pg: &PgPool, table: &'static str) -> Result<(), Error> {
    let statement = format!("vacuum (skip_locked, truncate false, index_cleanup on) {table}");
    with_timeout(TABLE_TIMEOUT, sqlx::query(AssertSqlSafe(statement)).execute(pg)).await?;
    Ok(())
}

/// Returns each table's numbers of deleted rows and of vacuums.
async fn fetch_counts(pg: &PgPool) -> Result<HashMap<String, (i64, i64)>, Error> {
    let counts = sqlx::query_as(
        "select relname::text, n_tup_del + case relname when 'outbox' then n_tup_upd else 0 end, vacuum_count
         from pg_stat_user_tables where schemaname = current_schema()",
    );
    let counts: Vec<(String, i64, i64)> = with_timeout(COUNTS_TIMEOUT, counts.fetch_all(pg)).await?;
    Ok(counts.into_iter().map(|(table, rows, vacuums)| (table, (rows, vacuums))).collect())
}
