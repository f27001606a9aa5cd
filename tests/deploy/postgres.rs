//! The role and the database in Postgres as the image and docs/install.md create them, and the limits of the disk guard.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use harness::{IsolatedStores, Stack, http_client, postgres_clients, wait_until};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tidemark::store::postgres::diagnosis;
use url::Url;
use uuid::Uuid;

use crate::containers::{environment, mounted, services, words};
use crate::{output_text, path, text};

/// A new name for a role and a database.
fn unique_name() -> String {
    format!("deploy_{}", Uuid::now_v7().simple())
}

/// The URL of the test server for a role and a database.
fn url(role: &str, password: &str, database: &str) -> Url {
    let mut url = Url::parse(&Stack::shared().connection.database_url).unwrap();
    url.set_username(role).unwrap();
    url.set_password(Some(password)).unwrap();
    url.set_path(database);
    url
}

/// A program that is, or calls, a client of Postgres.
fn client_program(program: impl AsRef<OsStr>, url: &Url) -> Command {
    let mut command = Command::new(program);
    command.env("PGHOST", url.host_str().unwrap()).env("PGPORT", url.port().unwrap().to_string());
    command.env("PGUSER", url.username()).env("PGPASSWORD", url.password().unwrap());
    command.env("PGDATABASE", url.path().trim_start_matches('/'));
    command
}

#[track_caller]
fn assert_success(output: Output) -> String {
    assert!(output.status.success(), "{}", output_text(&output));
    output_text(&output)
}

async fn run(connection: &mut PgConnection, statement: &str) {
    let query = sqlx::query(AssertSqlSafe(statement.to_owned()));
    query.execute(connection).await.unwrap_or_else(|error| panic!("{error}: {statement}"));
}

