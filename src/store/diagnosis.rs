//! What the stores say of themselves, for `tidemark doctor`: from their system tables, and nothing of a tenant's.

use chrono::{DateTime, Utc};
use clickhouse::Client;
use sqlx::PgConnection;

/// How Postgres is set up.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Server {
    pub version: String,
    /// As in 150004.
    pub version_number: i32,
    pub encoding: String,
    /// Connections that ordinary roles may have together, and those that there are.
    pub places: i32,
    pub used: i64,
    /// The name of the role, as statements take it.
    pub role: String,
    /// Whether the role sees what sessions of others do.
    pub sees_all: bool,
    /// Whether what is committed survives a loss of power.
    pub keeps_commits: bool,
    pub is_replica: bool,
    /// Whether transactions that do not say otherwise may only read.
    pub is_closed: bool,
    pub now: DateTime<Utc>,
}

/// Of sessions of others a role that does not see all learns who they are, and no more: what has a database and a role is
/// counted as a client's.
pub async fn server(connection: &mut PgConnection) -> Result<Server, sqlx::Error> {
    sqlx::query_as(
        "select current_setting('server_version') as version, current_setting('server_version_num')::int as version_number,
             (select pg_encoding_to_char(encoding)::text from pg_database where datname = current_database()) as encoding,
             current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as places,
             (select count(*) from pg_stat_activity where coalesce(backend_type = 'client backend',
                 datid is not null and usesysid is not null)) as used,
             quote_ident(current_user) as role, pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_all,
             current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off' as keeps_commits,
             pg_is_in_recovery() as is_replica, current_setting('default_transaction_read_only') = 'on' as is_closed,
             clock_timestamp() as now",
    )
    .fetch_one(connection)
    .await
}

/// The tables that the role may not read and write as the service does.
pub async fn closed_tables(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
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

/// Indexes whose building was broken off: they cost writes and serve nobody.
pub async fn invalid_indexes(connection: &mut PgConnection) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar(
        "select c.relname::text from pg_index i join pg_class c on c.oid = i.indexrelid where not i.indisvalid order by 1",
    )
    .fetch_all(connection)
    .await
}

/// A transaction that is open for long. Migrations may have to wait for it, and search goes no further than one that
/// has written.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct OpenTransaction {
    pub pid: i32,
    pub who: String,
    pub seconds: i64,
    /// Whether it has written something.
    pub writes: bool,
}

/// The transaction of a client that is open longest, if that is for longer than a number of seconds; first of those that
/// write. A VACUUM or the building of an index may take hours, and is not to be ended.
pub async fn open_transaction(
    connection: &mut PgConnection,
    longer_than: i64,
) -> Result<Option<OpenTransaction>, sqlx::Error> {
    sqlx::query_as(
        "select pid, coalesce(nullif(application_name, ''), usename::text, 'unknown') as who,
             extract(epoch from clock_timestamp() - xact_start)::bigint as seconds,
             backend_xid is not null as writes
         from pg_stat_activity
         where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
             and pid not in (select pid from pg_stat_progress_vacuum union all select pid from pg_stat_progress_create_index)
             and xact_start < clock_timestamp() - make_interval(secs => $1)
         order by backend_xid is null, xact_start limit 1",
    )
    .bind(longer_than as f64)
    .fetch_optional(connection)
    .await
}

/// ClickHouse's version, and its clock.
pub async fn version(client: &Client) -> Result<(String, DateTime<Utc>), clickhouse::error::Error> {
    let (version, micros) = client
        .query_raw("select version(), toUnixTimestamp64Micro(now64(6))")
        .fetch_one::<(String, i64)>()
        .await?;
    Ok((version, DateTime::from_timestamp_micros(micros).unwrap_or_default()))
}

/// ClickHouse's disks: name, bytes that are free, and all of them.
pub async fn disks(client: &Client) -> Result<Vec<(String, u64, u64)>, clickhouse::error::Error> {
    client
        .query_raw(
            "select name, free_space, total_space from system.disks where total_space > 0 order by name",
        )
        .fetch_all()
        .await
}

/// The most parts that a partition of our tables is in.
pub async fn parts(client: &Client) -> Result<u64, clickhouse::error::Error> {
    let statement = "select max(parts) from (
        select count() as parts from system.parts where active and database = currentDatabase() group by table, partition_id
    )";
    client.query_raw(statement).fetch_one().await
}

/// The tables that the relay writes.
pub const WRITTEN: [&str; 7] = [
    "accounts",
    "creators",
    "videos",
    "account_snapshots",
    "video_snapshots",
    "account_daily",
    "relay_position",
];

/// Tries whether the user may write a table as the relay does: inserts none of its rows.
pub async fn may_write(client: &Client, table: &str) -> Result<(), clickhouse::error::Error> {
    client.query_raw(&format!("insert into {table} select * from {table} limit 0")).execute().await
}

/// Tries whether the user may look at statements that run, as the relay does before it begins.
pub async fn may_look(client: &Client) -> Result<(), clickhouse::error::Error> {
    client.query_raw("select count() from system.processes").fetch_one::<u64>().await.map(drop)
}
