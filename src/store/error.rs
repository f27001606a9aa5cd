//! The error type of all stores: what failed, whether a retry may help, and what the caller can do.

use crate::telemetry::{labels, metrics};

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("postgres: {0}")]
    Postgres(#[source] sqlx::Error),
    #[error("clickhouse: {0}")]
    Clickhouse(#[from] clickhouse::error::Error),
    #[error("search index: {0}")]
    Search(String),
    #[error("events do not encode: {0}")]
    Encode(#[from] postcard::Error),
    /// Another unit of work made the same thing at the same time; the change is to be tried again from the start.
    #[error("another change made the same record at the same time: try again")]
    WriteConflict,
    /// The organization asks more at once than it has turns for.
    #[error("the organization asks more of clickhouse at once than there is time for")]
    TooManyQueries,
    /// Postgres has not the schema of this version; the text says what to do.
    #[error("{0}")]
    Schema(String),
    #[error("the system has no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    /// The thing named is not the organization's.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// The state of things forbids it; the text says which and what to do.
    #[error("{0}")]
    Conflict(String),
    /// A value turned out to be impossible only beside what is stored.
    #[error("{field}: {message}")]
    Invalid { field: &'static str, message: String },
    /// The organization has as many as it may.
    #[error("{0}")]
    QuotaExceeded(String),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        if matches!(error, sqlx::Error::PoolTimedOut) {
            metrics::count_pool_timeout(labels::POSTGRES_POOL);
        }
        if is_of_no_organization(&error) {
            return Error::NotFound("organization");
        }
        Error::Postgres(error)
    }
}

impl Error {
    /// Whether another unit of work was in the way: the change is to be tried again from the start.
    pub fn is_write_conflict(&self) -> bool {
        match self {
            Error::WriteConflict => true,
            // A deadlock, of which this one was chosen to give way, or a serialization failure.
            Error::Postgres(sqlx::Error::Database(error)) => {
                self.is_lock_unavailable()
                    || error.code().is_some_and(|code| ["40P01", "40001"].contains(&code.as_ref()))
            }
            _ => false,
        }
    }

    /// Whether a lock was not to be had: within the time in which it may be waited for, or without any waiting.
    pub fn is_lock_unavailable(&self) -> bool {
        matches!(self, Error::Postgres(sqlx::Error::Database(error))
            if error.code().is_some_and(|code| code == "55P03"))
    }

    /// Whether Postgres broke a statement off, on somebody's word or because it took too long: it may be asked again, though
    /// what takes too long each time is no outage.
    pub fn is_canceled(&self) -> bool {
        matches!(self, Error::Postgres(sqlx::Error::Database(error))
            if error.code().is_some_and(|code| code == "57014"))
    }

    /// Whether a statement wanted more time, memory or rows than ClickHouse gives it: less at a time may do.
    pub fn exceeds_query_limit(&self) -> bool {
        matches!(self, Error::Clickhouse(clickhouse::error::Error::BadResponse(text))
            if ["Code: 158", "Code: 159", "Code: 241", "Code: 307"].iter().any(|code| text.contains(code)))
    }

    /// Whether Postgres has no room on its disk, or may only be read because it has little left: reads go on.
    pub fn rejects_writes(&self) -> bool {
        matches!(self, Error::Postgres(sqlx::Error::Database(error))
            if error.code().is_some_and(|code| ["53100", "25006"].contains(&code.as_ref())))
    }

    /// Whether a store could not be reached, or could not do it now: asking again later may help.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Error::Postgres(error) => self.is_write_conflict() || is_postgres_outage(error),
            Error::Clickhouse(error) => is_clickhouse_outage(error),
            Error::WriteConflict | Error::TooManyQueries | Error::Schema(_) => true,
            _ => false,
        }
    }
}

/// Whether a row refers to an organization that is gone, as one is seconds after it was deleted.
fn is_of_no_organization(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| {
        error.is_foreign_key_violation()
            && error.constraint().is_some_and(|constraint| constraint.ends_with("_organization_id_fkey"))
    })
}

fn is_postgres_outage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => {
            true
        }
        // Connection failures; a role or password that is refused; a full disk, no memory, too many connections; a database
        // that is not there, as while it is restored; a server that only lets itself be read, as one does that was told to
        // because its disk is nearly full; a session that was idle for too long; shutting down or starting up.
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            ["08", "28", "53"].iter().any(|class| code.starts_with(class))
                || ["3D000", "25006", "25P03", "57P01", "57P02", "57P03", "57P04", "57P05"]
                    .contains(&code.as_ref())
        }),
        _ => false,
    }
}

fn is_clickhouse_outage(error: &clickhouse::error::Error) -> bool {
    use clickhouse::error::Error;
    match error {
        Error::Network(_) | Error::TimedOut => true,
        // A query that took too long, too many at once, or too little memory for it just now; a shard of a cluster
        // that is away.
        Error::BadResponse(text) => {
            ["Code: 159", "Code: 202", "Code: 241", "Code: 279"].iter().any(|code| text.contains(code))
        }
        _ => false,
    }
}
