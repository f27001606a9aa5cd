//! `tidemark clickhouse-user`: its statements, parsed by embedded ClickHouse, which has no such users itself.
//! tests/analytics/data_team tests what such a user may do.

use std::process::Output;

use harness::Stack;
use serde_json::Value;
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

#[tokio::test]
async fn embedded_clickhouse_is_an_error() {
    let stack = Stack::shared();
    let org = stack.organization().await.id.to_string();
    for arguments in [
        &["create", "--org", &org, "--name", "reports"][..],
        &["drop", "--org", &org, "--name", "reports"],
        &["list", "--org", &org],
    ] {
        let stderr = error(&run(&stack, arguments));
        assert!(
            stderr.contains("cannot store users") && stderr.contains("use a ClickHouse server"),
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
