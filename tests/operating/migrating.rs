//! Migrations beside a version that goes on working: none holds requests up, and each version says what it needs.

use std::process::Stdio;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use sqlx::migrate::Migrator;
use tidemark::model::key::Key;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::{migrate, outbox};

use crate::harness::databases::{Databases, Process};
use crate::harness::{client, eventually, tenant};
use crate::readiness::Gate;

static MIGRATIONS: Migrator = sqlx::migrate!();
/// The last migration of an earlier version; later ones put triggers on the videos.
const EARLIER: i64 = 10;

/// Makes the database anew, as an earlier version left it.
async fn as_earlier(pg: &PgPool) {
    for statement in ["drop schema public cascade", "create schema public"] {
        sqlx::query(statement).execute(pg).await.unwrap();
    }
    MIGRATIONS.run_to(EARLIER, pg).await.unwrap();
}

/// Runs the program until it ends, and returns its status and what it said.
fn run(databases: &Databases, arguments: &[&str]) -> (Option<i32>, String) {
    let output = databases.command(&[]).args(arguments).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test]
async fn a_version_refuses_an_older_schema_and_works_on_a_newer_one() {
    let databases = Databases::fresh("schema_versions").await;
    as_earlier(&databases.pg).await;
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("index");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--search-index", index.to_str().unwrap()];
    for arguments in [serve.as_slice(), &["track"]] {
        let (status, told) = run(&databases, arguments);
        assert_eq!(status, Some(1), "{told}");
        let last = told.lines().last().unwrap();
        assert!(last.starts_with("error: postgres lacks ") && last.contains("`tidemark migrate`"), "{told}");
    }
    let (status, told) = run(&databases, &["migrate"]);
    assert_eq!(status, Some(0), "{told}");

    // What comes after this version has left its mark in both stores.
    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (9999, 'of a newer version', true, '\\x00', 0)",
    )
    .execute(&databases.pg)
    .await
    .unwrap();
    let (_, database) = &databases.variables[4];
    let clickhouse = databases.stack.stores.clickhouse.clone().with_database(database);
    let newer = "insert into schema_migrations (version, name, checksum) values (9999, '9999_newer.sql', '')";
    clickhouse.query_raw(newer).execute().await.unwrap();
    let (_api, base) = databases.serve(&[]);
    assert_eq!(client().get(format!("{base}/health")).send().await.unwrap().status(), 200);
    let (status, told) = run(&databases, &["migrate"]);
    assert_eq!(status, Some(1));
    assert!(told.contains("newer Tidemark"), "{told}");
}

#[tokio::test]
async fn an_index_whose_building_was_broken_off_is_built_anew() {
    let databases = Databases::fresh("schema_indexes").await;
    // As a process leaves it that is killed while it builds.
    for statement in [
        "update pg_index set indisvalid = false where indexrelid = 'scrape_targets_failing'::regclass",
        "delete from _sqlx_migrations where version = 17",
    ] {
        sqlx::query(statement).execute(&databases.pg).await.unwrap();
    }
    let (status, told) = run(&databases, &["migrate"]);
    assert_eq!(status, Some(0), "{told}");
    let valid = "select indisvalid from pg_index where indexrelid = 'scrape_targets_failing'::regclass";
    let valid: bool = sqlx::query_scalar(valid).fetch_one(&databases.pg).await.unwrap();
    assert!(valid, "it serves nobody");
}

#[tokio::test]
async fn who_waits_to_migrate_is_not_in_the_way_of_an_index_that_is_built_concurrently() {
    let databases = Databases::fresh("schema_turns").await;
    let pg = &databases.pg;
    let mut first = pg.acquire().await.unwrap();
    sqlx::query("select pg_advisory_lock($1)").bind(migrate::LOCK).execute(&mut *first).await.unwrap();
    let own: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *first).await.unwrap();
    let mut second = databases.command(&[]).arg("migrate").stdin(Stdio::null()).spawn().unwrap();
    eventually("the second one waits", async || {
        let waits = "select exists (select from pg_stat_activity
                     where datname = current_database() and query like 'select pg%advisory_lock%' and pid <> $1)";
        let waits: bool = sqlx::query_scalar(waits).bind(own).fetch_one(pg).await.unwrap();
        waits.then_some(())
    })
    .await;
    let index = "create index concurrently of_a_test on videos (id)";
    sqlx::query(index).execute(&mut *first).await.expect("both wait for each other");
    assert!(second.try_wait().unwrap().is_none(), "the second one did not wait");
    first.close().await.unwrap();
    assert!(second.wait().unwrap().success());
}

