//! Users of a ClickHouse server for data teams: each reads the history of one organization, within limits, and nothing else.
//!
//! The views for data teams read the tables as whoever asks, so a user needs both, and what holds it to its organization
//! are row policies on the tables: a restrictive one of its own, which nothing else can widen, below a permissive one for
//! everybody, without which a server may show no rows to anybody once there is a policy.

use std::time::Duration;

use clickhouse::Client;
use serde::Serialize;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::model::key;
use crate::model::secret::Secret;
use crate::store::{Error, clickhouse_error_code};

/// The tables that the views read.
const TABLES: [&str; 6] =
    ["video_snapshots", "account_snapshots", "account_daily", "accounts", "creators", "videos"];

/// The policy that shows every row to those whom nothing restricts.
const EVERYBODY: &str = "tidemark_everybody";

/// What one question of a data team may use. Within these a user may change settings, as many drivers do.
const LIMITS: [(&str, u64); 9] = [
    // Seconds.
    ("max_execution_time", 60),
    // Bytes; of all questions of the user together the second.
    ("max_memory_usage", 4_000_000_000),
    ("max_memory_usage_for_user", 8_000_000_000),
    ("max_temporary_data_on_disk_size_for_user", 20_000_000_000),
    ("max_rows_to_read", 2_000_000_000),
    ("max_result_rows", 10_000_000),
    // What is wanted whole (wait_end_of_query) lies on disk until then, and nothing else limits that.
    ("max_result_bytes", 4_000_000_000),
    ("max_threads", 8),
    ("max_concurrent_queries_for_user", 4),
];

/// Settings by which a limit would end an answer early instead of refusing it, or not hold, or others would be concerned.
const FIXED: [(&str, &str); 10] = [
    ("timeout_overflow_mode", "'throw'"),
    ("read_overflow_mode", "'throw'"),
    ("result_overflow_mode", "'throw'"),
    // Bytes that each thread takes before any limit of memory is asked: the smaller of the two.
    ("max_untracked_memory", "4194304"),
    ("memory_profiler_step", "4194304"),
    // When the server has no memory left, the question ends that is furthest beyond this; with 0 always somebody else's.
    ("memory_overcommit_ratio_denominator", "1073741824"),
    // A share of the processor like everybody's.
    ("use_concurrency_control", "1"),
    ("os_threads_nice_value_query", "0"),
    ("query_cache_share_between_users", "0"),
    // Before 26.3.17.50, 26.4.5.134 and 26.5.6.46 it holds for everybody what a policy hid from one.
    ("use_query_condition_cache", "0"),
];

/// Questions, and seconds that they take together, in an hour.
const QUOTA: (u64, u64) = (10_000, 3_600);

/// Where a table function stopped to show the keys of rows that a policy hides: the first such patch of each release.
/// Releases after the last have it; those between and before do not.
const KEYS_HIDDEN: [[u32; 4]; 4] = [[26, 3, 22, 6], [26, 5, 8, 18], [26, 6, 4, 10], [26, 7, 6, 5]];

/// How long one statement may take.
const LONGEST: Duration = Duration::from_secs(30);

/// A user for data teams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClickhouseUser {
    /// As whom it signs in.
    pub user: String,
    pub name: String,
    pub organization_id: Uuid,
}

/// A user that is to be made, with the password that nobody can read again afterwards.
#[derive(Debug)]
pub struct NewUser {
    pub user: ClickhouseUser,
    pub password: Secret,
    /// The database where it finds the views.
    pub database: String,
    pub statements: Vec<String>,
}

impl ClickhouseUser {
    /// The user of this name of an organization. Server and all, no other organization has a user called the same.
    pub fn new(organization: Uuid, name: &str) -> Self {
        let user = format!("{name}{}", suffix(organization));
        ClickhouseUser { user, name: name.to_owned(), organization_id: organization }
    }
}

fn suffix(organization: Uuid) -> String {
    format!("_{}", organization.simple())
}

