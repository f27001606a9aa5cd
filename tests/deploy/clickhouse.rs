//! deploy/clickhouse: libchdb of the same release knows all settings, and embedded ClickHouse uses the same.

use std::path::Path;

use harness::Stack;
use roxmltree::{Document, Node};

use crate::containers::{environment, is_in_volume, services};
use crate::text;

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Node<'a, 'input> {
    node.children().find(|child| child.has_tag_name(name)).unwrap_or_else(|| panic!("no {name}"))
}

/// The settings of a section with their values.
fn settings(section: Node<'_, '_>) -> Vec<(String, String)> {
    let elements = section.children().filter(Node::is_element);
    elements
        .map(|node| (node.tag_name().name().to_owned(), node.text().unwrap_or_default().trim().to_owned()))
        .collect()
}

/// Whether a system table lists a setting.
async fn has_setting(table: &str, name: &str) -> bool {
    let client = &Stack::shared().databases.clickhouse;
    let query = client.query(&format!("select count() from system.{table} where name = ?")).bind(name);
    query.fetch_one::<u64>().await.unwrap() == 1
}

#[tokio::test]
async fn engine_has_all_settings() {
    let config = text("deploy/clickhouse/config.xml");
    let config = Document::parse(&config).unwrap();
    let root = config.root_element();
    for (name, _) in settings(child(root, "merge_tree")) {
        assert!(has_setting("merge_tree_settings", &name).await, "{name}");
    }
    let sections = ["logger", "merge_tree", "backups"];
    for node in root.children().filter(Node::is_element) {
        let name = node.tag_name().name();
        let is_log = name.ends_with("_log");
        if !is_log && !sections.contains(&name) {
            assert!(has_setting("server_settings", name).await, "{name}");
        }
    }
    let users = text("deploy/clickhouse/users.xml");
    let users = Document::parse(&users).unwrap();
    let profile = child(child(users.root_element(), "profiles"), "tidemark");
    for (name, value) in settings(profile) {
        assert!(has_setting("settings", &name).await, "{name}");
        // The engine of the tests has the same value.
        let client = &Stack::shared().databases.clickhouse;
        let query = client.query("select value from system.settings where name = ?").bind(&name);
        assert_eq!(query.fetch_one::<String>().await.unwrap(), value, "{name}");
    }
}

#[test]
fn backup_folder_is_a_documented_volume() {
    let config = text("deploy/clickhouse/config.xml");
    let config = Document::parse(&config).unwrap();
    let allowed = settings(child(config.root_element(), "backups"));
    let [(name, folder)] = &allowed[..] else { panic!("{allowed:?}") };
    assert_eq!(name, "allowed_path");
    assert!(is_in_volume(&services()["clickhouse"], folder), "{folder} is lost with the container");
    assert!(text("docs/backups.md").contains(&format!("--directory={}", folder.trim_end_matches('/'))));
}

#[tokio::test]
async fn server_logs_have_valid_ttls() {
    let config = text("deploy/clickhouse/config.xml");
    let config = Document::parse(&config).unwrap();
    let client = &Stack::shared().databases.clickhouse;
    let mut logs = 0;
    for log in config.root_element().children().filter(|node| node.tag_name().name().ends_with("_log")) {
        let name = log.tag_name().name();
        let Some((kind, clause)) = settings(log).pop() else {
            assert_eq!(log.attribute("remove"), Some("remove"), "{name}");
            continue;
        };
        let clause = match kind.as_str() {
            "ttl" => format!("engine = MergeTree order by event_date ttl {clause}"),
            _ => clause,
        };
        let columns = "event_date Date, finish_date Date, finish_time_us UInt64";
        let statement = format!("explain ast create table t ({columns}) {clause}");
        let lines: Vec<String> = client.query_raw(&statement).fetch_all().await.unwrap();
        assert!(lines.iter().any(|line| line.contains("TTLElement")), "{name} has no TTL: {lines:?}");
        logs += 1;
    }
    assert!(logs >= 3, "{logs}");
}

#[test]
fn server_is_as_durable_as_embedded_clickhouse() {
    let stack = std::env::var("TIDEMARK_TEST_STACK").expect("no databases to test with: run `make test`");
    let embedded = Path::new(&stack).parent().unwrap().join("clickhouse/engine.xml");
    let embedded = std::fs::read_to_string(embedded).unwrap();
    let (embedded, server) = (Document::parse(&embedded).unwrap(), text("deploy/clickhouse/config.xml"));
    let server = Document::parse(&server).unwrap();
    let merge_tree = |document: &Document<'_>| settings(child(document.root_element(), "merge_tree"));
    assert_eq!(merge_tree(&server), merge_tree(&embedded));
    assert!(merge_tree(&server).iter().any(|(name, value)| name == "fsync_after_insert" && value == "1"));
}

#[test]
fn only_user_is_tidemark_with_password_from_environment() {
    let services = services();
    let users = text("deploy/clickhouse/users.xml");
    let users = Document::parse(&users).unwrap();
    let list = child(users.root_element(), "users");
    assert_eq!(child(list, "default").attribute("remove"), Some("remove"));
    let names: Vec<_> = settings(list).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["default", "tidemark"]);
    let user = child(list, "tidemark");
    let variable = child(user, "password").attribute("from_env").expect("a variable with the password");
    assert!(environment(&services["clickhouse"]).contains_key(variable), "{variable}");
    assert_eq!(child(user, "profile").text(), Some("tidemark"));
    for name in ["api", "tracker", "migrate"] {
        assert_eq!(environment(&services[name])["TIDEMARK_CLICKHOUSE_USER"], "tidemark");
    }
    // The image would create another user, in a folder that is read-only.
    assert_eq!(environment(&services["clickhouse"])["CLICKHOUSE_SKIP_USER_SETUP"], "1");
}