#[tokio::test]
async fn who_begins_without_postgres_works_once_its_schema_is_there() {
    let databases = Databases::fresh("schema_later").await;
    let pg = &databases.pg;
    as_earlier(pg).await;
    let (_, url) = &databases.variables[0];
    let (gate, url) = Gate::to(url.parse().unwrap()).await;
    gate.close();
    let through = [("TIDEMARK_DATABASE_URL", url.to_string())];
    let (api, base) = databases.serve(&through);
    let track = databases.track(&through);
    for process in [&api, &track] {
        let told = || process.log().contains("postgres does not say of which version");
        eventually("it has begun without", async || told().then_some(())).await;
        assert_eq!(process.page("/readyz").await.0, 503);
    }
    gate.open();
    for process in [&api, &track] {
        eventually("it says what is missing", async || {
            let (status, text) = process.page("/readyz").await;
            (status == 503 && text.contains("postgres lacks ") && text.contains("`tidemark migrate`"))
                .then_some(())
        })
        .await;
    }
    let asked = async |path: &str, key: &str| {
        client().get(format!("{base}{path}")).bearer_auth(key).send().await.unwrap()
    };
    let some = Key::generate().unwrap();
    let refused = asked("/accounts", some.reveal()).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"] == "1"), (503, true));
    assert_eq!(asked("/health", some.reveal()).await.status(), 503);
    let waits = |process: &Process| process.log().contains("this version; waiting for it");
    eventually("both wait", async || (waits(&api) && waits(&track)).then_some(())).await;
    let led = async || outbox::is_led(&mut pg.acquire().await.unwrap()).await.unwrap();
    assert!(!led().await, "the tracker works on a schema that lacks something");

    let (status, told) = run(&databases, &["migrate"]);
    assert_eq!(status, Some(0), "{told}");
    for process in [&api, &track] {
        eventually("it is ready", async || (process.page("/readyz").await.0 == 200).then_some(())).await;
    }
    eventually("the tracker works", async || led().await.then_some(())).await;
    let (_, key) = tenant(pg, OrganizationChange::default()).await;
    assert_eq!(asked("/accounts", &key).await.status(), 200);
}

#[tokio::test]
async fn a_migration_waits_for_a_long_transaction_and_nobody_waits_long_for_the_migration() {
    let databases = Databases::fresh("schema_locks").await;
    let pg = &databases.pg;
    as_earlier(pg).await;
    let mut long = pg.begin().await.unwrap();
    sqlx::query("lock table videos in row exclusive mode").execute(&mut *long).await.unwrap();
    let mut migrate = databases.command(&[]).arg("migrate").stdin(Stdio::null()).spawn().unwrap();
    eventually("the migration waits for the transaction", async || {
        let waits =
            "select exists (select from pg_locks where not granted and relation = 'videos'::regclass)";
        let waits: bool = sqlx::query_scalar(waits).fetch_one(pg).await.unwrap();
        waits.then_some(())
    })
    .await;
    // A write stands in line behind the migration, which gives way before a request has to give up.
    let asked = Instant::now();
    let mut write = pg.begin().await.unwrap();
    sqlx::query("lock table videos in row exclusive mode").execute(&mut *write).await.unwrap();
    write.rollback().await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(10), "a write waited {:?}", asked.elapsed());
    assert!(migrate.try_wait().unwrap().is_none(), "the migration did not wait");
    long.rollback().await.unwrap();
    assert!(migrate.wait().unwrap().success());
    let lacking = "select count(*) from _sqlx_migrations where success";
    let applied: i64 = sqlx::query_scalar(lacking).fetch_one(pg).await.unwrap();
    assert_eq!(applied, MIGRATIONS.iter().count() as i64);
}
