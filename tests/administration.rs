//! `tidemark org`, `key` and `migrate`: output, exit status and effect.

use std::process::{Output, Stdio};

use chrono::{DateTime, TimeDelta, Utc};
use harness::{Stack, send, wait_until};
use serde_json::Value;
use uuid::Uuid;

fn run(stack: &Stack, arguments: &[&str]) -> Output {
    stack.connection.command().args(arguments).output().expect("tidemark runs")
}

#[track_caller]
fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("standard output is JSON alone")
}

fn fields(record: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = record.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn organizations_are_created_listed_and_changed() {
    let stack = Stack::shared();
    let name = format!("Åse & Søn {}", Uuid::now_v7());
    let created = json(&run(&stack, &["org", "create", "--name", &name, "--account-cap", "0", "--json"]));
    let mut expected = vec!["id", "name", "subscription", "account_cap", "rate_limit", "created_at"];
    expected.extend([
        "default_max_recent_posts",
        "default_post_lookback_days",
        "retention_days",
        "history_since",
    ]);
    expected.sort_unstable();
    assert_eq!(fields(&created), expected);
    assert_eq!((created["account_cap"].as_i64(), created["rate_limit"].as_i64()), (Some(0), None));
    let id = created["id"].as_str().unwrap();

    let changed =
        json(&run(&stack, &["org", "set", id, "--subscription", "inactive", "--rate-limit", "5", "--json"]));
    assert_eq!(changed["subscription"], "inactive");
    assert_eq!((changed["account_cap"].as_i64(), changed["rate_limit"].as_i64()), (Some(0), Some(5)));
    assert_eq!(changed["name"], name.as_str());
    for days in ["29", "36501", "all", "-1", "30.5", ""] {
        let rejected = run(&stack, &["org", "set", id, &format!("--retention-days={days}")]);
        let stderr = String::from_utf8(rejected.stderr).unwrap();
        assert!(stderr.contains("must be a whole number from 30 to 36500, or none"), "{stderr}");
        assert_eq!(rejected.status.code(), Some(2));
    }
    let changed = json(&run(&stack, &["org", "set", id, "--retention-days", "365", "--json"]));
    assert_eq!((changed["retention_days"].as_i64(), &changed["history_since"]), (Some(365), &Value::Null));
    let limits = ["--account-cap", "none", "--rate-limit", "none", "--retention-days", "none"];
    let changed = json(&run(&stack, &[["org", "set", id].as_slice(), &limits, &["--json"]].concat()));
    for limit in ["account_cap", "rate_limit", "retention_days"] {
        assert_eq!(changed[limit], Value::Null, "{limit}");
    }

    let all = json(&run(&stack, &["org", "list", "--json"]));
    assert!(all.as_array().unwrap().contains(&changed), "the list lacks {changed}");
    let table = run(&stack, &["org", "list"]);
    assert!(
        String::from_utf8(table.stdout)
            .unwrap()
            .lines()
            .any(|line| line.starts_with(id) && line.contains(&name))
    );
}

#[tokio::test]
async fn key_is_printed_once_and_can_be_disabled() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let org = organization.id.to_string();
    let create = ["key", "create", "--org", &org, "--name", "reports", "--scopes", "read", "--json"];
    let created = json(&run(&stack, &create));
    let record =
        ["created_at", "expires_at", "id", "name", "organization_id", "rate_limit", "scopes", "status"];
    let mut with_key = [record.as_slice(), &["key"]].concat();
    with_key.sort_unstable();
    assert_eq!(fields(&created), with_key);
    assert_eq!(created["scopes"], serde_json::json!(["read"]));
    let key = created["key"].as_str().unwrap();
    let whoami = send(stack.request(reqwest::Method::GET, "/whoami").bearer_auth(key)).await.ok(200);
    assert_eq!(whoami.text("/data/api_key_name"), "reports");

    let list = run(&stack, &["key", "list", "--org", &org, "--json"]);
    assert!(!String::from_utf8_lossy(&list.stdout).contains(key), "the list shows the key");
    for entry in json(&list).as_array().unwrap() {
        assert_eq!(fields(entry), record);
    }

    let id = created["id"].as_str().unwrap();
    let disabled = json(&run(&stack, &["key", "set", id, "--status", "disabled", "--json"]));
    assert_eq!(
        (fields(&disabled).as_slice(), &disabled["status"]),
        (record.as_slice(), &Value::from("disabled"))
    );

    let past = ["key", "create", "--org", &org, "--name", "old", "--expires", "2020-02-29", "--json"];
    assert_eq!(json(&run(&stack, &past))["expires_at"], "2020-02-29T00:00:00Z");
}

