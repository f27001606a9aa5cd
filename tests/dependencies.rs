//! What the service is made of, as far as that can be told without a network: every crate comes from crates.io under a licence
//! that deny.toml allows, and docs/security.md tells of every one that is used directly. Advisories are `make audit`'s. And no
//! module uses one that stands above it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn told_by(program: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// The crates that are built on this machine, tests' included, without the service itself.
fn crates() -> Vec<Value> {
    let host = told_by("rustc", &["-vV"]);
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let arguments = ["metadata", "--offline", "--locked", "--format-version", "1", "--filter-platform", host];
    let told: Value = serde_json::from_str(&told_by(&cargo(), &arguments)).unwrap();
    let crates = told["packages"].as_array().unwrap().iter();
    let crates: Vec<_> = crates.filter(|one| !one["source"].is_null()).cloned().collect();
    assert!(crates.len() > 200, "{}", crates.len());
    crates
}

fn licence(one: &Value) -> &str {
    one["license"].as_str().unwrap_or_default()
}

/// The texts of a list in deny.toml.
fn listed<'a>(deny: &'a str, name: &str) -> Vec<&'a str> {
    let list = deny.split_once(&format!("\n{name} = [")).unwrap().1.split_once(']').unwrap().0;
    list.split('"').skip(1).step_by(2).collect()
}

/// Whether a licence in SPDX's words is satisfied by what is allowed; the older `A/B` means either.
fn satisfied(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let holds = either(&words, &mut at, allowed);
    assert_eq!(at, words.len(), "{expression} was not understood");
    holds
}

fn either(words: &[&str], at: &mut usize, allowed: &BTreeSet<&str>) -> bool {
    let mut holds = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        holds |= both(words, at, allowed);
    }
    holds
}

fn both(words: &[&str], at: &mut usize, allowed: &BTreeSet<&str>) -> bool {
    let mut holds = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        holds &= one(words, at, allowed);
    }
    holds
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<&str>) -> bool {
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    if word == "(" {
        let holds = either(words, at, allowed);
        assert_eq!(words.get(*at), Some(&")"));
        *at += 1;
        return holds;
    }
    if words.get(*at) == Some(&"WITH") {
        let whole = format!("{word} WITH {}", words[*at + 1]);
        *at += 2;
        return allowed.contains(whole.as_str());
    }
    allowed.contains(word)
}

#[test]
fn expressions_of_licences_are_understood() {
    let allowed = BTreeSet::from(["MIT", "ISC", "X WITH Y"]);
    for good in
        ["MIT", "GPL OR MIT", "GPL/MIT", "MIT AND ISC", "(GPL OR MIT) AND ISC", "X WITH Y", "X WITH Z OR ISC"]
    {
        assert!(satisfied(good, &allowed), "{good}");
    }
    for bad in ["GPL", "MIT AND GPL", "(GPL OR X) AND ISC", "X", "MIT WITH Y", "GPL OR X WITH Z"] {
        assert!(!satisfied(bad, &allowed), "{bad}");
    }
}

#[test]
fn every_crate_comes_from_crates_io_under_an_allowed_licence() {
    let (deny, crates) = (read("deny.toml"), crates());
    assert_eq!(listed(&deny, "allow-registry"), [CRATES_IO.trim_start_matches("registry+")]);
    let allowed: BTreeSet<_> = listed(&deny, "allow").into_iter().collect();
    for one in &crates {
        let name = &one["name"];
        assert_eq!(one["source"], CRATES_IO, "{name}");
        assert!(satisfied(licence(one), &allowed), "{name}: {} is not in deny.toml", licence(one));
    }
    for licence_of in &allowed {
        let fewer = allowed.iter().copied().filter(|other| other != licence_of).collect();
        let needed = crates.iter().any(|one| !satisfied(licence(one), &fewer));
        assert!(needed, "no crate needs {licence_of}: take it out of deny.toml");
    }
    // Other platforms' crates are in the lock file as well.
    let sources = read("Cargo.lock");
    let sources = sources.lines().filter_map(|line| line.strip_prefix("source = "));
    assert!(sources.clone().count() >= crates.len());
    assert!(sources.into_iter().all(|source| source.trim_matches('"') == CRATES_IO));
    // What is built, and not what might be with other features.
    let built = told_by(
        &cargo(),
        &["tree", "--offline", "--locked", "--workspace", "--prefix", "none", "--format", "{p}"],
    );
    let built: BTreeSet<_> = built.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(built.contains("rustls"));
    let banned = deny.split("crate = \"").skip(1).filter_map(|rest| rest.split('"').next());
    assert_eq!(banned.filter(|name| built.contains(name)).collect::<Vec<_>>(), Vec::<&str>::new());
}

