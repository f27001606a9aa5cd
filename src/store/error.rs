//! The error type of all stores. Postgres errors are recognised by SQLSTATE, ClickHouse errors by their error code.

use uuid::Uuid;

use crate::model::secret_key::EncryptError;
use crate::telemetry::{labels, metrics};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("postgres: {0}")]
    Postgres(#[source] sqlx::Error),
    #[error("clickhouse: {0}")]
    Clickhouse(#[from] clickhouse::error::Error),
    #[error("search index: {0}")]
    Search(String),
    #[error("cannot encode events: {0}")]
    Encode(#[from] postcard::Error),
    /// A pooler runs statements of several clients in one Postgres session: locks, settings and prepared statements of the
    /// session are lost or shared.
    #[error(
        "TIDEMARK_DATABASE_URL leads to a connection pooler that shares Postgres sessions: set its pool_mode to session, \
         or connect to Postgres directly"
    )]
    SharedSession,
    /// The unit of work has to be retried from its start.
    #[error("a concurrent change created the same record: retry")]
    WriteConflict,
    /// The organization already holds as many permits as it may.
    #[error("the organization runs too many queries at once: retry later")]
    TooManyQueries,
    /// Postgres lacks this version's schema. The text names the remedy.
    #[error("{0}")]
    Schema(String),
    #[error(transparent)]
    Encrypt(#[from] EncryptError),
    #[error("cannot read random bytes from the system: {0}")]
    Randomness(#[from] getrandom::Error),
    /// The organization has no such record.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// The stored state does not allow the request. The text names the remedy.
    #[error("{0}")]
    Conflict(String),
    /// The record to create exists.
    #[error("{detail}")]
    Exists { id: Uuid, detail: String },
    /// A value that only the stored state makes invalid.
    #[error("{field}: {message}")]
    Invalid { field: &'static str, message: String },
    #[error("{0}")]
    QuotaExceeded(String),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if matches!(error, sqlx::Error::PoolTimedOut) {
            metrics::count_pool_timeout(labels::POSTGRES_POOL);
        }
        if is_missing_organization(&error) {
            return Error::NotFound("organization");
        }
        Error::Postgres(error)
    }
}

impl Error {
    /// Returns the error of a statement that another unit of work conflicts with if it wrote an equal row meanwhile.
    pub(in crate::store) fn of_unique_write(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(database) if database.is_unique_violation() => Error::WriteConflict,
            _ => error.into(),
        }
    }

    /// Whether the unit of work conflicted with another one and has to be retried from its start.
    pub fn is_write_conflict(&self) -> bool {
        // serialization_failure, deadlock_detected
        matches!(self, Error::WriteConflict)
            || self.is_lock_unavailable()
            || self.has_sqlstate(&["40001", "40P01"])
    }

    /// Whether a lock was not available, at once or within `lock_timeout`.
    pub fn is_lock_unavailable(&self) -> bool {
        // lock_not_available
        self.has_sqlstate(&["55P03"])
    }

    /// Whether Postgres canceled a statement, on request or after `statement_timeout`. Not an outage: a statement that is
    /// always too slow is a bug.
    pub fn is_canceled(&self) -> bool {
        // query_canceled
        self.has_sqlstate(&["57014"])
    }

    /// Whether Postgres has a full disk or is read-only. Reads still work.
    pub fn rejects_writes(&self) -> bool {
        // disk_full, read_only_sql_transaction
        self.has_sqlstate(&["53100", "25006"])
    }

    /// Whether a statement exceeded ClickHouse's limit of time, memory, rows or bytes; a smaller one may pass.
    pub fn exceeds_query_limit(&self) -> bool {
        // TOO_MANY_ROWS, TIMEOUT_EXCEEDED, MEMORY_LIMIT_EXCEEDED, TOO_MANY_BYTES, TOO_MANY_ROWS_OR_BYTES (of a result)
        matches!(self, Error::Clickhouse(error)
            if matches!(clickhouse_error_code(error), Some(158 | 159 | 241 | 307 | 396)))
    }

    /// Whether a retry later may succeed, because a store is down or overloaded.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Error::Postgres(error) => self.is_write_conflict() || is_postgres_unavailable(error),
            Error::Clickhouse(error) => is_clickhouse_unavailable(error),
            Error::WriteConflict | Error::TooManyQueries | Error::Schema(_) | Error::SharedSession => true,
            _ => false,
        }
    }

    fn has_sqlstate(&self, codes: &[&str]) -> bool {
        let Error::Postgres(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| codes.contains(&code.as_ref()))
    }
}

/// The code of a ClickHouse exception: its text is `Code: 159. DB::Exception: …`, or only the code.
pub fn clickhouse_error_code(error: &clickhouse::error::Error) -> Option<u32> {
    let clickhouse::error::Error::BadResponse(text) = error else { return None };
    let code = text
        .strip_prefix("Code: ")
        .map_or(text.as_str(), |rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
    code.parse().ok()
}

/// Whether a row refers to an organization that does not exist, for example because it was just deleted.
fn is_missing_organization(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| {
        error.is_foreign_key_violation()
            && error.constraint().is_some_and(|constraint| constraint.ends_with("_organization_id_fkey"))
    })
}

fn is_postgres_unavailable(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => {
            true
        }
        // Classes: connection exception, invalid authorization, insufficient resources. Codes: the database is missing (while
        // it is restored), read-only transaction, idle session timeout, shutdown, crash, starting up, database dropped.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            ["08", "28", "53"].iter().any(|class| code.starts_with(class))
                || ["3D000", "25006", "25P03", "57P01", "57P02", "57P03", "57P04", "57P05"]
                    .contains(&code.as_ref())
        }),
        _ => false,
    }
}

fn is_clickhouse_unavailable(error: &clickhouse::error::Error) -> bool {
    use clickhouse::error::Error;
    match (error, clickhouse_error_code(error)) {
        (Error::Network(_) | Error::TimedOut, _) => true,
        // The response of a proxy whose ClickHouse is down.
        (Error::BadResponse(_), None) => true,
        // TIMEOUT_EXCEEDED, TOO_MANY_SIMULTANEOUS_QUERIES, MEMORY_LIMIT_EXCEEDED, ALL_CONNECTION_TRIES_FAILED (of a shard);
        // of a server that shuts down: ABORTED, QUERY_WAS_CANCELLED
        (_, code) => matches!(code, Some(159 | 202 | 236 | 241 | 279 | 394)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clickhouse_errors_are_recognised_by_their_code() {
        let exception = |text: &str| clickhouse::error::Error::BadResponse(text.to_owned());
        for (text, code, exceeds_limit, is_unavailable) in [
            ("Code: 159. DB::Exception: Timeout exceeded. (TIMEOUT_EXCEEDED)", Some(159), true, true),
            ("Code: 1590. DB::Exception: something else", Some(1590), false, false),
            ("Code: 36. DB::Exception: see Code: 159", Some(36), false, false),
            ("Code: 394. DB::Exception: Query was cancelled. (QUERY_WAS_CANCELLED)", Some(394), false, true),
            ("159", Some(159), true, true),
            ("Code: 396. DB::Exception: Limit for result exceeded", Some(396), true, false),
            ("<html><title>502 Bad Gateway</title></html>", None, false, true),
            ("", None, false, true),
        ] {
            let error = Error::Clickhouse(exception(text));
            assert_eq!(clickhouse_error_code(&exception(text)), code, "{text}");
            assert_eq!(
                (error.exceeds_query_limit(), error.is_unavailable()),
                (exceeds_limit, is_unavailable),
                "{text}"
            );
        }
    }
}
