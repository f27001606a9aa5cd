//! The Postgres of an installation: the role and the database that the service gets there, made as the image and the page about
//! installing make them, and the room that its guard keeps.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tidemark::store::postgres::diagnosis;
use url::Url;
use uuid::Uuid;

use crate::containers::{environment, mounted, services, words};
use crate::harness::{IsolatedStores, Stack, http_client, wait_until};
use crate::{path, text, told};

/// A name of a role and of databases on the server of the tests.
fn unused() -> String {
    format!("deploy_{}", Uuid::now_v7().simple())
}

/// The server of the tests, for a role and a database.
fn url(role: &str, password: &str, database: &str) -> Url {
    let mut url = Url::parse(&Stack::shared().connection.database_url).unwrap();
    url.set_username(role).unwrap();
    url.set_password(Some(password)).unwrap();
    url.set_path(database);
    url
}

/// One of Postgres' programs that asks the server.
fn client_program(program: &str, url: &Url) -> Command {
    let mut command = Command::new(program);
    command.env("PGHOST", url.host_str().unwrap()).env("PGPORT", url.port().unwrap().to_string());
    command.env("PGUSER", url.username()).env("PGPASSWORD", url.password().unwrap());
    command.env("PGDATABASE", url.path().trim_start_matches('/'));
    command
}

#[track_caller]
fn done(output: Output) -> String {
    assert!(output.status.success(), "{}", told(&output));
    told(&output)
}

async fn run(connection: &mut PgConnection, statement: &str) {
    let query = sqlx::query(AssertSqlSafe(statement.to_owned()));
    query.execute(connection).await.unwrap_or_else(|error| panic!("{error}: {statement}"));
}