/// The crates that a package of the workspace depends on, with their licences.
fn direct() -> BTreeMap<String, String> {
    let arguments = ["metadata", "--offline", "--locked", "--format-version", "1", "--no-deps"];
    let metadata: Value = serde_json::from_str(&told_by(&cargo(), &arguments)).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let dependencies = packages.iter().flat_map(|package| package["dependencies"].as_array().unwrap());
    let names =
        dependencies.filter(|one| one["source"] == CRATES_IO).map(|one| one["name"].as_str().unwrap());
    let crates = crates();
    let of = |name: &str| {
        let mut versions = crates.iter().filter(|one| one["name"] == name);
        licence(versions.next_back().unwrap_or_else(|| panic!("{name} is not built"))).to_owned()
    };
    names.map(|name| (name.to_owned(), of(name))).collect()
}

#[test]
fn the_page_about_security_tells_of_every_crate_that_is_used_directly() {
    let page = read("docs/security.md");
    let table = page.split_once("## Dependencies").expect("a section").1;
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let rows: Vec<Vec<_>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    let told: BTreeMap<String, String> =
        rows.iter().map(|row| (row[1].trim_matches('`').to_owned(), row[2].to_owned())).collect();
    assert_eq!(told, direct(), "the table of docs/security.md is not what Cargo.toml and the crates say");
    assert_eq!(told.len(), rows.len(), "a crate stands there twice");
    for row in rows {
        assert!(!row[3].is_empty(), "{} has no purpose", row[1]);
    }
}

/// The files below `src/`, by their paths, with their texts.
fn sources() -> Vec<(String, String)> {
    let mut sources = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
            sources.push((name, std::fs::read_to_string(&path).unwrap_or_default()));
        }
    }
    sources
}

