//! Statements of `tidemark doctor` about Postgres: settings, privileges, invalid indexes and open transactions.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// Version, settings and connections of a server, and the privileges of the current role.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct PostgresServer {
    pub version: String,
    pub encoding: String,
    /// Without those reserved for superusers.
    pub max_connections: i32,
    pub used_connections: i64,
    /// The current role, quoted as an identifier.
    pub role: String,
    /// Whether the role may read other roles' sessions (`pg_read_all_stats`).
    pub sees_all_sessions: bool,
    /// Whether commits survive a loss of power.
    pub is_durable: bool,
    pub is_replica: bool,
    /// `default_transaction_read_only`
    pub is_read_only: bool,
    pub now: DateTime<Utc>,
}

/// For example `15.18 (Debian 15.18-0+deb12u1)`.
pub async fn fetch_version(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    sqlx::query_scalar("select current_setting('server_version')").fetch_one(connection).await
}

/// Without `pg_read_all_stats`, other roles' sessions with a database and a role are counted as clients.
pub async fn fetch_server(connection: &mut PgConnection) -> Result<PostgresServer, sqlx::Error> {
    sqlx::query_as(
        "select current_setting('server_version') as version,
             (select pg_encoding_to_char(encoding)::text from pg_database where datname = current_database()) as encoding,
             current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as max_connections,
             (select count(*) from pg_stat_activity where coalesce(backend_type = 'client backend',
                 datid is not null and usesysid is not null)) as used_connections,
             quote_ident(current_user) as role, pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_all_sessions,
             current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off' as is_durable,
             pg_is_in_recovery() as is_replica, current_setting('default_transaction_read_only') = 'on' as is_read_only,
             clock_timestamp() as now",
    )
    .fetch_one(connection)
    .await
}

/// Lists the tables that the role may not read and write.
pub async fn list_inaccessible_tables(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(
        "select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = current_schema() and c.relkind = 'r' and not (
             has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
             and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
         order by 1",
    )
    .fetch_all(connection)
    .await
}

/// Lists indexes whose concurrent build was interrupted: they slow writes and serve no query.
pub async fn list_invalid_indexes(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(
        "select c.relname::text from pg_index i join pg_class c on c.oid = i.indexrelid where not i.indisvalid order by 1",
    )
    .fetch_all(connection)
    .await
}

/// A long transaction. Migrations may wait for it, and search indexes stop below one that has written.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct OpenTransaction {
    pub pid: i32,
    pub application_name: String,
    pub seconds: i64,
    pub has_written: bool,
}

/// Returns the longest client transaction over a number of seconds, preferring those that have written. Leaves out VACUUM
/// and index builds, which may take hours.
pub async fn find_longest_transaction(
    connection: &mut PgConnection,
    min_seconds: i64,
) -> Result<Option<OpenTransaction>, sqlx::Error> {
    sqlx::query_as(
        "select pid, coalesce(nullif(application_name, ''), usename::text, 'unknown') as application_name,
             extract(epoch from clock_timestamp() - xact_start)::bigint as seconds,
             backend_xid is not null as has_written
         from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
             and pid not in (select pid from pg_stat_progress_vacuum union all select pid from pg_stat_progress_create_index)
             and xact_start < clock_timestamp() - make_interval(secs => $1)
         order by backend_xid is null, xact_start limit 1",
    )
    .bind(min_seconds as f64)
    .fetch_optional(connection)
    .await
}
