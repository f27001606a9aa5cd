//! Migrations beside a version that goes on working: none holds requests up, and each version says what it needs.

use std::process::Stdio;
use std::time::{Duration, Instant};

use sqlx::PgPool;
use sqlx::migrate::Migrator;

use crate::harness::client;
use crate::harness::databases::Databases;
use crate::harness::eventually;

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
