//! Restrictions of the read-only user that `readonly=1` of the engine does not impose: no functions that reach files or the
//! network, and only settings that limit or format.

use crate::engine_types::StatementClass;
use crate::exception::{Exception, Result};
use crate::{settings_clause, sql};

/// Prefixes of table functions that read outside the database. The engine rejects a SELECT from them under `readonly=1`, but
/// evaluates DESCRIBE and some arguments before.
const EXTERNAL_FUNCTION_PREFIXES: [&str; 32] = [
    "arrowflight",
    "arrowstream",
    "azureblobstorage",
    "cluster",
    "cosn",
    "deltalake",
    "dictionary",
    "eval",
    "executable",
    "file",
    "fuzzquery",
    "gcs",
    "hdfs",
    "hudi",
    "iceberg",
    "input",
    "jdbc",
    "loop",
    "mongodb",
    "mysql",
    "odbc",
    "oss",
    "paimon",
    "postgresql",
    "prometheus",
    "python",
    "redis",
    "remote",
    "s3",
    "sqlite",
    "url",
    "ytsaurus",
];

/// Scalar functions with such a prefix that read nothing.
const HARMLESS_FUNCTIONS: [&str; 3] = ["urlhash", "urlhierarchy", "urlpathhierarchy"];

/// Scalar functions that read files or the network, which `readonly=1` permits. They also run without a bracket, as in
/// `APPLY(file)` or `arrayMap(file, …)`.
const FORBIDDEN_FUNCTIONS: [&str; 6] =
    ["file", "aiclassify", "aiembed", "aiextract", "aigenerate", "aitranslate"];

/// The settings that read-only users may change begin like these: limits, which can be lowered, formats of results, and what
/// clients send by default, such as dbt those of writes, which have no effect on reads.
const ALLOWED_SETTING_PREFIXES: [&str; 42] = [
    "additional_table_filters",
    "aggregate_functions_null_for_empty",
    "alter_sync",
    "any_join_distinct_right_table_keys",
    "async_insert",
    "cancel_http_readonly_queries_on_client_close",
    "cast_keep_nullable",
    "database_replicated_enforce_synchronous_settings",
    "distributed_foreground_insert",
    "empty_result_for_aggregation_by_empty_set",
    "format_csv_",
    "format_tsv_",
    "group_by_use_nulls",
    "http_headers_progress_interval_ms",
    "insert_distributed_",
    "insert_quorum",
    "join_algorithm",
    "lightweight_deletes_sync",
    "mutations_sync",
    "prefer_column_name_to_alias",
    "union_default_mode",
    "wait_for_async_insert",
    "max_",
    "output_format_",
    "date_time_",
    "join_use_nulls",
    "use_uncompressed_cache",
    "use_query_cache",
    "extremes",
    "session_timezone",
    "log_comment",
    "timeout_overflow_mode",
    "result_overflow_mode",
    "read_overflow_mode",
    "group_by_overflow_mode",
    "sort_overflow_mode",
    "send_progress_in_http_headers",
    "enable_http_compression",
    "final",
    "cast_string_to_dynamic_use_inference",
    "describe_",
    "readonly",
];

/// Settings with these in their names refer to files.
const FORBIDDEN_SETTING_PARTS: [&str; 4] = ["schema", "path", "file", "template"];

/// How statements of a user of one tenant begin, after brackets.
const LOGIN_STATEMENTS: [&str; 7] = ["SELECT", "WITH", "EXPLAIN", "DESCRIBE", "DESC", "SHOW", "EXISTS"];
const SHOW_STATEMENTS: [&str; 6] = ["TABLES", "DATABASES", "COLUMNS", "FULL", "CREATE", "FUNCTIONS"];

/// System tables that clients read: about the program, or limited to what the user may read.
const LOGIN_SYSTEM_TABLES: [&str; 16] = [
    "build_options",
    "collations",
    "columns",
    "contributors",
    "data_type_families",
    "databases",
    "formats",
    "functions",
    "numbers",
    "one",
    "settings",
    "table_engines",
    "table_functions",
    "tables",
    "time_zones",
    "zeros",
];

pub(crate) fn check_statement(text: &[u8], class: StatementClass) -> Result<()> {
    if class != StatementClass::Read {
        return Err(Exception::readonly("this user only reads: change data as the other user"));
    }
    if settings_clause::assigns(text) {
        return Err(Exception::readonly(
            "this user cannot use SETTINGS in a part of a statement: put it at the end, with whole values",
        ));
    }
    check_names(text)
}

