//! The module map of ARCHITECTURE.md: which modules exist, and which each may use.

use std::collections::BTreeSet;

use crate::{files, read};

/// The modules that each module uses, in dependency order.
const USES: [(&str, &[&str]); 21] = [
    (
        "cli",
        &[
            "doctor",
            "server",
            "worker",
            "export",
            "import",
            "rollup",
            "platforms",
            "app",
            "media",
            "store",
            "config",
            "shutdown",
            "telemetry",
            "tls",
            "model",
        ],
    ),
    ("doctor", &["server", "worker", "platforms", "app", "media", "store", "config", "telemetry", "model"]),
    (
        "server",
        &["worker", "api", "platforms", "http", "app", "store", "config", "shutdown", "telemetry", "model"],
    ),
    (
        "worker",
        &[
            "import",
            "platforms",
            "app",
            "media",
            "store",
            "config",
            "failpoint",
            "shutdown",
            "telemetry",
            "model",
        ],
    ),
    ("export", &["app", "store", "parquet_writer", "model"]),
    ("import", &["app", "store", "model"]),
    ("rollup", &["app", "store", "model"]),
    ("api", &["platforms", "http", "app", "response_cache", "store", "telemetry", "model"]),
    ("platforms", &["store", "telemetry", "tls", "model"]),
    ("http", &["app", "response_cache", "store", "shutdown", "telemetry", "parquet_writer", "model"]),
    ("app", &["media", "response_cache", "store", "config", "shutdown", "telemetry", "tls", "model"]),
    ("media", &["model"]),
    ("response_cache", &["store"]),
    ("store", &["config", "failpoint", "telemetry", "model"]),
    ("config", &["model"]),
    ("failpoint", &[]),
    ("shutdown", &[]),
    ("telemetry", &["tls", "model"]),
    ("tls", &[]),
    ("parquet_writer", &["model"]),
    ("model", &[]),
];

/// A macro and its module.
const MACRO: (&str, &str) = ("traced", "telemetry");

/// The modules that a line of code refers to.
#[track_caller]
fn modules_used_in(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or_default();
    let mut modules = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let paths: Vec<_> = match rest.strip_prefix('{') {
            Some(list) => {
                let (list, _) =
                    list.split_once('}').unwrap_or_else(|| panic!("write the list on one line: {line}"));
                assert!(!list.contains('{'), "do not nest lists: {line}");
                list.split(',').collect()
            }
            None => vec![rest],
        };
        let ends = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
        let names = paths.into_iter().filter_map(|path| path.trim().split(ends).next());
        modules.extend(names.map(|name| if name == MACRO.0 { MACRO.1 } else { name }));
    }
    modules
}

#[test]
fn modules_use_only_modules_below_them() {
    let order = USES.map(|(module, _)| module);
    let position = |module: &str| order.iter().position(|other| *other == module);
    let sources = files("src");
    let mut unused = BTreeSet::new();
    for (module, uses) in USES {
        for used in uses {
            assert!(position(used) > position(module), "{module} uses {used}, which is above it");
            unused.insert((module, *used));
        }
    }
    let allowed = unused.clone();
    let mut forbidden = BTreeSet::new();
    for (name, text) in &sources {
        let path = name.trim_start_matches("src/");
        let module = path.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        for used in text.lines().flat_map(modules_used_in).filter(|used| *used != module) {
            unused.remove(&(module, used));
            if !allowed.contains(&(module, used)) {
                forbidden.insert(format!("{name} uses {used}"));
            }
        }
    }
    assert_eq!(forbidden, BTreeSet::new(), "these edges are not allowed");
    assert_eq!(unused, BTreeSet::new(), "these edges are unused: remove them");
}

#[test]
fn modules_are_found_in_all_notations() {
    assert_eq!(modules_used_in("use crate::app::{Clock, Databases};"), ["app"]);
    assert_eq!(modules_used_in("use crate::{api, store::keys}; // crate::http"), ["api", "store"]);
    assert_eq!(modules_used_in("    let client = crate::app::clickhouse(args);"), ["app"]);
    assert_eq!(modules_used_in("fn f() -> Result<crate::model::A, crate::store::Error>"), ["model", "store"]);
    assert_eq!(modules_used_in("let span = crate::traced!(\"search\");"), ["telemetry"]);
}

#[test]
#[should_panic(expected = "write the list on one line")]
fn list_over_several_lines_is_rejected() {
    modules_used_in("use crate::{");
}

#[test]
#[should_panic(expected = "do not nest lists")]
fn nested_list_is_rejected() {
    modules_used_in("use crate::{api::{v1, links}, store};");
}

/// The words in backticks.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn architecture_lists_the_modules_in_order() {
    let lib = read("src/lib.rs");
    let modules = lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    assert_eq!(modules.collect::<Vec<_>>(), USES.map(|(module, _)| module), "src/lib.rs");
    let page = read("ARCHITECTURE.md");
    let table = page.split_once("## Modules").unwrap().1.split_once("\n`store` by room").unwrap().0;
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let listed = rows.flat_map(|row| code_words(row.split('|').nth(1).unwrap()));
    let (crates, modules): (Vec<_>, Vec<_>) = listed.partition(|name| name.starts_with("crates/"));
    assert_eq!(modules, USES.map(|(module, _)| module), "ARCHITECTURE.md");
    assert_eq!(
        crates,
        ["crates/chdb-http", "crates/harness", "crates/picture-copy", "crates/sandbox", "crates/table-file"],
        "ARCHITECTURE.md"
    );
}

#[test]
fn architecture_lists_the_rooms_of_the_store() {
    let page = read("ARCHITECTURE.md");
    let (_, sentence) = page.split_once("\n`store` by room: ").unwrap();
    let sentence = sentence.split("\n\n").next().unwrap();
    let rooms = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/store")).unwrap();
    let rooms = rooms.map(Result::unwrap).filter(|entry| entry.path().is_dir());
    let rooms: BTreeSet<_> = rooms.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert_eq!(code_words(sentence).map(str::to_owned).collect::<BTreeSet<_>>(), rooms);
}

#[test]
fn chdb_http_does_not_know_tidemark() {
    for (name, text) in files("crates/chdb-http") {
        let mentions = text.lines().find(|line| line.to_lowercase().contains("tidemark"));
        assert_eq!(mentions, None, "{name}");
    }
}