/// Whether the role is a superuser, or may create roles or databases.
async fn is_privileged(connection: &mut PgConnection) -> bool {
    let rights = "select rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls
         or exists (select from pg_auth_members where member = pg_roles.oid and roleid <> 'pg_read_all_stats'::regrole)
         from pg_roles where rolname = current_user";
    sqlx::query_scalar(rights).fetch_one(connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn role_of_the_image_serves_without_superuser_rights() {
    let Some(clients) = postgres_clients("the role of the image").await else { return };
    let stack = Stack::shared();
    let services = services();
    let script = mounted(&services["postgres"], "deploy/postgres/role.sql");
    assert!(script.starts_with("/docker-entrypoint-initdb.d/") && script.ends_with(".sql"), "{script}");
    let mut admin = PgConnection::connect(&stack.connection.database_url).await.unwrap();
    let (role, superuser) = (unique_name(), unique_name());
    run(&mut admin, &format!("create role {superuser} superuser login password 'of-all'")).await;
    run(&mut admin, &format!("create database {role} owner {superuser}")).await;

    // As the entrypoint of the image runs it.
    let superuser_url = url(&superuser, "of-all", &role);
    let mut init = client_program(clients.join("psql"), &superuser_url);
    init.args(["-v", "ON_ERROR_STOP=1", "--no-password", "--no-psqlrc", "-f"]);
    let init = init.arg(path("deploy/postgres/role.sql")).env("POSTGRES_PASSWORD", "of-one").output();
    assert_success(init.unwrap());
    let error = PgConnection::connect(superuser_url.as_str()).await.unwrap_err();
    assert!(error.to_string().contains("password authentication failed"), "{error}");

    let guard_database = &environment(&services["space"])["PGDATABASE"];
    check_rights(&url(&role, "of-one", &role), &url(&role, "of-one", guard_database)).await;
    check_service(&role).await;
    check_restore(&mut admin, &role, &clients).await;

    stack.databases.clickhouse.query_raw(&format!("drop database `{role}` sync")).execute().await.unwrap();
    run(&mut admin, &format!("drop database {role} with (force)")).await;
    let mut guard_url = Url::parse(&stack.connection.database_url).unwrap();
    guard_url.set_path(guard_database);
    let mut admin = PgConnection::connect(guard_url.as_str()).await.unwrap();
    run(&mut admin, &format!("drop owned by {role}, {superuser}")).await;
    run(&mut admin, &format!("drop role {role}, {superuser}")).await;
}

/// The role is not privileged, but may do what the disk guard does.
async fn check_rights(role: &Url, guard: &Url) {
    let mut connection = PgConnection::connect(role.as_str()).await.unwrap();
    assert!(!is_privileged(&mut connection).await);
    for statement in ["alter system set max_connections = 5", "copy (select 1) to program 'true'"] {
        let error = sqlx::query(statement).execute(&mut connection).await.unwrap_err();
        let code = error.as_database_error().and_then(|error| error.code().map(|code| code.into_owned()));
        assert_eq!(code.as_deref(), Some("42501"), "{statement}");
    }
    connection.close().await.unwrap();
    // `off` is the default.
    let mut connection = PgConnection::connect(guard.as_str()).await.unwrap();
    for statement in [
        "alter system set default_transaction_read_only = off",
        "select pg_reload_conf()",
        "alter system reset default_transaction_read_only",
    ] {
        run(&mut connection, statement).await;
    }
    connection.close().await.unwrap();
}

/// The role migrates and serves, and the doctor finds no problem.
async fn check_service(role: &str) {
    let mut connection = Stack::shared().connection;
    connection.database_url = url(role, "of-one", role).to_string();
    connection.clickhouse_database = role.to_owned();
    let databases = IsolatedStores::open(connection);
    assert_success(databases.command(&[]).arg("migrate").output().unwrap());
    let created = |arguments: &[&str], field: &str| {
        let output = databases.command(&[]).args(arguments).arg("--json").output().unwrap();
        let record: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", output_text(&output)));
        record[field].as_str().unwrap_or_else(|| panic!("{record}")).to_owned()
    };
    let organization = created(&["org", "create", "--name", "of a plain role"], "id");
    let key = created(&["key", "create", "--org", &organization, "--name", "test"], "key");
    let (mut serve, base) = databases.serve(&[]);
    let request =
        http_client().post(format!("{base}/creators")).bearer_auth(&key).json(&json!({"name": "Plain"}));
    assert_eq!(request.send().await.unwrap().status(), 201);
    wait_until("search finds it", async || {
        let response =
            http_client().get(format!("{base}/search?q=plain")).bearer_auth(&key).send().await.unwrap();
        let found: Value = response.json().await.unwrap();
        (found["data"]["creators"].as_array()?.len() == 1).then_some(())
    })
    .await;
    let doctor = databases.command(&[]).args(["doctor", "--json"]).output().unwrap();
    let checks: Vec<Value> = serde_json::from_slice(&doctor.stdout).unwrap();
    let postgres = checks.iter().filter(|check| check["check"].as_str().unwrap().starts_with("postgres"));
    assert!(postgres.inspect(|check| assert_ne!(check["status"], "fail", "{check}")).count() > 5);
    let transactions = checks.iter().find(|check| check["check"] == "postgres-transactions").unwrap();
    assert!(!transactions["message"].as_str().unwrap().contains("pg_read_all_stats"), "{transactions}");
    serve.stop().await;
    databases.pg().close().await;
}

/// The role dumps and restores its database as in docs/backups.md.
async fn check_restore(admin: &mut PgConnection, role: &str, clients: &Path) {
    let database = url(role, "of-one", role);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump");
    let mut dump = client_program(clients.join("pg_dump"), &database);
    assert_success(dump.args(["--format=custom", "--file"]).arg(&file).output().unwrap());
    run(admin, &format!("drop database {role} with (force)")).await;
    run(admin, &format!("create database {role} owner {role}")).await;
    let mut restore = client_program(clients.join("pg_restore"), &database);
    let options = ["--exit-on-error", "--single-transaction", "--no-owner", "--dbname", role];
    assert_success(restore.args(options).arg(&file).output().unwrap());
    let mut connection = PgConnection::connect(database.as_str()).await.unwrap();
    let name = sqlx::query_scalar("select name from organizations");
    let name: String = name.fetch_one(&mut connection).await.unwrap();
    assert_eq!(name, "of a plain role");
    connection.close().await.unwrap();
}

/// The commands of docs/install.md between two sentences.
fn commands(from: &str, to: &str) -> String {
    let page = text("docs/install.md");
    let part = page.split_once(from).expect(from).1.split_once(to).expect(to).0;
    part.lines().filter_map(|line| line.strip_prefix("    ")).map(|line| format!("{line}\n")).collect()
}

/// Creates a wrapper for a program that records its arguments.
fn record_calls(folder: &Path, program: &str) {
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >> {0}/called\nPATH=${{PATH#*:}} exec {program} \"$@\"\n",
        folder.display()
    );
    let file = folder.join(program);
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn install_page_creates_role_without_exposing_passwords() {
    let Some(clients) = postgres_clients("the role of docs/install.md").await else { return };
    let stack = Stack::shared();
    let folder = tempfile::tempdir().unwrap();
    let (file, credentials) = (folder.path().join("tidemark.env"), folder.path().join("credentials.json"));
    std::fs::copy(path("deploy/systemd/tidemark.env.example"), &file).unwrap();
    std::fs::write(&credentials, "{\n  \"user\": \"tidemark\",\n  \"password\": \"of-the-engine\"\n}\n")
        .unwrap();
    for program in ["psql", "sed"] {
        record_calls(folder.path(), program);
    }
    let name = unique_name();
    let script = commands("Create a role and a database", "Add the [credentials of the platforms]");
    let script = script.replace("/etc/tidemark/tidemark.env", file.to_str().unwrap());
    let script =
        script.replace("/var/lib/tidemark/clickhouse/credentials.json", credentials.to_str().unwrap());
    let script = script.replace("role tidemark ", &format!("role {name} "));
    let script =
        script.replace("database tidemark owner tidemark ", &format!("database {name} owner {name} "));
    assert_eq!(script.matches(&name).count(), 3, "{script}");
    // The default of the test server; a Debian cluster may have SQL_ASCII.
    assert!(script.contains(" template template0 encoding 'UTF8' locale 'C.UTF-8';"), "{script}");
    // Run as the current user.
    let script = format!("set -eu\nrunuser() {{ shift 3; \"$@\"; }}\nsystemctl() {{ :; }}\n{script}");
    let mut shell = client_program("bash", &Url::parse(&stack.connection.database_url).unwrap());
    let programs =
        format!("{}:{}:{}", folder.path().display(), clients.display(), std::env::var("PATH").unwrap());
    assert_success(
        shell.args(["-c", &script]).env("PATH", programs).env("PGDATABASE", "postgres").output().unwrap(),
    );

    let variables = std::fs::read_to_string(&file).unwrap();
    let value = |name: &str| {
        let line = variables.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("{variables}")).to_owned()
    };
    let url_in_file = Url::parse(&value("TIDEMARK_DATABASE_URL")).unwrap();
    let password = url_in_file.password().unwrap();
    assert!(password.len() == 48 && value("TIDEMARK_CLICKHOUSE_PASSWORD") == "of-the-engine", "{variables}");
    let called = std::fs::read_to_string(folder.path().join("called")).unwrap();
    assert_eq!(called.lines().count(), 4, "{called}");
    for secret in [password, "of-the-engine"] {
        assert!(!called.contains(secret), "visible in the list of processes: {called}");
    }

    let mut one = PgConnection::connect(url(&name, password, &name).as_str()).await.unwrap();
    assert!(!is_privileged(&mut one).await);
    assert!(diagnosis::fetch_server(&mut one).await.unwrap().sees_all_sessions);
    let created: (String, String, bool) = sqlx::query_as(
        "select pg_encoding_to_char(encoding)::text, datcollate::text, pg_get_userbyid(datdba) = current_user
         from pg_database where datname = current_database()",
    )
    .fetch_one(&mut one)
    .await
    .unwrap();
    assert_eq!(created, ("UTF8".to_owned(), "C.UTF-8".to_owned(), true));
    one.close().await.unwrap();
    let mut admin = PgConnection::connect(&stack.connection.database_url).await.unwrap();
    run(&mut admin, &format!("drop database {name} with (force)")).await;
    run(&mut admin, &format!("drop role {name}")).await;
}

#[tokio::test]
async fn disk_guard_leaves_space_for_the_wal() {
    const GIB: i64 = 1024;
    let services = services();
    let command = words(&services["postgres"]["command"]);
    let max_wal = command.iter().find_map(|option| option.strip_prefix("--max_wal_size=")).unwrap();
    let max_wal = max_wal.strip_suffix("GB").expect("whole gigabytes").parse::<i64>().unwrap() * GIB;
    let default: i64 = sqlx::query_scalar(
        "select boot_val::bigint from pg_settings where name = 'max_wal_size' and unit = 'MB'",
    )
    .fetch_one(&Stack::shared().databases.pg)
    .await
    .unwrap();
    let space = environment(&services["space"]);
    let unit = text("deploy/systemd/tidemark-space.service");
    let variable = |name: &str| {
        let words = unit.lines().find_map(|line| line.strip_prefix("Environment=")).unwrap().split(' ');
        words.filter_map(|word| word.split_once('=')).find(|(key, _)| *key == name).unwrap().1.to_owned()
    };
    let (low, high) = ("SPACE_LOW_MIB", "SPACE_HIGH_MIB");
    let in_containers = [space[low].clone(), space[high].clone()];
    let bounds = [(max_wal, in_containers), (default, [variable(low), variable(high)])];
    let bounds = bounds.map(|(wal, bounds)| (wal, bounds.map(|bound| bound.parse::<i64>().unwrap())));
    for (wal, [low, high]) in bounds {
        assert!(low >= wal + GIB, "{low} MiB for a WAL of {wal} MiB");
        assert_eq!(high, low + GIB);
    }
    let [containers, units] = bounds.map(|(_, [low, _])| low / GIB);
    let expected = format!("Below {units} GiB, in containers {containers} (`{low}`)");
    assert!(text("docs/operating.md").contains(&expected), "docs/operating.md lacks: {expected}");
}
