//! Users of a ClickHouse server for data teams: what the command would run, read by the engine itself, which has no users
//! and says so.

mod harness;

use std::process::Output;

use harness::Stack;
use serde_json::Value;
use uuid::Uuid;

fn run(stack: &Stack, arguments: &[&str]) -> Output {
    stack.connection.command().arg("clickhouse-user").args(arguments).output().expect("tidemark runs")
}

#[track_caller]
fn refused(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.starts_with("error: ") && told.lines().count() == 1, "{told}");
    assert!(output.stdout.is_empty());
    told
}

/// A statement as the engine understands it; one that it cannot read is an error.
async fn understood(stack: &Stack, statement: &str) -> String {
    let query = stack.databases.clickhouse.query_raw("SELECT formatQuerySingleLine({statement:String})");
    let read: Result<String, _> = query.param("statement", statement).fetch_one().await;
    read.unwrap_or_else(|error| panic!("{error}: {statement}"))
}

#[tokio::test]
async fn the_engine_understands_what_makes_a_user_of_one_organization() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let org = organization.id.to_string();
    let output = run(&stack, &["create", "--org", &org, "--name", "reports", "--sql", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let made: Value = serde_json::from_slice(&output.stdout).expect("standard output is JSON alone");
    let user = format!("reports_{}", organization.id.simple());
    let database = &stack.connection.clickhouse_database;
    assert_eq!((made["user"].as_str(), made["name"].as_str()), (Some(user.as_str()), Some("reports")));
    assert_eq!(made["organization_id"], org.as_str());
    assert_eq!(made["database"], format!("{database}_public"));
    let password = made["password"].as_str().unwrap();
    assert_eq!(password.len(), 32);

    let mut read = Vec::new();
    for statement in made["statements"].as_array().unwrap() {
        let statement = statement.as_str().unwrap();
        assert!(!statement.contains(password));
        read.push(understood(&stack, statement).await);
    }
    let begins =
        |words: &str| read.iter().filter(|statement| statement.starts_with(words)).collect::<Vec<_>>();
    let [account] = begins("CREATE USER OR REPLACE")[..] else { panic!("{read:?}") };
    assert!(account.contains("IDENTIFIED WITH sha256_hash BY '"), "{account}");
    assert!(account.contains("SETTINGS readonly = 2, max_execution_time = 60 MIN 1 MAX 60"), "{account}");
    let [everybody, own] = begins("CREATE ROW POLICY")[..] else { panic!("{read:?}") };
    assert!(everybody.contains("AS PERMISSIVE FOR SELECT USING 1 TO ALL"), "{everybody}");
    let condition = format!("AS RESTRICTIVE FOR SELECT USING org_id = toUUID('{org}') TO {user}");
    assert!(own.contains(&condition), "{own}");
    let [quota] = begins("CREATE QUOTA OR REPLACE")[..] else { panic!("{read:?}") };
    assert!(quota.contains("FOR INTERVAL 1 hour MAX queries = 10000, execution_time = 3600"), "{quota}");
    // Whatever it may read of the tables, a policy restricts.
    let grants = begins("GRANT SELECT ON ");
    let tables: Vec<_> = grants.iter().filter_map(|grant| grant.split_whitespace().nth(3)).collect();
    let (views, tables) = tables.split_last().unwrap();
    assert_eq!(*views, format!("{database}_public.*"));
    for table in tables {
        assert!(table.starts_with(&format!("{database}.")), "{table}");
        assert!(everybody.contains(table) && own.contains(table), "{table}: {own}");
    }
    assert_eq!((tables.len(), read.len()), (6, 4 + 7), "{read:?}");

    // What a user could set to get round a limit is held, and what limits a question may only be lowered.
    for held in [
        "max_untracked_memory = 4194304",
        "memory_profiler_step = 4194304",
        "memory_overcommit_ratio_denominator = 1073741824",
        "use_query_condition_cache = 0",
    ] {
        assert!(account.contains(&format!(", {held} CONST")), "{held}: {account}");
    }
    for limit in ["max_threads = 8 MIN 1 MAX 8", "max_result_bytes = 4000000000 MIN 1 MAX 4000000000"] {
        assert!(account.contains(limit), "{limit}: {account}");
    }

    // Every setting is one that the engine has.
    let (_, settings) = account.split_once(" SETTINGS ").unwrap();
    for setting in settings.split(", ").map(|setting| setting.split(" = ").next().unwrap()) {
        let known = stack
            .databases
            .clickhouse
            .query_raw("SELECT count() FROM system.settings WHERE name = {name:String}");
        assert_eq!(known.param("name", setting).fetch_one::<u64>().await.unwrap(), 1, "{setting}");
    }
}

#[tokio::test]
async fn statements_are_printed_for_others_to_run_and_the_password_apart() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let org = organization.id.to_string();
    let output = run(&stack, &["create", "--org", &org, "--name", "bi-tool", "--sql"]);
    let (out, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    let user = format!("bi-tool_{}", organization.id.simple());
    let password =
        told.lines().find_map(|line| line.strip_prefix(&format!("{user} "))).expect("the password");
    assert!(!out.contains(password) && out.lines().all(|line| line.ends_with(';')), "{out}");
    assert_eq!(
        out.lines().filter(|line| line.contains(&format!("`{user}`"))).count(),
        out.lines().count() - 1
    );

    let output = run(&stack, &["drop", "--org", &org, "--name", "bi-tool", "--sql"]);
    let out = String::from_utf8_lossy(&output.stdout);
    for statement in out.lines() {
        let read = understood(&stack, statement).await;
        assert!(read.starts_with("DROP ") && read.contains(" IF EXISTS "), "{read}");
    }
    // Without the user nobody reads what the policy no longer restricts.
    assert!(out.starts_with(&format!("DROP USER IF EXISTS `{user}`;\n")), "{out}");
}

#[tokio::test]
async fn the_embedded_engine_has_no_users_and_says_so() {
    let stack = Stack::shared();
    let org = stack.organization().await.id.to_string();
    for arguments in [
        &["create", "--org", &org, "--name", "reports"][..],
        &["drop", "--org", &org, "--name", "reports"],
        &["list", "--org", &org],
    ] {
        let told = refused(&run(&stack, arguments));
        assert!(
            told.contains("the embedded engine has none") && told.contains("use a ClickHouse server"),
            "{told}"
        );
    }
}

#[tokio::test]
async fn the_engine_has_what_a_drop_looks_into() {
    let stack = Stack::shared();
    let query = stack.databases.clickhouse.query_raw(
        "SELECT count() FROM system.columns WHERE database = 'system'
            AND (table, name) IN (('users', 'name'), ('row_policies', 'short_name'), ('quotas', 'name'))",
    );
    assert_eq!(query.fetch_one::<u64>().await.unwrap(), 3);
}

#[tokio::test]
async fn what_is_not_there_or_not_allowed_is_told_in_a_sentence() {
    let stack = Stack::shared();
    let nobody = Uuid::now_v7().to_string();
    let told = refused(&run(&stack, &["create", "--org", &nobody, "--name", "reports", "--sql"]));
    assert_eq!(told, "error: no such organization: see `tidemark org list`\n");
    for name in ["", "1st", "a b", "a`b", "x'; DROP USER default", &"a".repeat(33), "é"] {
        let output = run(&stack, &["create", "--org", &nobody, "--name", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
    let org = stack.organization().await.id.to_string();
    let mut away = stack.connection.command();
    away.env("TIDEMARK_CLICKHOUSE_URL", "http://127.0.0.1:1");
    let output =
        away.args(["clickhouse-user", "create", "--org", &org, "--name", "reports"]).output().unwrap();
    assert!(refused(&output).contains("clickhouse"));
}
