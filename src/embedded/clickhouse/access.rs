//! What the analysts' user may send: reads only, no way to files or to the network, and settings that change no more than limits and looks.
//! The engine's `readonly=1` does most of it; here is what it leaves open. The service's user is not restricted here.

use super::reply::Failure;
use super::statement;
use super::told::Class;

/// Table functions that leave the database, by how their names begin. Under `readonly=1` a SELECT
/// from them is refused by the engine, but DESCRIBE and some arguments are evaluated before that.
const REACHING: [&str; 32] = [
    "arrowflight",
    "azureblobstorage",
    "cluster",
    "cosn",
    "deltalake",
    "dictionary",
    "eval",
    "executable",
    "file",
    "filesystem",
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

/// Scalar functions whose names begin like those above and that reach nowhere.
const HARMLESS: [&str; 3] = ["urlhash", "urlhierarchy", "urlpathhierarchy"];

/// Scalar functions that read files or ask other machines, which `readonly=1` lets pass. They run
/// without a bracket behind their names too, as in APPLY(file) or arrayMap(file, ..).
const CLOSED: [&str; 6] = ["file", "aiclassify", "aiembed", "aiextract", "aigenerate", "aitranslate"];

/// Settings that analysts may send, by how their names begin.
const SETTINGS: [&str; 21] = [
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
    "priority",
    "readonly",
];

/// Parts of names of settings that stay closed although their names begin well: they name files.
const CLOSED_PARTS: [&str; 4] = ["schema", "path", "file", "template"];

/// Refuses what an analyst may not run.
pub(super) fn check_statement(text: &[u8], class: Class) -> Result<(), Failure> {
    if class != Class::Read {
        return Err(Failure::readonly("this user only reads: use the service's user to change anything"));
    }
    match statement::names(text).find_map(|name| refusal(&name)) {
        Some(refusal) => Err(Failure::readonly(refusal)),
        None => Ok(()),
    }
}

fn refusal(name: &statement::Name) -> Option<String> {
    let lower = name.text.to_lowercase();
    if name.escaped {
        return Some("this user cannot use backslashes in quoted names".to_owned());
    }
    if CLOSED.contains(&lower.as_str()) {
        return Some(format!("{lower}() is closed to this user, and so is the name"));
    }
    let reaches =
        REACHING.iter().any(|start| lower.starts_with(start)) && !HARMLESS.contains(&lower.as_str());
    (name.called && reaches).then(|| format!("{lower}() is closed to this user: it leaves the database"))
}

/// Refuses a parameter that stands for a name which is closed.
pub(super) fn check_parameter(value: &str) -> Result<(), Failure> {
    let name = value.trim().trim_matches(['`', '"']).to_lowercase();
    if CLOSED.contains(&name.as_str()) {
        return Err(Failure::readonly(format!("a parameter of this user cannot be `{name}`")));
    }
    Ok(())
}

/// Refuses a setting that an analyst may not send.
pub(super) fn check_setting(name: &str) -> Result<(), Failure> {
    let open = SETTINGS.iter().any(|start| name.starts_with(start))
        && !CLOSED_PARTS.iter().any(|part| name.contains(part));
    if open {
        Ok(())
    } else {
        Err(Failure::readonly(format!("the setting {name} is closed to this user: leave it out")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> bool {
        check_statement(text.as_bytes(), Class::Read).is_ok()
    }

    #[test]
    fn reads_of_tables_are_open() {
        for text in [
            "SELECT count() FROM video_daily WHERE url = 'file(1)'",
            "SELECT domain(page_url), URLHash('x'), sum(views) FROM t FORMAT JSON",
            "DESCRIBE TABLE t",
            "SELECT * FROM numbers(3)",
        ] {
            assert!(open(text), "{text}");
        }
    }

    #[test]
    fn every_way_to_files_and_network_is_closed() {
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
            assert!(!open(text), "{text}");
        }
        for class in [Class::Write, Class::GlobalWrite, Class::Control, Class::Unknown] {
            assert!(check_statement(b"SELECT 1", class).is_err(), "{class:?}");
        }
    }

    #[test]
    fn settings_that_carry_sql_or_paths_are_closed() {
        for name in ["max_threads", "output_format_json_quote_64bit_integers", "readonly"] {
            assert!(check_setting(name).is_ok(), "{name}");
        }
        for name in [
            "additional_result_filter",
            "additional_table_filters",
            "dialect",
            "output_format_schema",
            "format_template_resultset",
            "allow_experimental_eval_table_function",
            "max_path",
        ] {
            assert!(check_setting(name).is_err(), "{name}");
        }
    }
}
