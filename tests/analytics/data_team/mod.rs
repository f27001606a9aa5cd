//! A data team's user reads its organization alone, within its limits: embedded ClickHouse has no such users, but takes a
//! users.xml, which gives their rights to the engine's own user. It does not enforce quotas.

mod engine;
mod tenant;

use harness::{IsolatedStores, Stack};
use tempfile::TempDir;
use tidemark::store::clickhouse::client;
use tidemark::store::clickhouse::users::{CONSTANT_SETTINGS, LIMITS, VIEW_TABLES, grants, security_warning};
use uuid::Uuid;

use self::engine::{Engine, configure, users_xml};
use self::tenant::{Parameters, Tenant};
use super::data_page;

/// Queries of all rows, with a filter where `condition` says so.
fn row_queries(database: &str, views: &[String], condition: &str) -> Vec<String> {
    let views = views.iter().map(|view| format!("{database}_public.{view}"));
    let tables =
        VIEW_TABLES.iter().flat_map(|table| ["", " FINAL"].map(|end| format!("{database}.{table}{end}")));
    views.chain(tables).map(|from| format!("SELECT * FROM {from} {condition} ORDER BY ALL")).collect()
}

/// The results of all documented queries.
async fn documented(engine: &Engine, parameters: &Parameters) -> Vec<(&'static str, String)> {
    let mut results = Vec::new();
    let access = ("data-access.md", "SELECT max(date) FROM coverage WHERE org_id = {org:UUID}");
    for (name, sql) in data_page::queries().into_iter().chain([access]) {
        results.push((name, engine.query(sql, parameters).await.unwrap()));
    }
    results
}

