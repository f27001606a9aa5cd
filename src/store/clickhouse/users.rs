//! ClickHouse users for data teams: each reads the history of one organization, within limits.
//!
//! The views run with the privileges of the user, who therefore needs the tables too. Row policies on the tables restrict
//! the user to its organization: a restrictive one of its own, and a permissive one for all users, because a table with
//! any policy may show no rows to users without a permissive one.
//!
//! The privileges of a user are public: tests also give these rights to the user of an embedded engine, which cannot create users.

use std::time::Duration;

use clickhouse::Client;
use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::model::key;
use crate::model::secret::Secret;
use crate::store::clickhouse::diagnosis;
use crate::store::{Error, clickhouse_error_code};

/// The tables that the views read.
pub const VIEW_TABLES: [&str; 8] = [
    "video_snapshots",
    "account_snapshots",
    "account_daily",
    "video_daily",
    "accounts",
    "creators",
    "videos",
    "collections",
];

/// The permissive row policy for all users.
const PERMISSIVE_POLICY: &str = "tidemark_everybody";

/// Settings may be changed, data not.
pub const READONLY: u8 = 2;

/// Maxima of settings, which a user may lower, as many drivers do.
pub const LIMITS: [(&str, u64); 9] = [
    // Seconds.
    ("max_execution_time", 60),
    // Bytes of one query, and of all queries of the user.
    ("max_memory_usage", 4_000_000_000),
    ("max_memory_usage_for_user", 8_000_000_000),
    ("max_temporary_data_on_disk_size_for_user", 20_000_000_000),
    ("max_rows_to_read", 2_000_000_000),
    ("max_result_rows", 10_000_000),
    // With wait_end_of_query results are buffered on disk, which nothing else limits.
    ("max_result_bytes", 4_000_000_000),
    ("max_threads", 8),
    ("max_concurrent_queries_for_user", 4),
];

/// Settings that a user must not change: other values would truncate results, evade a limit, or affect other users.
pub const CONSTANT_SETTINGS: [(&str, &str); 10] = [
    ("timeout_overflow_mode", "'throw'"),
    ("read_overflow_mode", "'throw'"),
    ("result_overflow_mode", "'throw'"),
    // Bytes that a thread allocates before memory limits are checked: the smaller of the two.
    ("max_untracked_memory", "4194304"),
    ("memory_profiler_step", "4194304"),
    // Out of memory, the server cancels the query furthest beyond this; with 0, a query of another user.
    ("memory_overcommit_ratio_denominator", "1073741824"),
    // Each user gets an equal share of the CPU.
    ("use_concurrency_control", "1"),
    ("os_threads_nice_value_query", "0"),
    ("query_cache_share_between_users", "0"),
    // Before 26.3.17.50, 26.4.5.134 and 26.5.6.46 the cache ignores row policies.
    ("use_query_condition_cache", "0"),
];

const MAX_QUERIES_PER_HOUR: u64 = 10_000;
const MAX_EXECUTION_SECONDS_PER_HOUR: u64 = 3_600;

/// The first patch of each release in which mergeTreeIndex respects row policies. Later releases do; those between and
/// before do not.
const PATCHED_VERSIONS: [[u32; 4]; 4] = [[26, 3, 22, 6], [26, 5, 8, 18], [26, 6, 4, 10], [26, 7, 6, 5]];

const TIMEOUT: Duration = Duration::from_secs(30);

/// A ClickHouse user of a data team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClickhouseUser {
    /// The login name.
    pub user: String,
    pub name: String,
    pub organization_id: Uuid,
}

/// A user to create, with its password, which cannot be read again.
#[derive(Debug)]
pub struct NewUser {
    pub user: ClickhouseUser,
    pub password: Secret,
    /// The database of the views.
    pub database: String,
    pub statements: Vec<String>,
}

impl ClickhouseUser {
    /// The login name contains the organization, so it is unique on the server.
    pub fn new(organization: Uuid, name: &str) -> Self {
        let user = format!("{name}{}", suffix(organization));
        ClickhouseUser { user, name: name.to_owned(), organization_id: organization }
    }
}

pub(super) fn suffix(organization: Uuid) -> String {
    format!("_{}", organization.simple())
}

impl NewUser {
    /// Generates a password, and the statements that create a user for the views in `public` over the tables in `database`.
    /// If the user exists they set the new password and this version's grants and limits; if interrupted they leave a user
    /// that can read nothing.
    pub fn generate(database: &str, public: &str, organization: Uuid, name: &str) -> Result<Self, Error> {
        let user = ClickhouseUser::new(organization, name);
        let password = key::random_base62()?;
        let statements = create_statements(database, public, &user, &password);
        Ok(NewUser { user, password: Secret::new(password), database: public.to_owned(), statements })
    }

    /// What ClickHouse stores of the password.
    pub fn password_hash(&self) -> String {
        hash(self.password.reveal())
    }
}