/// Whether a role is a superuser or may make itself one, other roles or databases.
async fn is_mighty(connection: &mut PgConnection) -> bool {
    let rights = "select rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls
         or exists (select from pg_auth_members where member = pg_roles.oid and roleid <> 'pg_read_all_stats'::regrole)
         from pg_roles where rolname = current_user";
    sqlx::query_scalar(rights).fetch_one(connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_role_that_the_image_makes_serves_and_is_no_superuser() {
    let stack = Stack::shared();
    let services = services();
    let script = mounted(&services["postgres"], "deploy/postgres/role.sql");
    assert!(script.starts_with("/docker-entrypoint-initdb.d/") && script.ends_with(".sql"), "{script}");
    let mut admin = PgConnection::connect(&stack.connection.database_url).await.unwrap();
    let (role, superuser) = (unused(), unused());
    run(&mut admin, &format!("create role {superuser} superuser login password 'of-all'")).await;
    run(&mut admin, &format!("create database {role} owner {superuser}")).await;

    // As the image runs what lies there, and with its variables.
    let all = url(&superuser, "of-all", &role);
    let mut init = client_program("psql", &all);
    init.args(["-v", "ON_ERROR_STOP=1", "--no-password", "--no-psqlrc", "-f"]);
    done(init.arg(path("deploy/postgres/role.sql")).env("POSTGRES_PASSWORD", "of-one").output().unwrap());

    let refused = PgConnection::connect(all.as_str()).await.unwrap_err();
    assert!(refused.to_string().contains("password authentication failed"), "{refused}");
    let own = url(&role, "of-one", &role);
    let mut one = PgConnection::connect(own.as_str()).await.unwrap();
    assert!(!is_mighty(&mut one).await);
    for statement in ["alter system set max_connections = 5", "copy (select 1) to program 'true'"] {
        let error = sqlx::query(statement).execute(&mut one).await.unwrap_err();
        let code = error.as_database_error().and_then(|error| error.code().map(|code| code.into_owned()));
        assert_eq!(code.as_deref(), Some("42501"), "{statement}");
    }
    // What the guard of the disk does in its name, where it does it; `off` is what holds anyway.
    let guards = url(&role, "of-one", &environment(&services["space"])["PGDATABASE"]);
    let mut guard = PgConnection::connect(guards.as_str()).await.unwrap();
    for statement in ["alter system set default_transaction_read_only = off", "select pg_reload_conf()"] {
        run(&mut guard, statement).await;
    }
    run(&mut guard, "alter system reset default_transaction_read_only").await;
    guard.close().await.unwrap();

    // It makes the schema, serves, and finds nothing wrong with its rights.
    let mut connection = stack.connection.clone();
    connection.database_url = own.to_string();
    connection.clickhouse_database.clone_from(&role);
    let databases = IsolatedStores::open(connection);
    done(databases.command(&[]).arg("migrate").output().unwrap());
    let made = |arguments: &[&str], field: &str| {
        let output = databases.command(&[]).args(arguments).arg("--json").output().unwrap();
        let made: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", told(&output)));
        made[field].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
    };
    let organization = made(&["org", "create", "--name", "of a plain role"], "id");
    let key = made(&["key", "create", "--org", &organization, "--name", "test"], "key");
    let (mut serve, base) = databases.serve(&[]);
    let request =
        http_client().post(format!("{base}/creators")).bearer_auth(&key).json(&json!({"name": "Plain"}));
    assert_eq!(request.send().await.unwrap().status(), 201);
    wait_until("search finds it", async || {
        let answer =
            http_client().get(format!("{base}/search?q=plain")).bearer_auth(&key).send().await.unwrap();
        let found: Value = answer.json().await.unwrap();
        (found["data"]["creators"].as_array()?.len() == 1).then_some(())
    })
    .await;
    let doctor = databases.command(&[]).args(["doctor", "--json"]).output().unwrap();
    let checks: Vec<Value> = serde_json::from_slice(&doctor.stdout).unwrap();
    let of_postgres = checks.iter().filter(|check| check["check"].as_str().unwrap().starts_with("postgres"));
    assert!(of_postgres.inspect(|check| assert_ne!(check["status"], "fail", "{check}")).count() > 5);
    let transactions = checks.iter().find(|check| check["check"] == "postgres-transactions").unwrap();
    assert!(!transactions["message"].as_str().unwrap().contains("pg_read_all_stats"), "{transactions}");
    serve.stop();

    // A dump goes and comes back in its name, as docs/backups.md does it.
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump");
    let mut taken = client_program("pg_dump", &own);
    done(taken.args(["--format=custom", "--file"]).arg(&dump).output().unwrap());
    databases.pg().close().await;
    one.close().await.unwrap();
    run(&mut admin, &format!("drop database {role} with (force)")).await;
    run(&mut admin, &format!("create database {role} owner {role}")).await;
    let mut restore = client_program("pg_restore", &own);
    let options = ["--exit-on-error", "--single-transaction", "--no-owner", "--dbname", &role];
    done(restore.args(options).arg(&dump).output().unwrap());
    let mut one = PgConnection::connect(own.as_str()).await.unwrap();
    let name: String =
        sqlx::query_scalar("select name from organizations").fetch_one(&mut one).await.unwrap();
    assert_eq!(name, "of a plain role");
    one.close().await.unwrap();

    stack.databases.clickhouse.query_raw(&format!("drop database `{role}` sync")).execute().await.unwrap();
    run(&mut admin, &format!("drop database {role} with (force)")).await;
    let mut there = Url::parse(&stack.connection.database_url).unwrap();
    there.set_path(guards.path());
    let mut admin = PgConnection::connect(there.as_str()).await.unwrap();
    run(&mut admin, &format!("drop owned by {role}, {superuser}")).await;
    run(&mut admin, &format!("drop role {role}, {superuser}")).await;
}

/// The commands of docs/install.md from one sentence up to another.
fn commands(from: &str, to: &str) -> String {
    let page = text("docs/install.md");
    let part = page.split_once(from).expect(from).1.split_once(to).expect(to).0;
    part.lines().filter_map(|line| line.strip_prefix("    ")).map(|line| format!("{line}\n")).collect()
}

/// Puts a program before another of the same name, which notes what it was called with.
fn overheard(folder: &Path, program: &str) {
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$*\" >> {0}/called\nPATH=${{PATH#*:}} exec {program} \"$@\"\n",
        folder.display()
    );
    let file = folder.join(program);
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn the_page_makes_a_role_and_a_database_and_shows_nobody_a_password() {
    let stack = Stack::shared();
    let folder = tempfile::tempdir().unwrap();
    let (file, credentials) = (folder.path().join("tidemark.env"), folder.path().join("credentials.json"));
    std::fs::copy(path("deploy/systemd/tidemark.env.example"), &file).unwrap();
    std::fs::write(&credentials, "{\n  \"user\": \"tidemark\",\n  \"password\": \"of-the-engine\"\n}\n")
        .unwrap();
    for program in ["psql", "sed"] {
        overheard(folder.path(), program);
    }
    let name = unused();
    let script = commands("Create a role and a database", "Add the platform credentials");
    let script = script.replace("/etc/tidemark/tidemark.env", file.to_str().unwrap());
    let script =
        script.replace("/var/lib/tidemark/clickhouse/credentials.json", credentials.to_str().unwrap());
    let script = script.replace("role tidemark ", &format!("role {name} "));
    let script =
        script.replace("database tidemark owner tidemark ", &format!("database {name} owner {name} "));
    assert_eq!(script.matches(&name).count(), 3, "{script}");
    // The server of the tests has this anyway; a cluster of Debian's may be in SQL_ASCII.
    assert!(script.contains(" template template0 encoding 'UTF8' locale 'C.UTF-8';"), "{script}");
    // Whoever the page becomes with `runuser -u postgres --`, the tests are on their server.
    let script = format!("set -eu\nrunuser() {{ shift 3; \"$@\"; }}\nsystemctl() {{ :; }}\n{script}");
    let mut shell = client_program("bash", &Url::parse(&stack.connection.database_url).unwrap());
    let programs = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    done(shell.args(["-c", &script]).env("PATH", programs).env("PGDATABASE", "postgres").output().unwrap());

    let variables = std::fs::read_to_string(&file).unwrap();
    let value = |name: &str| {
        let line = variables.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("{variables}")).to_owned()
    };
    let said = Url::parse(&value("TIDEMARK_DATABASE_URL")).unwrap();
    let password = said.password().unwrap();
    assert!(password.len() == 48 && value("TIDEMARK_CLICKHOUSE_PASSWORD") == "of-the-engine", "{variables}");
    let called = std::fs::read_to_string(folder.path().join("called")).unwrap();
    assert_eq!(called.lines().count(), 4, "{called}");
    for secret in [password, "of-the-engine"] {
        assert!(!called.contains(secret), "seen by whoever lists processes: {called}");
    }

    let mut one = PgConnection::connect(url(&name, password, &name).as_str()).await.unwrap();
    assert!(!is_mighty(&mut one).await);
    assert!(diagnosis::fetch_server(&mut one).await.unwrap().sees_all_sessions);
    let made: (String, String, bool) = sqlx::query_as(
        "select pg_encoding_to_char(encoding)::text, datcollate::text, pg_get_userbyid(datdba) = current_user
         from pg_database where datname = current_database()",
    )
    .fetch_one(&mut one)
    .await
    .unwrap();
    assert_eq!(made, ("UTF8".to_owned(), "C.UTF-8".to_owned(), true));
    one.close().await.unwrap();
    let mut admin = PgConnection::connect(&stack.connection.database_url).await.unwrap();
    run(&mut admin, &format!("drop database {name} with (force)")).await;
    run(&mut admin, &format!("drop role {name}")).await;
}

#[tokio::test]
async fn the_guard_leaves_the_room_that_postgres_log_may_take() {
    const GIB: i64 = 1024;
    let services = services();
    let command = words(&services["postgres"]["command"]);
    let most = command.iter().find_map(|option| option.strip_prefix("--max_wal_size=")).unwrap();
    let most = most.strip_suffix("GB").expect("whole gigabytes").parse::<i64>().unwrap() * GIB;
    let unset: i64 = sqlx::query_scalar(
        "select boot_val::bigint from pg_settings where name = 'max_wal_size' and unit = 'MB'",
    )
    .fetch_one(&Stack::shared().databases.pg)
    .await
    .unwrap();
    let space = environment(&services["space"]);
    let unit = text("deploy/systemd/tidemark-space.service");
    let of_unit = |name: &str| {
        let words = unit.lines().find_map(|line| line.strip_prefix("Environment=")).unwrap().split(' ');
        words.filter_map(|word| word.split_once('=')).find(|(known, _)| *known == name).unwrap().1.to_owned()
    };
    let (low, high) = ("SPACE_LOW_MIB", "SPACE_HIGH_MIB");
    let in_containers = [space[low].clone(), space[high].clone()];
    let bounds = [(most, in_containers), (unset, [of_unit(low), of_unit(high)])];
    let bounds = bounds.map(|(log, bounds)| (log, bounds.map(|bound| bound.parse::<i64>().unwrap())));
    for (log, [low, high]) in bounds {
        assert!(low >= log + GIB, "with {low} MiB left the log may take {log}");
        assert_eq!(high, low + GIB);
    }
    let [containers, units] = bounds.map(|(_, [low, _])| low / GIB);
    let said = format!("Below {units} GiB, in containers {containers} (`{low}`)");
    assert!(text("docs/operating.md").contains(&said), "docs/operating.md does not say: {said}");
}