/// The results of an engine without restrictions.
struct Expected {
    views: Vec<String>,
    rows: Vec<String>,
    documented: Vec<(&'static str, String)>,
    documented_of_nobody: Vec<(&'static str, String)>,
}

/// The parameters of a tenant's queries with the id of another organization.
fn with_organization(tenant: &Tenant, id: Uuid) -> Parameters {
    let others = tenant.parameters.iter().filter(|(name, _)| *name != "org").cloned();
    others.chain([("org", id.to_string())]).collect()
}

impl Expected {
    async fn of(engine: &Engine, own: &Tenant, other: &Tenant) -> Self {
        let sql = format!("SHOW TABLES FROM {}_public FORMAT TSV", engine.database);
        let views = engine.query(&sql, &[]).await.unwrap();
        let views: Vec<_> = views.lines().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for sql in row_queries(&engine.database, &views, &format!("WHERE org_id = '{}'", own.id)) {
            let result = engine.query(&sql, &[]).await.unwrap();
            assert!(!result.is_empty(), "{sql}");
            rows.push(result);
        }
        let results = documented(engine, &own.parameters).await;
        assert!(results.iter().all(|(_, rows)| !rows.is_empty()), "{results:?}");
        let documented_of_nobody = documented(engine, &with_organization(other, Uuid::nil())).await;
        Expected { views, rows, documented: results, documented_of_nobody }
    }
}

#[tokio::test]
async fn data_team_user_is_confined_to_its_organization() {
    let stack = Stack::shared();
    let (own, other) = (Tenant::create(&stack, 8).await, Tenant::create(&stack, 9).await);
    let (data, database) = (TempDir::new().unwrap(), format!("team_{}", Uuid::now_v7().simple()));
    configure(data.path(), None);
    let (engine, mut server) = Engine::start(&data, &database);
    IsolatedStores::create_on(engine.args()).await;
    engine.copy_history([&own, &other]).await;
    let expected = Expected::of(&engine, &own, &other).await;
    assert_eq!(server.stop().await, Some(0));

    configure(data.path(), Some(&users_xml(&database, own.id)));
    let (engine, mut server) = Engine::start(&data, &database);
    let granted = engine.query("SHOW GRANTS FORMAT TSV", &[]).await.unwrap();
    let mut grants: Vec<_> = grants(&database, &format!("{database}_public"))
        .iter()
        .map(|grant| format!("GRANT {} TO default", grant.replace('`', "")))
        .collect();
    grants.sort();
    assert_eq!(granted.lines().collect::<Vec<_>>(), grants);

    check_rows(&engine, &expected, &own, &other).await;
    check_escapes(&engine, &own, &other).await;
    check_keys(&engine, &other).await;
    check_statements(&engine).await;
    check_settings(&engine).await;
    assert_eq!(server.stop().await, Some(0));
}

/// All rows are those of the organization, in each order of the row policy, `PREWHERE` and `FINAL`.
async fn check_rows(engine: &Engine, expected: &Expected, own: &Tenant, other: &Tenant) {
    let queries = row_queries(&engine.database, &expected.views, "");
    for (sql, rows) in queries.iter().zip(&expected.rows) {
        for settings in [
            "max_threads = 1",
            "apply_row_policy_after_final = 0, apply_prewhere_after_final = 1",
            "apply_row_policy_after_final = 1, apply_prewhere_after_final = 1, optimize_move_to_prewhere_if_final = 1",
        ] {
            let sql = format!("{sql} SETTINGS {settings}");
            assert!(engine.query(&sql, &[]).await.as_ref() == Ok(rows), "{sql}");
        }
    }
    assert_eq!(documented(engine, &own.parameters).await, expected.documented);
    assert_eq!(documented(engine, &other.parameters).await, expected.documented_of_nobody);
}

/// No query shows a row of the other organization, nor evaluates an expression on one.
async fn check_escapes(engine: &Engine, own: &Tenant, other: &Tenant) {
    let (database, id) = (&engine.database, own.id);
    let mut queries = Vec::new();
    for name in VIEW_TABLES {
        let (table, view) = (format!("{database}.{name}"), format!("{database}_public.{name}"));
        // Fails on a row of another organization, with its id.
        let is_own = format!("toUInt8(if(org_id = '{id}', '1', toString(org_id)))");
        queries.extend([
            format!("SELECT min(org_id), max(org_id) FROM {table}"),
            format!("SELECT * FROM {table} WHERE indexHint(1)"),
            format!("SELECT * FROM {table} SETTINGS additional_table_filters = {{'{table}': '1'}}"),
            format!("SELECT * FROM view(SELECT * FROM {table})"),
            format!("SELECT org_id FROM viewIfPermitted(SELECT org_id FROM {table} ELSE null('org_id UUID'))"),
            format!("SELECT * FROM eval('SELECT * FROM {table}') SETTINGS allow_experimental_eval_table_function = 1"),
            format!("SELECT DISTINCT a.org_id, b.org_id FROM {table} AS a FULL JOIN {table} AS b USING (org_id)"),
            format!("SELECT count() FROM {table} WHERE {is_own}"),
            format!("SELECT count() FROM {table} PREWHERE {is_own}"),
        ]);
        for (policy, prewhere) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let settings =
                format!("apply_row_policy_after_final = {policy}, apply_prewhere_after_final = {prewhere}");
            queries.push(format!("SELECT count() FROM {table} FINAL PREWHERE {is_own} SETTINGS {settings}"));
            // Two tables have no view of their name.
            let has_view = !["account_snapshots", "video_daily"].contains(&name);
            let views = has_view.then_some((&view, ""));
            for (filtered, end) in [(&table, ""), (&table, " FINAL")].into_iter().chain(views) {
                let filter =
                    format!("additional_table_filters = {{'{filtered}': '{}'}}", is_own.replace('\'', "\\'"));
                queries.push(format!(
                    "SELECT DISTINCT org_id FROM {filtered}{end} SETTINGS {filter}, {settings}"
                ));
            }
        }
    }
    queries.push(format!("SELECT DISTINCT org_id FROM merge('{database}', '.*')"));
    queries.push("SELECT DISTINCT org_id FROM merge(REGEXP('.*'), 'accounts')".to_owned());
    queries.extend(
        ["parts", "tables", "processes", "mutations"].map(|name| format!("SELECT * FROM system.{name}")),
    );
    for sql in queries {
        let result = engine.query(&sql, &[]).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        let leak = other.marks.iter().find(|mark| result.contains(*mark));
        assert_eq!(leak, None, "{sql}");
    }
}

/// Checks docs/data-access.md about keys of hidden rows: on some versions `mergeTreeIndex` shows them, on all
/// `mergeTreeAnalyzeIndexes` tells whether one may exist.
async fn check_keys(engine: &Engine, other: &Tenant) {
    let index =
        engine.query(&format!("SELECT * FROM mergeTreeIndex('{}', 'accounts')", engine.database), &[]).await;
    let client = client::connect(&engine.args()).with_database("default");
    match security_warning(&client).await.unwrap() {
        Some(_) => assert!(index.unwrap().contains(&other.id.to_string())),
        None => assert!(index.unwrap_err().contains("ACCESS_DENIED")),
    }
    for (organization, is_found) in [(other.id, true), (Uuid::nil(), false)] {
        let filter = format!("'{}', 'accounts', org_id = toUUID('{organization}')", engine.database);
        let sql = format!("SELECT 1 FROM mergeTreeAnalyzeIndexes({filter}) WHERE notEmpty(ranges)");
        assert_eq!(!engine.query(&sql, &[]).await.unwrap().is_empty(), is_found, "{organization}");
    }
}

/// Nothing else can be read, and nothing changed.
async fn check_statements(engine: &Engine) {
    let database = &engine.database;
    let table = format!("{database}.accounts");
    for sql in [
        format!("SELECT * FROM {database}.relay_position"),
        format!("SELECT * FROM {database}.schema_migrations"),
        format!("SELECT * FROM loop('{database}', 'accounts') LIMIT 1"),
        format!("SELECT * FROM remote('127.0.0.1', '{database}', 'accounts')"),
        "SELECT * FROM file('/etc/passwd', 'LineAsString')".to_owned(),
        "SELECT * FROM url('http://127.0.0.1:1', 'LineAsString')".to_owned(),
        "SELECT * FROM system.users".to_owned(),
        "SELECT * FROM system.row_policies".to_owned(),
        format!("INSERT INTO {table} (org_id) VALUES (generateUUIDv4())"),
        format!("ALTER TABLE {table} DELETE WHERE 1"),
        format!("OPTIMIZE TABLE {table} FINAL"),
        format!("DROP TABLE {table}"),
        "CREATE TEMPORARY TABLE t (a UInt8)".to_owned(),
        format!("CREATE VIEW {database}_public.t AS SELECT 1"),
        format!("BACKUP TABLE {table} TO File('team')"),
        "ALTER USER default SETTINGS readonly = 0".to_owned(),
        "GRANT SELECT ON *.* TO default".to_owned(),
        format!("CREATE ROW POLICY p ON {table} FOR SELECT USING 1 TO default"),
    ] {
        let error = engine.query(&sql, &[]).await.expect_err(&sql);
        assert!(error.contains("ACCESS_DENIED"), "{sql}\n{error}");
    }
}

/// Limits can be lowered and not raised, constants cannot be changed, and limits have an effect.
async fn check_settings(engine: &Engine) {
    let set = async |name: &str, value: &str| {
        let sql = format!(
            "SELECT value FROM system.settings WHERE name = '{name}' SETTINGS {name} = {value} FORMAT TSV"
        );
        let result = engine.query(&sql, &[]).await;
        if let Err(error) = &result {
            let refusals = ["SETTING_CONSTRAINT_VIOLATION", "READONLY"];
            assert!(refusals.iter().any(|refusal| error.contains(refusal)), "{sql}\n{error}");
        }
        result.ok().map(|value| value.trim().to_owned())
    };
    for (name, limit) in LIMITS {
        for allowed in [limit - 1, limit] {
            assert_eq!(set(name, &allowed.to_string()).await, Some(allowed.to_string()), "{name}");
        }
        assert_eq!(set(name, &(limit + 1).to_string()).await, None, "{name}");
        assert_eq!(set(name, &format!("{}, profile = 'default'", limit + 1)).await, None, "{name}");
        let url = [(name.to_owned(), (limit + 1).to_string())];
        engine.post(&url, b"SELECT 1".to_vec()).await.expect_err(name);
        // 0 is no limit, except for threads: as many as the machine has, which is checked against the limit.
        let unlimited = set(name, "0").await;
        assert!(unlimited.is_none() || name == "max_threads", "{name}: {unlimited:?}");
    }
    for (name, value) in CONSTANT_SETTINGS {
        let other = value.parse().map_or("'break'".to_owned(), |value: u64| (value ^ 1).to_string());
        assert_eq!(set(name, value).await.as_deref(), Some(value.trim_matches('\'')), "{name}");
        assert_eq!(set(name, &other).await, None, "{name}");
    }
    for value in ["0", "1"] {
        assert_eq!(set("readonly", value).await, None);
    }
    // Another profile adds its settings to the limits.
    let session = [("session_id".to_owned(), "profile".to_owned())];
    engine.post(&session, b"SET profile = 'default'".to_vec()).await.unwrap();
    engine.post(&session, b"SET max_threads = 9".to_vec()).await.unwrap_err();
    for (sql, error) in [
        ("SELECT count() FROM numbers(2000000001)", "TOO_MANY_ROWS"),
        ("SELECT number FROM numbers(10000001) FORMAT Null", "TOO_MANY_ROWS_OR_BYTES"),
    ] {
        assert!(engine.query(sql, &[]).await.unwrap_err().contains(error), "{sql}");
    }
}