#[tokio::test]
async fn unknown_ids_and_invalid_options_are_one_sentence() {
    let stack = Stack::shared();
    let unknown = Uuid::now_v7().to_string();
    let missing: [&[&str]; 4] = [
        &["org", "set", &unknown, "--rate-limit", "5"],
        &["key", "create", "--org", &unknown, "--name", "x"],
        &["key", "list", "--org", &unknown],
        &["key", "set", &unknown, "--status", "active"],
    ];
    for arguments in missing {
        let output = run(&stack, arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(
            stderr.starts_with("error: no such ") && stderr.lines().count() == 1,
            "{arguments:?}: {stderr}"
        );
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    let invalid: [&[&str]; 5] = [
        &["org", "create", "--name", " "],
        &["org", "create", "--name", "x", "--default-max-recent-posts", "49"],
        &["org", "set", &unknown, "--subscription", "gold"],
        &["key", "create", "--org", &unknown, "--name", "x", "--scopes", "read,all"],
        &["key", "create", "--org", &unknown, "--name", "x", "--expires", "soon"],
    ];
    for arguments in invalid {
        assert_eq!(run(&stack, arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[tokio::test]
async fn unreachable_postgres_is_one_sentence() {
    let stack = Stack::shared();
    let output = stack
        .connection
        .command()
        .args(["org", "list"])
        .env("TIDEMARK_DATABASE_URL", "postgres://user@127.0.0.1:1/nothing")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("error: postgres") && stderr.lines().count() == 1, "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_migrate_empty_databases_concurrently() {
    let stack = Stack::shared();
    let database = format!("migrate_{}", Uuid::now_v7().simple());
    let mut url = url::Url::parse(&stack.connection.database_url).unwrap();
    url.set_path(&database);
    let migrate = || {
        let mut command = stack.connection.command();
        command
            .arg("migrate")
            .env("TIDEMARK_DATABASE_URL", url.as_str())
            .env("TIDEMARK_CLICKHOUSE_DATABASE", &database)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("tidemark runs")
    };
    let outputs: Vec<Output> =
        [migrate(), migrate(), migrate()].map(|child| child.wait_with_output().unwrap()).into();
    let stderrs: Vec<_> = outputs.iter().map(|output| String::from_utf8_lossy(&output.stderr)).collect();
    assert!(outputs.iter().all(|output| output.status.success()), "{stderrs:?}");
    let idle =
        stderrs.iter().filter(|text| text.contains("applied 0 migrations to Postgres and 0 to ClickHouse"));
    assert_eq!(idle.count(), 2, "one of them migrates, the others wait: {stderrs:?}");

    let tables: u64 = stack
        .databases
        .clickhouse
        .query_raw("select count() from system.tables where database = {database:String}")
        .param("database", &database)
        .fetch_one()
        .await
        .unwrap();
    assert!(tables > 1, "{database} is empty");
    // A restore of the tables without the views.
    let public = format!("{database}_public");
    stack.databases.clickhouse.query_raw(&format!("drop database `{public}`")).execute().await.unwrap();
    let output = migrate().wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let views = stack.databases.clickhouse.query_raw(
        "select count() from system.tables where database = {database:String} and engine = 'View'",
    );
    assert_eq!(views.param("database", &public).fetch_one::<u64>().await.unwrap(), 12, "{public}");
    for name in [&database, &public] {
        stack.databases.clickhouse.query_raw(&format!("drop database `{name}`")).execute().await.unwrap();
    }
    let drop = format!("drop database \"{database}\"");
    sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(stack.pg()).await.unwrap();
}

/// Waits until the key is rejected: within 5 s, as `http::middleware::authenticate` asserts.
async fn wait_until_rejected(stack: &Stack, key: &str) {
    let rejection = wait_until("the key is rejected", || async {
        let response = send(stack.request(reqwest::Method::GET, "/whoami").bearer_auth(key)).await;
        (response.status != 200).then_some(response)
    })
    .await;
    assert_eq!(rejection.problem(401, "UNAUTHORIZED").text("/type"), "urn:tidemark:error:unauthorized");
}

#[tokio::test]
async fn keys_are_rotated_with_overlap_and_deleted() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    let org = organization.id.to_string();
    let create = [
        "key",
        "create",
        "--org",
        &org,
        "--name",
        "site",
        "--scopes",
        "read",
        "--rate-limit",
        "90",
        "--json",
    ];
    let created = json(&run(&stack, &create));
    let (id, key) = (created["id"].as_str().unwrap(), created["key"].as_str().unwrap());
    // The API has cached the key.
    let whoami =
        async |key: &str| send(stack.request(reqwest::Method::GET, "/whoami").bearer_auth(key)).await;
    whoami(key).await.ok(200);

    let rotated = json(&run(&stack, &["key", "rotate", id, "--json"]));
    let (next, next_key) = (rotated["id"].as_str().unwrap(), rotated["key"].as_str().unwrap());
    assert_ne!((id, key), (next, next_key));
    let same = ["name", "scopes", "rate_limit", "status", "organization_id", "expires_at"];
    assert!(same.iter().all(|field| rotated[field] == created[field]), "{rotated} {created}");
    assert_eq!(rotated["replaces"]["id"], id);
    let ends: DateTime<Utc> = rotated["replaces"]["expires_at"].as_str().unwrap().parse().unwrap();
    assert!((ends - Utc::now() - TimeDelta::hours(24)).abs() < TimeDelta::minutes(1), "{ends}");
    let listed = json(&run(&stack, &["key", "list", "--org", &org, "--json"]));
    let of = |id: &str| listed.as_array().unwrap().iter().find(|key| key["id"] == id).cloned().unwrap();
    assert_eq!(of(id), rotated["replaces"]);
    assert_eq!(of(next)["expires_at"], Value::Null);
    whoami(key).await.ok(200);
    whoami(next_key).await.ok(200);
    // Another key in its place would end with the overlap.
    let repeated = run(&stack, &["key", "rotate", id]);
    let stderr = String::from_utf8_lossy(&repeated.stderr);
    assert_eq!(repeated.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&format!("was replaced by {next}")), "{stderr}");

    // A key ends without overlap, by deletion, and at its expiry, which rotation does not extend.
    let last =
        json(&run(&stack, &["key", "rotate", next, "--overlap", "0", "--expires", "2999-01-01", "--json"]));
    assert_eq!(last["expires_at"], "2999-01-01T00:00:00Z");
    let deleted = json(&run(&stack, &["key", "delete", id, "--json"]));
    assert_eq!((&deleted["id"], deleted.get("key")), (&Value::from(id), None));
    tokio::join!(wait_until_rejected(&stack, next_key), wait_until_rejected(&stack, key));
    whoami(last["key"].as_str().unwrap()).await.ok(200);

    let repeated = run(&stack, &["key", "rotate", next]);
    let stderr = String::from_utf8_lossy(&repeated.stderr);
    assert_eq!(repeated.status.code(), Some(1));
    assert!(stderr.starts_with("error: this key is disabled or expired"), "{stderr}");
    assert_eq!(run(&stack, &["key", "delete", id]).status.code(), Some(1));
    assert_eq!(
        run(&stack, &["key", "rotate", last["id"].as_str().unwrap(), "--overlap", "1w"]).status.code(),
        Some(2)
    );
    for left in json(&run(&stack, &["key", "list", "--org", &org, "--json"])).as_array().unwrap() {
        let output = run(&stack, &["key", "delete", left["id"].as_str().unwrap()]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(stderr.contains("has no key left"), left["id"] == last["id"], "{stderr}");
    }
}

#[tokio::test]
async fn deleted_organization_is_unknown_to_all_commands() {
    let stack = Stack::shared();
    let organization = stack.organization().await;
    organization.track(stack.sandbox_account("tiktok")).await;
    let id = organization.id.to_string();
    let output = run(&stack, &["org", "delete", &id]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("--yes") && output.stdout.is_empty(), "{stderr}");
    organization.get("/whoami").await.ok(200);

    let deleted = json(&run(&stack, &["org", "delete", &id, "--yes", "--json"]));
    assert_eq!(
        (&deleted["accounts"], &deleted["keys"], &deleted["erased"]),
        (&1.into(), &1.into(), &true.into())
    );
    assert!(deleted["videos"].as_i64().unwrap() > 10, "{deleted}");
    wait_until_rejected(&stack, &organization.key).await;
    let listed = json(&run(&stack, &["org", "list", "--json"]));
    assert!(listed.as_array().unwrap().iter().all(|listed| listed["id"] != deleted["id"]));
    for command in [
        &["org", "set", &id, "--rate-limit", "5"][..],
        &["org", "delete", &id, "--yes"],
        &["key", "list", "--org", &id],
        &["key", "create", "--org", &id, "--name", "late"],
        &["import", "--org", &id, "history.csv"],
        &["export", "--org", &id],
        &["rebuild", "--org", &id],
        &["verify", "--org", &id],
        &["erase", "--org", &id],
    ] {
        let output = run(&stack, command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            stderr.lines().last(),
            Some("error: no such organization: see `tidemark org list`"),
            "{command:?}"
        );
        assert_eq!(output.status.code(), Some(1), "{command:?}");
    }
}