/// SHA-256 in hexadecimal.
fn hash(password: &str) -> String {
    Sha256::digest(password).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn create_statements(database: &str, public: &str, user: &ClickhouseUser, password: &str) -> Vec<String> {
    let hash = hash(password);
    let mut settings = vec![format!("readonly = {READONLY}")];
    settings.extend(LIMITS.iter().map(|(name, limit)| format!("{name} = {limit} MIN 1 MAX {limit}")));
    settings.extend(CONSTANT_SETTINGS.iter().map(|(name, value)| format!("{name} = {value} CONST")));
    let settings = settings.join(", ");
    let (name, views, tables) = (quoted(&user.user), quoted(public), quoted_tables(database).join(", "));
    let filter = row_filter(user.organization_id);
    let mut statements = vec![
        format!(
            "CREATE ROW POLICY IF NOT EXISTS {} ON {tables} FOR SELECT USING 1 AS PERMISSIVE TO ALL",
            quoted(PERMISSIVE_POLICY)
        ),
        format!(
            "CREATE USER OR REPLACE {name} IDENTIFIED WITH sha256_hash BY '{hash}' HOST ANY \
             DEFAULT DATABASE {views} SETTINGS {settings}"
        ),
        format!(
            "CREATE ROW POLICY OR REPLACE {name} ON {tables} FOR SELECT USING {filter} AS RESTRICTIVE TO {name}"
        ),
        format!(
            "CREATE QUOTA OR REPLACE {name} KEYED BY user_name FOR INTERVAL 1 hour \
             MAX queries = {MAX_QUERIES_PER_HOUR}, execution_time = {MAX_EXECUTION_SECONDS_PER_HOUR} TO {name}"
        ),
    ];
    // Grants last: until here the user can read nothing.
    statements.extend(grants(database, public).iter().map(|grant| format!("GRANT {grant} TO {name}")));
    statements
}

/// The condition of a row policy. `org_id` is in the sorting key of every table, so all versions of a row satisfy it or none,
/// and `FINAL` gives the same rows whether it is applied before or after.
pub fn row_filter(organization: Uuid) -> String {
    format!("org_id = toUUID('{organization}')")
}

/// The privileges of a user.
pub fn grants(database: &str, public: &str) -> Vec<String> {
    let tables = quoted_tables(database).into_iter();
    tables.chain([format!("{}.*", quoted(public))]).map(|target| format!("SELECT ON {target}")).collect()
}

/// The statements that drop a user.
pub fn drop_statements(database: &str, user: &ClickhouseUser) -> Vec<String> {
    let name = quoted(&user.user);
    vec![
        format!("DROP USER IF EXISTS {name}"),
        format!("DROP ROW POLICY IF EXISTS {name} ON {}", quoted_tables(database).join(", ")),
        format!("DROP QUOTA IF EXISTS {name}"),
    ]
}

pub(super) fn quoted_tables(database: &str) -> [String; VIEW_TABLES.len()] {
    VIEW_TABLES.map(|table| format!("{}.{table}", quoted(database)))
}

pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('\\', r"\\").replace('`', r"\`"))
}

/// Runs the statements that create or drop a user.
pub async fn execute_all(client: &Client, database: &str, statements: &[String]) -> Result<(), Error> {
    require_local_tables(client, database).await?;
    require_users(client).await?;
    for statement in statements {
        await_response(client.query_raw(statement).execute()).await?;
    }
    Ok(())
}

/// Fails on a cluster: there, policies belong on the tables of each shard, and one on a Distributed table rejects queries.
async fn require_local_tables(client: &Client, database: &str) -> Result<(), Error> {
    let distributed = client
        .query_raw(
            "SELECT count() FROM system.tables WHERE database = {database:String} AND engine = 'Distributed'",
        )
        .param("database", database);
    if await_response(distributed.fetch_one::<u64>()).await? == 0 {
        return Ok(());
    }
    Err(Error::Conflict(
        "row policies on a cluster belong on the tables of its shards: print the statements with --sql and adapt them"
            .to_owned(),
    ))
}

/// A warning about a server version that shows users more than their rows.
pub async fn security_warning(client: &Client) -> Result<Option<String>, Error> {
    let version = await_response(diagnosis::fetch_version(client)).await?;
    Ok((!is_patched(&version)).then(|| {
        format!(
            "ClickHouse {version} reveals keys of hidden rows through mergeTreeIndex (ids and days of other organizations, \
             no counters): update to 26.7.6.5, 26.3.22.6 or later patches"
        )
    }))
}

fn is_patched(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let numbers: [u32; 4] = std::array::from_fn(|_| parts.next().unwrap_or(0));
    let latest = PATCHED_VERSIONS[PATCHED_VERSIONS.len() - 1];
    numbers >= latest || PATCHED_VERSIONS.iter().any(|fixed| numbers[..2] == fixed[..2] && numbers >= *fixed)
}

