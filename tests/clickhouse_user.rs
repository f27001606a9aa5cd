//! `tidemark clickhouse-user`: its statements for a server, parsed by embedded ClickHouse, and its users on embedded ClickHouse.
//! tests/analytics/data_team tests what a user of a server may do, and crates/chdb-http one of embedded ClickHouse.

use std::process::Output;

use harness::{Stack, http_client};
use serde_json::{Value, json};
use uuid::Uuid;

fn run(stack: &Stack, arguments: &[&str]) -> Output {
    stack.connection.command().arg("clickhouse-user").args(arguments).output().expect("tidemark runs")
}

#[track_caller]
fn error(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: ") && stderr.lines().count() == 1, "{stderr}");
    assert!(output.stdout.is_empty());
    stderr
}

/// The statement as the engine formats it.
async fn format_statement(stack: &Stack, statement: &str) -> String {
    let query = stack.databases.clickhouse.query_raw("SELECT formatQuerySingleLine({statement:String})");
    let formatted: Result<String, _> = query.param("statement", statement).fetch_one().await;
    formatted.unwrap_or_else(|error| panic!("{error}: {statement}"))
}

#[tokio::test]
async fn create_restricts_a_user_to_one_organization() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let org = organization.id.to_string();
    let output = run(&stack, &["create", "--org", &org, "--name", "reports", "--sql", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let created: Value = serde_json::from_slice(&output.stdout).expect("standard output is JSON alone");
    let user = format!("reports_{}", organization.id.simple());
    let database = &stack.connection.clickhouse_database;
    assert_eq!((created["user"].as_str(), created["name"].as_str()), (Some(user.as_str()), Some("reports")));
    assert_eq!(created["organization_id"], org.as_str());
    assert_eq!(created["database"], format!("{database}_public"));
    let password = created["password"].as_str().unwrap();
    assert_eq!(password.len(), 32);

    let mut statements = Vec::new();
    for statement in created["statements"].as_array().unwrap() {
        let statement = statement.as_str().unwrap();
        assert!(!statement.contains(password));
        statements.push(format_statement(&stack, statement).await);
    }
    let starting_with =
        |words: &str| statements.iter().filter(|statement| statement.starts_with(words)).collect::<Vec<_>>();
    let [account] = starting_with("CREATE USER OR REPLACE")[..] else { panic!("{statements:?}") };
    assert!(account.contains("IDENTIFIED WITH sha256_hash BY '"), "{account}");
    assert!(account.contains("SETTINGS readonly = 2, max_execution_time = 60 MIN 1 MAX 60"), "{account}");
    let [public, own] = starting_with("CREATE ROW POLICY")[..] else { panic!("{statements:?}") };
    assert!(public.contains("AS PERMISSIVE FOR SELECT USING 1 TO ALL"), "{public}");
    let condition = format!("AS RESTRICTIVE FOR SELECT USING org_id = toUUID('{org}') TO {user}");
    assert!(own.contains(&condition), "{own}");
    let [quota] = starting_with("CREATE QUOTA OR REPLACE")[..] else { panic!("{statements:?}") };
    assert!(quota.contains("FOR INTERVAL 1 hour MAX queries = 10000, execution_time = 3600"), "{quota}");
    // A policy restricts every readable table.
    let grants = starting_with("GRANT SELECT ON ");
    let tables: Vec<_> = grants.iter().filter_map(|grant| grant.split_whitespace().nth(3)).collect();
    let (views, tables) = tables.split_last().unwrap();
    assert_eq!(*views, format!("{database}_public.*"));
    for table in tables {
        assert!(table.starts_with(&format!("{database}.")), "{table}");
        assert!(public.contains(table) && own.contains(table), "{table}: {own}");
    }
    assert_eq!((tables.len(), statements.len()), (8, 4 + 9), "{statements:?}");

    // Settings that would evade a limit are constant; limits can only be lowered.
    for setting in [
        "max_untracked_memory = 4194304",
        "memory_profiler_step = 4194304",
        "memory_overcommit_ratio_denominator = 1073741824",
        "use_query_condition_cache = 0",
    ] {
        assert!(account.contains(&format!(", {setting} CONST")), "{setting}: {account}");
    }
    for limit in ["max_threads = 8 MIN 1 MAX 8", "max_result_bytes = 4000000000 MIN 1 MAX 4000000000"] {
        assert!(account.contains(limit), "{limit}: {account}");
    }
}

#[tokio::test]
async fn sql_option_prints_statements_without_the_password() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let org = organization.id.to_string();
    let output = run(&stack, &["create", "--org", &org, "--name", "bi-tool", "--sql"]);
    let (out, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    let user = format!("bi-tool_{}", organization.id.simple());
    let password =
        stderr.lines().find_map(|line| line.strip_prefix(&format!("{user} "))).expect("the password");
    assert!(!out.contains(password) && out.lines().all(|line| line.ends_with(';')), "{out}");
    assert_eq!(
        out.lines().filter(|line| line.contains(&format!("`{user}`"))).count(),
        out.lines().count() - 1
    );

    let output = run(&stack, &["drop", "--org", &org, "--name", "bi-tool", "--sql"]);
    let out = String::from_utf8_lossy(&output.stdout);
    for statement in out.lines() {
        let formatted = format_statement(&stack, statement).await;
        assert!(formatted.starts_with("DROP ") && formatted.contains(" IF EXISTS "), "{formatted}");
    }
    // The user first: without its policy it would read all rows.
    assert!(out.starts_with(&format!("DROP USER IF EXISTS `{user}`;\n")), "{out}");
}

/// A user of embedded ClickHouse.
struct Login {
    url: String,
    user: String,
    password: String,
    database: String,
}

impl Login {
    fn create(stack: &Stack, org: &str) -> Login {
        let output = run(stack, &["create", "--org", org, "--name", "reports", "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let created: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&created["name"], &created["organization_id"]), (&json!("reports"), &json!(org)));
        let text = |name: &str| created[name].as_str().unwrap().to_owned();
        let url = stack.connection.clickhouse_url.clone();
        Login { url, user: text("user"), password: text("password"), database: text("database") }
    }

    /// The status and the text of a response.
    async fn query(&self, sql: &str) -> (u16, String) {
        let request = http_client().post(&self.url).basic_auth(&self.user, Some(&self.password));
        let database = [("database", &self.database)];
        let response = request.query(&database).body(sql.to_owned()).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }
}

fn list(stack: &Stack, org: &str) -> Value {
    let output = run(stack, &["list", "--org", org, "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn login_on_embedded_clickhouse_reads_its_organization() {
    let stack = Stack::shared();
    let (own, other) = (stack.organization().await, stack.organization().await);
    for (organization, username) in [(&own, "own.account"), (&other, "other.account")] {
        organization.create("/accounts", json!({"platform": "instagram", "username": username})).await;
        organization.wait_applied().await;
    }
    let org = own.id.to_string();
    assert_eq!(list(&stack, &org), json!([]));
    let first = Login::create(&stack, &org);
    assert_eq!(first.user, format!("reports_{}", own.id.simple()));
    let accounts = "SELECT username, org_id FROM accounts";
    assert_eq!(first.query(accounts).await, (200, format!("own.account\t{org}\n")));

    // Every view, with the rows that another user sees of the organization.
    let (_, views) = first.query("SHOW TABLES").await;
    assert!(views.lines().any(|view| view == "video_snapshots"), "{views}");
    for view in views.lines() {
        let sql = format!(
            "SELECT count() FROM {}_public.{view} WHERE org_id = {{org:UUID}}",
            stack.connection.clickhouse_database
        );
        let expected: u64 = stack.clickhouse().query_raw(&sql).param("org", &org).fetch_one().await.unwrap();
        assert_eq!(
            first.query(&format!("SELECT count() FROM {view}")).await,
            (200, format!("{expected}\n")),
            "{view}"
        );
        let hidden = format!("SELECT count() FROM {view} WHERE throwIf(org_id != toUUID('{org}')) = 0");
        assert_eq!(first.query(&hidden).await.0, 200, "{view}");
    }
    let database = &stack.connection.clickhouse_database;
    for table in
        [format!("{database}.accounts"), format!("{database}_public.accounts"), "logins.logins".to_owned()]
    {
        let (_, text) = first.query(&format!("SELECT * FROM {table}")).await;
        assert!(text.contains("ACCESS_DENIED"), "{table}: {text}");
    }

    let listed = list(&stack, &org);
    assert_eq!(listed, json!([{"user": first.user, "name": "reports", "organization_id": org}]));
    assert_eq!(list(&stack, &other.id.to_string()), json!([]));
    let second = Login::create(&stack, &org);
    assert_eq!(first.query("SELECT 1").await.0, 403);
    assert_eq!(second.query("SELECT 1").await, (200, "1\n".to_owned()));
    assert_eq!(list(&stack, &org), listed);
    let stderr = error(&run(&stack, &["drop", "--org", &other.id.to_string(), "--name", "reports"]));
    assert!(stderr.contains("no such user"), "{stderr}");
    assert!(run(&stack, &["drop", "--org", &org, "--name", "reports"]).status.success());
    assert_eq!(second.query("SELECT 1").await.0, 403);
    assert_eq!(list(&stack, &org), json!([]));
}

#[tokio::test]
async fn embedded_clickhouse_of_another_database_is_an_error() {
    let stack = Stack::shared();
    let org = stack.organization().await.id.to_string();
    let run = |_: &Stack, arguments: &[&str]| {
        let mut command = stack.connection.command();
        command.env("TIDEMARK_CLICKHOUSE_DATABASE", "elsewhere");
        command.arg("clickhouse-user").args(arguments).output().expect("tidemark runs")
    };
    for arguments in [
        &["create", "--org", &org, "--name", "reports"][..],
        &["drop", "--org", &org, "--name", "reports"],
        &["list", "--org", &org],
    ] {
        let stderr = error(&run(&stack, arguments));
        assert!(
            stderr.contains("cannot store users") && stderr.contains("TIDEMARK_CLICKHOUSE_DATABASE"),
            "{stderr}"
        );
    }
}

#[tokio::test]
async fn engine_has_the_system_columns_of_drop() {
    let stack = Stack::shared();
    let query = stack.databases.clickhouse.query_raw(
        "SELECT count() FROM system.columns WHERE database = 'system'
            AND (table, name) IN (('users', 'name'), ('row_policies', 'short_name'), ('quotas', 'name'))",
    );
    assert_eq!(query.fetch_one::<u64>().await.unwrap(), 3);
}

#[tokio::test]
async fn unknown_ids_and_invalid_names_are_one_sentence() {
    let stack = Stack::shared();
    let unknown = Uuid::now_v7().to_string();
    let stderr = error(&run(&stack, &["create", "--org", &unknown, "--name", "reports", "--sql"]));
    assert_eq!(stderr, "error: no such organization: see `tidemark org list`\n");
    for name in ["", "1st", "a b", "a`b", "x'; DROP USER default", &"a".repeat(33), "é"] {
        let output = run(&stack, &["create", "--org", &unknown, "--name", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
    let org = stack.organization().await.id.to_string();
    let mut command = stack.connection.command();
    command.env("TIDEMARK_CLICKHOUSE_URL", "http://127.0.0.1:1");
    let output =
        command.args(["clickhouse-user", "create", "--org", &org, "--name", "reports"]).output().unwrap();
    assert!(error(&output).contains("clickhouse"));
}