fn check_names(text: &[u8]) -> Result<()> {
    match sql::names(text).find_map(|name| violation(&name)) {
        Some(violation) => Err(Exception::readonly(violation)),
        None => Ok(()),
    }
}

/// Rejects what a condition that is sent as a setting must not use.
pub(crate) fn check_condition(text: &[u8], is_login: bool) -> Result<()> {
    if sql::names(text).any(|name| name.is_word("SELECT")) {
        return Err(Exception::readonly(
            "a filter of this user compares columns of its table: put subqueries into the statement",
        ));
    }
    check_names(text)?;
    if is_login { check_login_names(text) } else { Ok(()) }
}

fn violation(name: &sql::Name) -> Option<String> {
    let lower = name.text.to_lowercase();
    if name.escaped {
        return Some("this user cannot use backslashes in quoted names".to_owned());
    }
    if FORBIDDEN_FUNCTIONS.contains(&lower.as_str()) {
        return Some(format!("this user cannot call {lower}(), nor use its name"));
    }
    let external = EXTERNAL_FUNCTION_PREFIXES.iter().any(|start| lower.starts_with(start))
        && !HARMLESS_FUNCTIONS.contains(&lower.as_str());
    (name.called && external)
        .then(|| format!("this user cannot call {lower}(): it reads outside the database"))
}

/// Rejects what a user of one tenant must not use although the engine permits it: tables about the whole engine, and SETTINGS,
/// which the engine accepts in a subquery even with `readonly=1`.
pub(crate) fn check_login_statement(text: &[u8]) -> Result<()> {
    if sql::names(text).next().is_none_or(|first| !LOGIN_STATEMENTS.iter().any(|word| first.is_word(word))) {
        return Err(Exception::readonly(format!("this user runs {} only", LOGIN_STATEMENTS.join(", "))));
    }
    check_login_names(text)
}

fn check_login_names(text: &[u8]) -> Result<()> {
    let mut names = sql::names(text).peekable();
    while let Some(name) = names.next() {
        let next = names.peek();
        if let Some(violation) = login_violation(&name, next) {
            return Err(Exception::readonly(violation));
        }
    }
    Ok(())
}

fn login_violation(name: &sql::Name, next: Option<&sql::Name>) -> Option<String> {
    let lower = name.text.to_lowercase();
    let qualified = |by: &str| name.qualifier.as_ref().is_some_and(|qualifier| qualifier == by);
    if name.is_word("SETTINGS") && !qualified("system") {
        let text =
            "this user cannot use SETTINGS in a part of a statement: put it at the end, with whole values";
        return Some(text.to_owned());
    }
    if name.is_word("SHOW") && next.is_none_or(|kind| !SHOW_STATEMENTS.iter().any(|word| kind.is_word(word)))
    {
        return Some(format!("this user can SHOW {} only", SHOW_STATEMENTS.join(", ")));
    }
    if lower == "identifier" {
        return Some("this user cannot send names as parameters".to_owned());
    }
    if name.called && lower.starts_with("merge") {
        return Some(format!("this user cannot call {lower}()"));
    }
    if name.qualifier.is_none() && lower == "system" {
        let allowed = next.is_some_and(|table| {
            table.qualifier.as_deref() == Some("system") && LOGIN_SYSTEM_TABLES.contains(&&*table.text)
        });
        if !allowed {
            return Some(format!("this user reads of system: {}", LOGIN_SYSTEM_TABLES.join(", ")));
        }
    }
    None
}

/// Rejects parameters of type `Identifier` that name a forbidden function.
pub(crate) fn check_parameter(value: &str) -> Result<()> {
    let name = value.trim().trim_matches(['`', '"']).to_lowercase();
    if FORBIDDEN_FUNCTIONS.contains(&name.as_str()) {
        return Err(Exception::readonly(format!("this user cannot send `{name}` as a parameter")));
    }
    Ok(())
}

/// Whether read-only users may change a setting.
pub(crate) fn is_changeable(name: &str) -> bool {
    ALLOWED_SETTING_PREFIXES.iter().any(|start| name.starts_with(start))
        && !FORBIDDEN_SETTING_PARTS.iter().any(|part| name.contains(part))
}