/// Lists the users of an organization, by name.
pub async fn list(client: &Client, organization: Uuid) -> Result<Vec<ClickhouseUser>, Error> {
    require_users(client).await?;
    let users = client
        .query_raw("SELECT name FROM system.users WHERE endsWith(name, {suffix:String}) ORDER BY name")
        .param("suffix", suffix(organization));
    let users: Vec<String> = await_response(users.fetch_all()).await?;
    let name = |user: &String| user.strip_suffix(&suffix(organization)).map(str::to_owned);
    Ok(users.iter().filter_map(name).map(|name| ClickhouseUser::new(organization, &name)).collect())
}

/// Whether any part of a user exists, which an interrupted drop may have left.
pub async fn exists(client: &Client, user: &ClickhouseUser) -> Result<bool, Error> {
    require_users(client).await?;
    let parts = client
        .query_raw(
            "SELECT (SELECT count() FROM system.users WHERE name = {name:String})
                + (SELECT count() FROM system.row_policies WHERE short_name = {name:String})
                + (SELECT count() FROM system.quotas WHERE name = {name:String})",
        )
        .param("name", &user.user);
    Ok(await_response(parts.fetch_one::<u64>()).await? > 0)
}

/// Fails where users cannot be created: embedded ClickHouse of another database has no writable user directory.
async fn require_users(client: &Client) -> Result<(), Error> {
    let directories = client
        .query_raw("SELECT count() FROM system.user_directories WHERE type NOT IN ('users_xml', 'ldap')");
    if await_response(directories.fetch_one::<u64>()).await? > 0 {
        return Ok(());
    }
    Err(Error::Conflict(
        "this ClickHouse cannot store users: use a ClickHouse server with a local or replicated user directory, or embedded \
         ClickHouse, restarted with this version and TIDEMARK_CLICKHOUSE_DATABASE"
            .to_owned(),
    ))
}

/// Awaits a response within [`TIMEOUT`]; a missing privilege becomes a conflict.
pub(super) async fn await_response<T>(
    response: impl Future<Output = clickhouse::error::Result<T>>,
) -> Result<T, Error> {
    let response = tokio::time::timeout(TIMEOUT, response).await;
    response.unwrap_or(Err(clickhouse::error::Error::TimedOut)).map_err(|error| {
        match clickhouse_error_code(&error) {
            // ACCESS_DENIED
            Some(497) => Error::Conflict(format!(
                "this ClickHouse user cannot manage users: set --clickhouse-user to one that can ({error})"
            )),
            _ => error.into(),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn reports(organization: Uuid) -> NewUser {
        NewUser::generate("tidemark", "tidemark_public", organization, "reports").unwrap()
    }

    #[test]
    fn user_can_read_the_tables_of_the_views_and_no_others() {
        let views = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/views")).unwrap();
        let views: Vec<_> =
            views.map(|view| std::fs::read_to_string(view.unwrap().path()).unwrap()).collect();
        let words: Vec<Vec<_>> = views.iter().map(|view| view.split_whitespace().collect()).collect();
        let read: BTreeSet<_> = words
            .iter()
            .flat_map(|words| {
                words.windows(3).filter(|words| words[0] == "FROM" && words[2].starts_with("FINAL"))
            })
            .map(|words| words[1])
            .collect();
        assert_eq!(read, VIEW_TABLES.into_iter().collect());

        let new = reports(Uuid::nil());
        let user = "`reports_00000000000000000000000000000000`";
        let grants: BTreeSet<_> =
            new.statements.iter().filter_map(|statement| statement.strip_prefix("GRANT ")).collect();
        let expected = VIEW_TABLES.map(|table| format!("SELECT ON `tidemark`.{table} TO {user}"));
        let mut expected: BTreeSet<_> = expected.iter().map(String::as_str).collect();
        let view_grant = format!("SELECT ON `tidemark_public`.* TO {user}");
        expected.insert(&view_grant);
        assert_eq!(grants, expected);
    }

    #[test]
    fn grants_come_last_and_the_password_is_hashed() {
        let new = reports(Uuid::now_v7());
        let grants = |statement: &String| statement.starts_with("GRANT");
        let first = new.statements.iter().position(grants).unwrap();
        assert!(new.statements[first..].iter().all(grants));
        assert_eq!(first, 4);
        let all = new.statements.join("\n");
        assert!(!all.contains(new.password.reveal()), "{all}");
        let hash = Sha256::digest(new.password.reveal());
        assert!(all.contains(&hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()));
        let again = reports(Uuid::now_v7());
        assert_ne!(new.password.reveal(), again.password.reveal());
    }

    #[test]
    fn key_leak_is_known_by_version() {
        for fixed in ["26.7.6.5", "26.7.10.1", "26.8.1.1", "27.1.2.3", "26.3.22.6", "26.5.9.1"] {
            assert!(is_patched(fixed), "{fixed}");
        }
        for leaking in ["26.7.2.1", "26.4.30.1", "26.3.22.5", "25.8.30.1", "", "unknown"] {
            assert!(!is_patched(leaking), "{leaking}");
        }
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("a`; DROP USER b; --\\"), r"`a\`; DROP USER b; --\\`");
    }
}