/// The places in the program, by the names of their files, where one of these texts stands.
fn places(ways: &[&'static str]) -> BTreeSet<(String, &'static str)> {
    let mut places = BTreeSet::new();
    for (name, text) in sources() {
        let found = ways.iter().filter(|way| text.contains(**way));
        places.extend(found.map(|way| (name.clone(), *way)));
    }
    places
}

/// What sqlx leaves in disorder on a connection when it is given up stands where that is taken care of.
#[test]
fn transactions_and_copies_of_sqlx_are_begun_in_one_place() {
    assert_eq!(
        places(&["pg.begin(", "pool.begin(", "connection.begin(", ".begin_with(", ".copy_in_raw("]),
        BTreeSet::from([("src/store/postgres/transaction.rs".to_owned(), ".copy_in_raw(")]),
        "begin transactions by store::Transaction, and copy by it"
    );
}

/// A client that is begun elsewhere cannot be made on a machine without a list of authorities.
#[test]
fn http_clients_are_begun_in_one_place() {
    assert_eq!(
        places(&["Client::builder(", "Client::new(", "ClientBuilder::new("]),
        BTreeSet::from([("src/tls.rs".to_owned(), "Client::builder(")]),
        "begin HTTP clients by tls::client"
    );
}

/// The map of ARCHITECTURE.md, edge by edge: which modules each module uses, in the order of `src/lib.rs`.
const USES: [(&str, &[&str]); 20] = [
    (
        "cli",
        &[
            "sandbox",
            "doctor",
            "server",
            "worker",
            "export",
            "import",
            "rollup",
            "platforms",
            "app",
            "store",
            "config",
            "shutdown",
            "telemetry",
            "tls",
            "model",
        ],
    ),
    ("sandbox", &["model"]),
    ("doctor", &["server", "worker", "platforms", "app", "store", "config", "telemetry", "model"]),
    (
        "server",
        &["worker", "api", "platforms", "http", "app", "store", "config", "shutdown", "telemetry", "model"],
    ),
    ("worker", &["platforms", "app", "store", "config", "failpoint", "shutdown", "telemetry", "model"]),
    ("export", &["app", "store", "model"]),
    ("import", &["app", "store", "model"]),
    ("rollup", &["app", "store", "model"]),
    ("api", &["platforms", "http", "app", "store", "telemetry", "model"]),
    ("platforms", &["store", "telemetry", "tls", "model"]),
    ("http", &["app", "response_cache", "store", "shutdown", "telemetry", "model"]),
    ("app", &["response_cache", "store", "config", "shutdown", "tls", "model"]),
    ("response_cache", &["store"]),
    ("store", &["config", "failpoint", "telemetry", "model"]),
    ("config", &["model"]),
    ("failpoint", &[]),
    ("shutdown", &[]),
    ("telemetry", &["tls", "model"]),
    ("tls", &[]),
    ("model", &[]),
];

/// A macro of the program, and the module that it is of.
const MACRO: (&str, &str) = ("traced", "telemetry");

/// The modules that a line of code names by `crate::`.
#[track_caller]
fn named_modules(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or_default();
    let mut named = Vec::new();
    for rest in code.split("crate::").skip(1) {
        let paths: Vec<_> = match rest.strip_prefix('{') {
            Some(list) => {
                let (list, _) = list.split_once('}').unwrap_or_else(|| panic!("on one line alone: {line}"));
                assert!(!list.contains('{'), "without a list within: {line}");
                list.split(',').collect()
            }
            None => vec![rest],
        };
        let ends = |letter: char| !letter.is_ascii_alphanumeric() && letter != '_';
        let names = paths.into_iter().filter_map(|path| path.trim().split(ends).next());
        named.extend(names.map(|name| if name == MACRO.0 { MACRO.1 } else { name }));
    }
    named
}

#[test]
fn every_module_uses_those_of_the_map_and_no_other() {
    let map = read("src/lib.rs");
    let order: Vec<_> =
        map.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(USES.map(|(module, _)| module).to_vec(), order, "src/lib.rs has other modules");
    let place = |module: &str| order.iter().position(|known| *known == module);
    let sources = sources();
    let mut unused = BTreeSet::new();
    for (module, uses) in USES {
        for used in uses {
            assert!(place(used) > place(module), "{module} uses {used}, which stands above it");
            unused.insert((module, *used));
        }
    }
    let allowed = unused.clone();
    let mut forbidden = BTreeSet::new();
    for (name, text) in &sources {
        let path = name.trim_start_matches("src/");
        let module = path.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        for used in text.lines().flat_map(named_modules).filter(|used| *used != module) {
            unused.remove(&(module, used));
            if !allowed.contains(&(module, used)) {
                forbidden.insert(format!("{name} uses {used}"));
            }
        }
    }
    assert_eq!(forbidden, BTreeSet::new(), "see the map in ARCHITECTURE.md");
    assert_eq!(unused, BTreeSet::new(), "nobody uses these: take them out");
}

#[test]
fn modules_are_found_in_every_way_of_naming_them() {
    assert_eq!(named_modules("use crate::app::{Clock, Databases};"), ["app"]);
    assert_eq!(named_modules("use crate::{api, store::keys}; // crate::http"), ["api", "store"]);
    assert_eq!(named_modules("    let client = crate::app::clickhouse(args);"), ["app"]);
    assert_eq!(named_modules("fn f() -> Result<crate::model::A, crate::store::Error>"), ["model", "store"]);
    assert_eq!(named_modules("let span = crate::traced!(\"search\");"), ["telemetry"]);
}

#[test]
#[should_panic(expected = "on one line alone")]
fn a_list_of_modules_over_several_lines_is_refused() {
    named_modules("use crate::{");
}

#[test]
#[should_panic(expected = "without a list within")]
fn a_list_of_modules_with_one_within_is_refused() {
    named_modules("use crate::{api::{v1, links}, store};");
}

/// Statements are texts of the program: what comes from outside is bound. sqlx and `store::clickhouse::client` take no other text
/// without being told that it is safe, and ClickHouse's client takes any: these are the places that give them one, each made
/// of the program's constants.
#[test]
fn statements_are_made_of_constants_alone() {
    let told = places(&["AssertSqlSafe(", "query_raw(&", "query_raw(sql)"]);
    let known = BTreeSet::from([
        // an index of the database, by the name that Postgres tells
        ("src/store/migrate/postgres.rs".to_owned(), "AssertSqlSafe("),
        // files of the program as a cluster takes them, and the database that configuration names, which is checked
        ("src/store/migrate/clickhouse.rs".to_owned(), "query_raw(&"),
        // a file of the program without its comments
        ("src/store/analytics/history.rs".to_owned(), "query_raw(&"),
        // a file of the program, as a cluster takes it
        ("src/store/clickhouse/history_writer/mod.rs".to_owned(), "AssertSqlSafe("),
        // texts that are written down there, one of them as a cluster takes it
        ("src/store/clickhouse/rollup.rs".to_owned(), "query_raw(sql)"),
        ("src/store/clickhouse/rollup.rs".to_owned(), "AssertSqlSafe("),
        // tables of the service's own database, by the names that ClickHouse tells, and conditions written down there
        ("src/store/lifecycle/purge.rs".to_owned(), "AssertSqlSafe("),
        // a table that is written down there
        ("src/store/clickhouse/diagnosis.rs".to_owned(), "query_raw(&"),
    ]);
    assert_eq!(
        told, known,
        "a new place that vouches for a statement: see that nothing from outside is in it, and add it"
    );
}

/// `store::clickhouse::client` bounds a statement to ClickHouse, and has traces and metrics tell of it.
#[test]
fn statements_to_clickhouse_are_watched() {
    let told: BTreeSet<_> = places(&["query_raw("]).into_iter().map(|(file, _)| file).collect();
    let known = [
        "src/store/clickhouse/client.rs",
        // questions of requests, each watched when its turn has come
        "src/store/analytics/history.rs",
        // rows that `tidemark verify` reads as they come
        "src/store/clickhouse/rollup.rs",
        // other commands, and whether the schema is there, each with a bound of its own
        "src/store/clickhouse/users.rs",
        "src/store/clickhouse/cluster/schema.rs",
        "src/store/clickhouse/diagnosis.rs",
        "src/store/migrate/clickhouse.rs",
    ];
    assert_eq!(told, known.map(str::to_owned).into(), "ask by store::watched");
}