pub(crate) fn check_setting(name: &str) -> Result<()> {
    if is_changeable(name) {
        Ok(())
    } else {
        Err(Exception::readonly(format!(
            "this user cannot change the setting {name}: omit it; SELECT name FROM system.settings WHERE NOT readonly lists those it can"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::StatementClass::{Control, GlobalWrite, Unknown, Write};
    use super::*;

    fn is_allowed(text: &str) -> bool {
        check_statement(text.as_bytes(), StatementClass::Read).is_ok()
    }

    #[test]
    fn reads_of_tables_are_allowed() {
        for text in [
            "SELECT count() FROM video_daily WHERE url = 'file(1)'",
            "SELECT domain(page_url), URLHash('x'), sum(views) FROM t FORMAT JSON",
            "DESCRIBE TABLE t",
            "SELECT * FROM numbers(3)",
        ] {
            assert!(is_allowed(text), "{text}");
        }
    }

    #[test]
    fn files_and_network_are_forbidden() {
        for text in [
            "SELECT file('/etc/passwd')",
            "SELECT `file`('/etc/passwd')",
            "SELECT `\\x66ile`('/etc/passwd')",
            "SELECT * APPLY file FROM (SELECT '/etc/passwd')",
            "SELECT arrayMap(file, ['/etc/passwd'])",
            "DESCRIBE url/**/('http://127.0.0.1:1/')",
            "DESCRIBE s3Cluster('x')",
            "SELECT * FROM deltaLakeLocal('/')",
        ] {
            assert!(!is_allowed(text), "{text}");
        }
        for class in [Write, GlobalWrite, Control, Unknown] {
            assert!(check_statement(b"SELECT 1", class).is_err(), "{class:?}");
        }
    }

    #[test]
    fn logins_read_no_tables_about_the_engine() {
        let is_allowed = |text: &str| check_login_statement(text.as_bytes()).is_ok();
        for text in [
            "SELECT name, value, readonly FROM system.settings LIMIT 10000",
            "(SELECT a.system, `settings` FROM `system`.`tables` AS a)",
            "WITH x AS (SELECT 1) SELECT * FROM x WHERE y = 'SETTINGS a = 1'",
            "SHOW TABLES",
            "EXPLAIN indexes = 1 SELECT 1",
        ] {
            assert!(is_allowed(text), "{text}");
        }
        for text in [
            "SELECT * FROM (SELECT 1 SETTINGS promql_table = '')",
            "SELECT 1 system.SETTINGS promql_table = ''; SELECT 1 settings max_threads = 1",
            "SELECT 1. settings promql_table = ''",
            "SELECT * FROM system.processes",
            "SELECT * FROM \"system\" . `errors`",
            "SHOW TABLES FROM system",
            "SHOW PROCESSLIST",
            "SELECT * FROM {database:Identifier}.processes",
            "SELECT * FROM merge('system', 'processes')",
            "SELECT * FROM mergeTreeIndex('history', 'posts')",
            "FROM system.one SELECT 1",
            "SET ROLE ALL",
            "",
        ] {
            assert!(!is_allowed(text), "{text}");
        }
    }

    #[test]
    fn conditions_have_the_restrictions_of_statements() {
        let is_allowed = |text: &str, is_login| check_condition(text.as_bytes(), is_login).is_ok();
        for text in ["views > 3 AND name IN ('SELECT', 'b')", "lower(name) LIKE 'a%'", "`select` = 1"] {
            assert!(is_allowed(text, false) && is_allowed(text, true), "{text}");
        }
        for text in
            ["id IN (SELECT 1)", "file('x') = ''", "x IN url('http://127.0.0.1:1')", "`\\x66ile`('x')"]
        {
            assert!(!is_allowed(text, false), "{text}");
        }
        assert!(is_allowed("id IN system.processes", false) && !is_allowed("id IN system.processes", true));
    }

    #[test]
    fn settings_with_sql_or_paths_are_forbidden() {
        for name in ["max_threads", "output_format_json_quote_64bit_integers", "readonly"] {
            assert!(check_setting(name).is_ok(), "{name}");
        }
        for name in [
            "additional_result_filter",
            "dialect",
            "output_format_schema",
            "format_template_resultset",
            "allow_experimental_eval_table_function",
            "max_path",
            "priority",
        ] {
            assert!(check_setting(name).is_err(), "{name}");
        }
    }
}