impl NewUser {
    /// Thinks of a password and writes down what makes the user, who reads the views of `public` over the tables of
    /// `database`. Run again, the statements give it the new password and the rights and limits of this version; stopped
    /// anywhere in between, they leave a user that reads nothing.
    pub fn generate(database: &str, public: &str, organization: Uuid, name: &str) -> Result<Self, Error> {
        let user = ClickhouseUser::new(organization, name);
        let password = key::random_base62()?;
        let statements = create(database, public, &user, &password);
        Ok(NewUser { user, password: Secret::new(password), database: public.to_owned(), statements })
    }
}

fn create(tables: &str, public: &str, user: &ClickhouseUser, password: &str) -> Vec<String> {
    let hash: String = Sha256::digest(password).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut settings = vec!["readonly = 2".to_owned()];
    settings.extend(LIMITS.iter().map(|(name, limit)| format!("{name} = {limit} MIN 1 MAX {limit}")));
    settings.extend(FIXED.iter().map(|(name, value)| format!("{name} = {value} CONST")));
    let settings = settings.join(", ");
    let (queries, seconds) = QUOTA;
    let (name, views, all) = (quoted(&user.user), quoted(public), every(tables));
    let organization = user.organization_id;
    let mut statements = vec![
        format!(
            "CREATE ROW POLICY IF NOT EXISTS {} ON {all} FOR SELECT USING 1 AS PERMISSIVE TO ALL",
            quoted(EVERYBODY)
        ),
        format!(
            "CREATE USER OR REPLACE {name} IDENTIFIED WITH sha256_hash BY '{hash}' HOST ANY \
             DEFAULT DATABASE {views} SETTINGS {settings}"
        ),
        format!(
            "CREATE ROW POLICY OR REPLACE {name} ON {all} FOR SELECT USING org_id = toUUID('{organization}') \
             AS RESTRICTIVE TO {name}"
        ),
        format!(
            "CREATE QUOTA OR REPLACE {name} KEYED BY user_name FOR INTERVAL 1 hour \
             MAX queries = {queries}, execution_time = {seconds} TO {name}"
        ),
    ];
    // The rights last: until here the user reads nothing.
    statements.extend(TABLES.map(|table| format!("GRANT SELECT ON {}.{table} TO {name}", quoted(tables))));
    statements.push(format!("GRANT SELECT ON {views}.* TO {name}"));
    statements
}

/// Writes down what removes a user. Run again, the statements change nothing.
pub fn drop_statements(database: &str, user: &ClickhouseUser) -> Vec<String> {
    let name = quoted(&user.user);
    vec![
        format!("DROP USER IF EXISTS {name}"),
        format!("DROP ROW POLICY IF EXISTS {name} ON {}", every(database)),
        format!("DROP QUOTA IF EXISTS {name}"),
    ]
}

fn every(database: &str) -> String {
    TABLES.map(|table| format!("{}.{table}", quoted(database))).join(", ")
}

/// A name as ClickHouse reads it, whatever is in it.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('\\', r"\\").replace('`', r"\`"))
}

/// Runs the statements that make or remove a user, on a server that keeps users.
pub async fn execute_all(client: &Client, database: &str, statements: &[String]) -> Result<(), Error> {
    require_tables(client, database).await?;
    require_users(client).await?;
    for statement in statements {
        bounded(client.query_raw(statement).execute()).await?;
    }
    Ok(())
}

/// Fails on a cluster: there, policies belong on the tables of each shard, and one on what spans them refuses questions.
async fn require_tables(client: &Client, database: &str) -> Result<(), Error> {
    let spread = client
        .query_raw(
            "SELECT count() FROM system.tables WHERE database = {database:String} AND engine = 'Distributed'",
        )
        .param("database", database);
    if bounded(spread.fetch_one::<u64>()).await? == 0 {
        return Ok(());
    }
    Err(Error::Conflict(
        "the tables are spread over a cluster, where row policies belong on the tables of its shards: print the statements \
         with --sql and write policies and grants for those"
            .to_owned(),
    ))
}

/// What is to be said of a server that lets users see more than their rows, if it does.
pub async fn security_warning(client: &Client) -> Result<Option<String>, Error> {
    let version: String = bounded(client.query_raw("SELECT version()").fetch_one()).await?;
    Ok((!hides_keys(&version)).then(|| {
        format!(
            "ClickHouse {version} shows the keys of hidden rows to those who look for them (mergeTreeIndex): ids and days \
             of other organizations, no counters; update to 26.7.6.5, 26.3.22.6 or later patches"
        )
    }))
}

