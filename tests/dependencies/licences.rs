//! Sources and licences of all crates, checked offline against deny.toml and docs/security.md. `make audit` checks advisories.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use crate::read;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn run(program: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    run(&cargo, &[arguments, &["--offline", "--locked"]].concat())
}

fn packages(arguments: &[&str]) -> Vec<Value> {
    let metadata = cargo(&[&["metadata", "--format-version", "1"], arguments].concat());
    let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

/// The packages that are built on this machine, without the workspace.
fn crates() -> Vec<Value> {
    let version = run("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let mut crates = packages(&["--filter-platform", host]);
    crates.retain(|package| !package["source"].is_null());
    assert!(crates.len() > 200, "{}", crates.len());
    crates
}

fn licence(package: &Value) -> &str {
    package["license"].as_str().unwrap_or_default()
}

/// The strings of a list in deny.toml.
fn list<'a>(deny: &'a str, name: &str) -> Vec<&'a str> {
    let list = deny.split_once(&format!("\n{name} = [")).unwrap().1.split_once(']').unwrap().0;
    list.split('"').skip(1).step_by(2).collect()
}

fn is_allowed(package: &Value, allowed: &[Licensee]) -> bool {
    let expression = Expression::parse_mode(licence(package), ParseMode::LAX);
    let expression = expression.unwrap_or_else(|error| panic!("{}: {error}", package["name"]));
    expression.evaluate(|requirement| allowed.iter().any(|licensee| licensee.satisfies(requirement)))
}

#[test]
fn all_crates_have_allowed_sources_and_licences() {
    let (deny, crates) = (read("deny.toml"), crates());
    assert_eq!(list(&deny, "allow-registry"), [CRATES_IO.trim_start_matches("registry+")]);
    let names = list(&deny, "allow");
    let allowed: Vec<_> = names.iter().map(|name| Licensee::parse(name).unwrap()).collect();
    for package in &crates {
        assert_eq!(package["source"], CRATES_IO, "{}", package["name"]);
        let is_allowed = is_allowed(package, &allowed);
        assert!(is_allowed, "{}: {} is not in deny.toml", package["name"], licence(package));
    }
    for (index, name) in names.iter().enumerate() {
        let mut fewer = allowed.clone();
        fewer.remove(index);
        let needed = crates.iter().any(|package| !is_allowed(package, &fewer));
        assert!(needed, "no crate needs {name}: remove it from deny.toml");
    }
    // Cargo.lock also has the crates of other platforms.
    let lock = read("Cargo.lock");
    let sources = lock.lines().filter_map(|line| line.strip_prefix("source = "));
    assert!(sources.clone().count() >= crates.len());
    assert!(sources.into_iter().all(|source| source.trim_matches('"') == CRATES_IO));
}

#[test]
fn banned_crates_are_not_built() {
    let tree = cargo(&["tree", "--workspace", "--prefix", "none", "--format", "{p}"]);
    let built: BTreeSet<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(built.contains("rustls"));
    let deny = read("deny.toml");
    let banned: Vec<_> = deny.split("crate = \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(!banned.is_empty());
    let found: Vec<_> = banned.into_iter().filter(|name| built.contains(name)).collect();
    assert_eq!(found, Vec::<&str>::new());
}

#[test]
fn licence_expressions_are_evaluated() {
    let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(|name| Licensee::parse(name).unwrap());
    let is_allowed = |licence: &str| is_allowed(&serde_json::json!({ "license": licence }), &allowed);
    for licence in ["MIT", "GPL-3.0/MIT", "(GPL-3.0 OR MIT) AND ISC", "Apache-2.0 WITH LLVM-exception"] {
        assert!(is_allowed(licence), "{licence}");
    }
    for licence in ["GPL-3.0", "MIT AND GPL-3.0", "Apache-2.0", "MIT WITH LLVM-exception"] {
        assert!(!is_allowed(licence), "{licence}");
    }
}

/// The direct dependencies of the workspace with their licences.
fn direct_dependencies() -> BTreeMap<String, String> {
    let crates = crates();
    let workspace = packages(&["--no-deps"]);
    let dependencies = workspace.iter().flat_map(|package| package["dependencies"].as_array().unwrap());
    let external = dependencies.filter(|dependency| dependency["source"] == CRATES_IO);
    let names = external.map(|dependency| dependency["name"].as_str().unwrap());
    let licence_of = |name: &str| {
        let mut versions = crates.iter().filter(|package| package["name"] == name);
        licence(versions.next_back().unwrap_or_else(|| panic!("{name} is not built"))).to_owned()
    };
    names.map(|name| (name.to_owned(), licence_of(name))).collect()
}

#[test]
fn security_page_lists_all_direct_dependencies() {
    let page = read("docs/security.md");
    let table = page.split_once("## Dependencies").expect("a section").1;
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    let rows: Vec<Vec<_>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    let listed: BTreeMap<String, String> =
        rows.iter().map(|row| (row[1].trim_matches('`').to_owned(), row[2].to_owned())).collect();
    assert_eq!(listed, direct_dependencies(), "docs/security.md differs from Cargo.toml and the crates");
    assert_eq!(listed.len(), rows.len(), "a crate is listed twice");
    for row in rows {
        assert!(!row[3].is_empty(), "{} has no purpose", row[1]);
    }
}
