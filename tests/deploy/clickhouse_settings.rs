//! deploy/clickhouse/settings.tsv: lists every ClickHouse setting that the repository names, and the engine has all of them.

use std::collections::{BTreeMap, BTreeSet};

use harness::Stack;
use serde::Deserialize;

use crate::{path, text};

/// Settings that are not of tier Production: the embedded engine lets its read-only user set them or refuses it, and relies on
/// neither; a text of one carries the tenant of a login to row policies, whatever it means otherwise.
const OTHER_TIERS: [(&str, &str); 3] = [
    ("allow_experimental_eval_table_function", "Experimental"),
    ("promql_table", "Experimental"),
    ("session_timezone", "Beta"),
];

/// Settings of Postgres and of reqwest with the name of one of ClickHouse.
const OTHER_PROGRAMS: [&str; 2] = ["connect_timeout", "max_connections"];

/// Settings by name: the system table that lists one, and where it is named.
type Table = BTreeMap<String, (String, BTreeSet<String>)>;

fn table() -> Table {
    let mut table = Table::new();
    for line in text("deploy/clickhouse/settings.tsv").lines().filter(|line| !line.starts_with('#')).skip(1) {
        let [name, system_table, places] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let places = places.split(',').map(str::to_owned).collect();
        let previous = table.insert(name.to_owned(), (system_table.to_owned(), places));
        assert_eq!(previous, None, "{name} is listed twice");
    }
    table
}

/// The table's name for the place of a file; None for one that sets nothing.
fn place(file: &str) -> Option<&'static str> {
    match file {
        "src/store/clickhouse/users.rs" => Some("users"),
        _ if file.starts_with("src/store/clickhouse/cluster/") => Some("cluster"),
        _ if file.starts_with("src/") => Some(if file.ends_with(".sql") { "statements" } else { "program" }),
        _ if file.starts_with("schemas/") => Some("schemas"),
        _ if file.starts_with("crates/chdb-http/src/") => Some("embedded"),
        "deploy/clickhouse/settings.tsv" => None,
        _ if file.starts_with("deploy/") || file == "docker-compose.yml" => Some("deploy"),
        _ if file.starts_with("docs/measurements/") || file.ends_with(".png") => None,
        _ if file.starts_with("docs/") || file == "README.md" => Some("docs"),
        _ => None,
    }
}

/// The files that may name a setting, with their places.
fn files() -> Vec<(&'static str, String)> {
    let mut names = vec!["docker-compose.yml".to_owned(), "README.md".to_owned()];
    let mut folders =
        ["src", "schemas", "crates/chdb-http/src", "deploy", "docs"].map(str::to_owned).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(path(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() { &mut folders } else { &mut names }.push(name);
        }
    }
    names.iter().filter_map(|name| Some((place(name)?, text(name)))).collect()
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

/// The words after a text that only a setting follows: in an option of the embedded engine, which ignores unknown ones, or in a
/// call of the client.
fn assigned<'t>(place: &str, text: &'t str) -> impl Iterator<Item = &'t str> {
    let (start, end) = if place == "embedded" { ("\"--", '=') } else { ("with_setting(\"", '"') };
    let names = text.split(start).skip(1).filter_map(move |rest| Some(rest.split_once(end)?.0));
    names.filter(|name| name.chars().all(is_word) && !name.starts_with("param_"))
}

#[derive(clickhouse::Row, Deserialize)]
struct Setting {
    system_table: String,
    name: String,
    is_obsolete: bool,
    tier: String,
    alias_for: String,
}

/// All settings of the engine. Its system tables differ in the columns that describe a setting.
async fn engine_settings() -> Vec<Setting> {
    let sql = "SELECT 'settings' AS system_table, name, toBool(is_obsolete) AS is_obsolete, toString(tier) AS tier, alias_for
            FROM system.settings
        UNION ALL
        SELECT 'merge_tree_settings', name, toBool(is_obsolete), toString(tier), '' FROM system.merge_tree_settings
        UNION ALL
        SELECT 'server_settings', name, toBool(is_obsolete), 'Production', '' FROM system.server_settings";
    Stack::shared().clickhouse().query_raw(sql).fetch_all().await.unwrap()
}

/// A name of several words is a setting wherever it stands; one of a single word is where the table says.
#[tokio::test]
async fn table_lists_every_setting_that_a_file_names() {
    let table = table();
    let known: BTreeSet<_> = engine_settings().await.into_iter().map(|setting| setting.name).collect();
    let mut named: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let files = files();
    for (place, text) in &files {
        let is_setting = |word: &&str| match table.get(*word) {
            Some((_, places)) if !word.contains('_') => places.contains(*place),
            Some(_) => true,
            None => word.contains('_') && known.contains(*word) && !OTHER_PROGRAMS.contains(word),
        };
        let words = text.split(|character| !is_word(character)).filter(is_setting);
        for name in words.chain(assigned(place, text)) {
            named.entry(name).or_default().insert((*place).to_owned());
        }
    }
    let listed: BTreeMap<_, _> = table.iter().map(|(name, (_, places))| (&**name, places.clone())).collect();
    let names: BTreeSet<_> = named.keys().chain(listed.keys()).collect();
    let different: Vec<_> = names
        .into_iter()
        .filter(|name| named.get(**name) != listed.get(**name))
        .map(|name| format!("{name}: named by {:?}, listed {:?}", named.get(name), listed.get(name)))
        .collect();
    assert!(different.is_empty(), "correct deploy/clickhouse/settings.tsv:\n{}", different.join("\n"));
}

#[tokio::test]
async fn engine_has_every_setting_of_the_table() {
    let mut wrong = Vec::new();
    let engine: BTreeMap<_, _> = engine_settings()
        .await
        .into_iter()
        .map(|setting| ((setting.system_table.clone(), setting.name.clone()), setting))
        .collect();
    for (name, (system_table, _)) in table() {
        let Some(setting) = engine.get(&(system_table.clone(), name.clone())) else {
            wrong.push(format!("{name} is not in system.{system_table}"));
            continue;
        };
        let exception = OTHER_TIERS.iter().find(|(other, _)| *other == name);
        let tier = exception.map_or("Production", |(_, tier)| tier);
        if setting.is_obsolete || setting.tier != tier || !setting.alias_for.is_empty() {
            let Setting { is_obsolete, tier, alias_for, .. } = setting;
            wrong.push(format!("{name}: is_obsolete {is_obsolete}, tier {tier}, alias for {alias_for:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