fn hides_keys(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    let version: [u32; 4] = std::array::from_fn(|_| parts.next().unwrap_or(0));
    let latest = KEYS_HIDDEN[KEYS_HIDDEN.len() - 1];
    version >= latest || KEYS_HIDDEN.iter().any(|fixed| version[..2] == fixed[..2] && version >= *fixed)
}

/// Lists the users of an organization, by name.
pub async fn list(client: &Client, organization: Uuid) -> Result<Vec<ClickhouseUser>, Error> {
    require_users(client).await?;
    let users = client
        .query_raw("SELECT name FROM system.users WHERE endsWith(name, {suffix:String}) ORDER BY name")
        .param("suffix", suffix(organization));
    let users: Vec<String> = bounded(users.fetch_all()).await?;
    let name = |user: &String| user.strip_suffix(&suffix(organization)).map(str::to_owned);
    Ok(users.iter().filter_map(name).map(|name| ClickhouseUser::new(organization, &name)).collect())
}

/// Whether anything is there of a user, be it what a drop left that was broken off.
pub async fn exists(client: &Client, user: &ClickhouseUser) -> Result<bool, Error> {
    require_users(client).await?;
    let parts = client
        .query_raw(
            "SELECT (SELECT count() FROM system.users WHERE name = {name:String})
                + (SELECT count() FROM system.row_policies WHERE short_name = {name:String})
                + (SELECT count() FROM system.quotas WHERE name = {name:String})",
        )
        .param("name", &user.user);
    Ok(bounded(parts.fetch_one::<u64>()).await? > 0)
}

/// Fails where users cannot be made. A server has a place for them; the embedded engine has none.
async fn require_users(client: &Client) -> Result<(), Error> {
    let places = client
        .query_raw("SELECT count() FROM system.user_directories WHERE type NOT IN ('users_xml', 'ldap')");
    let places: u64 = bounded(places.fetch_one()).await?;
    if places > 0 {
        return Ok(());
    }
    Err(Error::Conflict(
        "this ClickHouse keeps no users: the embedded engine has none but its own two, so use a ClickHouse server \
         (there, the configuration names a local or replicated directory of users)"
            .to_owned(),
    ))
}

async fn bounded<T>(work: impl Future<Output = clickhouse::error::Result<T>>) -> Result<T, Error> {
    let result = tokio::time::timeout(LONGEST, work).await;
    result.unwrap_or(Err(clickhouse::error::Error::TimedOut)).map_err(|error| match clickhouse_error_code(&error) {
        // ACCESS_DENIED
        Some(497) => Error::Conflict(format!(
            "this ClickHouse user may not manage users: name one that may with --clickhouse-user ({error})"
        )),
        _ => error.into(),
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
    fn a_user_may_read_what_the_views_read_and_nothing_else() {
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
        assert_eq!(read, TABLES.into_iter().collect());

        let new = reports(Uuid::nil());
        let user = "`reports_00000000000000000000000000000000`";
        let grants: BTreeSet<_> =
            new.statements.iter().filter_map(|statement| statement.strip_prefix("GRANT ")).collect();
        let expected = TABLES.map(|table| format!("SELECT ON `tidemark`.{table} TO {user}"));
        let mut expected: BTreeSet<_> = expected.iter().map(String::as_str).collect();
        let views = format!("SELECT ON `tidemark_public`.* TO {user}");
        expected.insert(&views);
        assert_eq!(grants, expected);
    }

    #[test]
    fn the_rights_come_last_and_the_password_is_nowhere() {
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
    fn a_release_hides_keys_from_its_patch_on() {
        for fine in ["26.7.6.5", "26.7.10.1", "26.8.1.1", "27.1.2.3", "26.3.22.6", "26.5.9.1"] {
            assert!(hides_keys(fine), "{fine}");
        }
        for open in ["26.7.2.1", "26.4.30.1", "26.3.22.5", "25.8.30.1", "", "unknown"] {
            assert!(!hides_keys(open), "{open}");
        }
    }

    #[test]
    fn a_name_stays_a_name_whatever_is_in_it() {
        assert_eq!(quoted("a`; DROP USER b; --\\"), r"`a\`; DROP USER b; --\\`");
    }
}
