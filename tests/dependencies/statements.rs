//! Where statements, transactions and HTTP clients are built.

use std::collections::BTreeSet;

use crate::occurrences;

/// sqlx leaves a connection in disorder when its transactions and copies are cancelled.
#[test]
fn only_store_transaction_begins_transactions_and_copies() {
    assert_eq!(
        occurrences(&["pg.begin(", "pool.begin(", "connection.begin(", ".begin_with(", ".copy_in_raw("]),
        BTreeSet::from([("src/store/postgres/transaction.rs".to_owned(), ".copy_in_raw(")]),
        "use store::Transaction"
    );
}

/// Other clients cannot be built on a machine without trust roots.
#[test]
fn only_tls_builds_http_clients() {
    assert_eq!(
        occurrences(&["Client::builder(", " Client::new(", "reqwest::Client::new(", "ClientBuilder::new("]),
        BTreeSet::from([("src/tls.rs".to_owned(), "Client::builder(")]),
        "use tls::client_builder"
    );
}

/// sqlx and `store::clickhouse::client` accept a text that is built at run time only as `AssertSqlSafe`, the `clickhouse` crate
/// accepts any. These files do that, with texts of the program; values from outside are bound.
#[test]
fn statements_contain_no_outside_text() {
    let found = occurrences(&["AssertSqlSafe(", "query_raw(&", "query_raw(sql)"]);
    let reviewed = BTreeSet::from([
        // Constant names of locks, and a generated id.
        ("src/store/postgres/advisory_lock.rs".to_owned(), "AssertSqlSafe("),
        // Constant settings.
        ("src/store/postgres/pool.rs".to_owned(), "AssertSqlSafe("),
        // Names of indexes, as Postgres lists them.
        ("src/store/migrate/postgres.rs".to_owned(), "AssertSqlSafe("),
        // Files rendered for a cluster, and the configured database, which is validated.
        ("src/store/migrate/clickhouse.rs".to_owned(), "query_raw(&"),
        // Texts that are `AssertSqlSafe`, rendered for a cluster, and constants.
        ("src/store/clickhouse/client.rs".to_owned(), "query_raw(&"),
        ("src/store/clickhouse/client.rs".to_owned(), "query_raw(sql)"),
        // Names of tables, as ClickHouse lists them, and constants.
        ("src/store/lifecycle/purge.rs".to_owned(), "AssertSqlSafe("),
        // A constant lock option.
        ("src/store/lifecycle/retention.rs".to_owned(), "AssertSqlSafe("),
        // Constant names of tables.
        ("src/store/lifecycle/organizations.rs".to_owned(), "AssertSqlSafe("),
        ("src/store/lifecycle/vacuum.rs".to_owned(), "AssertSqlSafe("),
        // Constant names of tables and columns.
        ("src/store/summed_table.rs".to_owned(), "AssertSqlSafe("),
        ("src/store/clickhouse/diagnosis.rs".to_owned(), "query_raw(&"),
        // Constant names, the configured database and names of views, in quotes.
        ("src/store/clickhouse/logins.rs".to_owned(), "query_raw(&"),
    ]);
    assert_eq!(
        found, reviewed,
        "check that the new statement contains nothing from outside, and add it here"
    );
}

/// `store::clickhouse::client` adds timeout, traces and metrics.
#[test]
fn clickhouse_statements_use_the_client_module() {
    let found: BTreeSet<_> = occurrences(&["query_raw("]).into_iter().map(|(file, _)| file).collect();
    let reviewed = [
        "src/store/clickhouse/client.rs",
        // Commands and schema checks with their own timeouts.
        "src/store/clickhouse/users.rs",
        "src/store/clickhouse/logins.rs",
        "src/store/clickhouse/cluster/layout.rs",
        "src/store/clickhouse/diagnosis.rs",
        "src/store/migrate/clickhouse.rs",
    ];
    assert_eq!(found, reviewed.map(str::to_owned).into(), "use store::clickhouse::client");
}
