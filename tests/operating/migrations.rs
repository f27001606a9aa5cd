//! Migrations do not block running processes, and processes reject an incompatible schema.

use std::process::Stdio;

use harness::{
    IsolatedStores, Process, TcpProxy, WAIT_TIMEOUT, assert_derived_tables, create_organization, http_client,
    rebuild_derived_tables, wait_until,
};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{PgPool, SqlSafeStr};
use tidemark::model::key::ApiKey;
use tidemark::model::text::fold_case;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::{migrate, outbox};

static MIGRATIONS: Migrator = sqlx::migrate!();

/// The migrations of a later version, which adds one with this statement.
fn later_version(statement: &'static str, no_tx: bool) -> Migrator {
    let added = Migration::new(9999, "later".into(), MigrationType::Simple, statement.into_sql_str(), no_tx);
    Migrator::with_migrations(MIGRATIONS.iter().cloned().chain([added]).collect())
}

async fn recreate_public_schema(pg: &PgPool) {
    for statement in ["drop schema public cascade", "create schema public"] {
        sqlx::query(statement).execute(pg).await.unwrap();
    }
}

/// Runs the program until it exits, and returns its exit code and log.
pub(crate) fn run(databases: &IsolatedStores, arguments: &[&str]) -> (Option<i32>, String) {
    let output = databases.command(&[]).args(arguments).stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs commands that must fail, and returns the last line of each log.
pub(crate) fn run_failing(databases: &IsolatedStores, commands: &[&str]) -> Vec<String> {
    let index = tempfile::tempdir().unwrap();
    let run_one = |command: &&str| {
        let serve = ["--listen", "127.0.0.1:0", "--search-index", index.path().to_str().unwrap()];
        let options = if *command == "serve" { &serve[..] } else { &[] };
        let (status, log) = run(databases, &[&[*command], options].concat());
        assert_eq!(status, Some(1), "{log}");
        log.lines().last().unwrap().to_owned()
    };
    commands.iter().map(run_one).collect()
}

#[tokio::test]
async fn older_schema_is_rejected_and_newer_schema_is_accepted() {
    let databases = IsolatedStores::create().await;
    recreate_public_schema(databases.pg()).await;
    for error in run_failing(&databases, &["serve", "track"]) {
        assert!(error.starts_with("error: postgres lacks ") && error.contains("`tidemark migrate`"));
    }
    let (status, log) = run(&databases, &["migrate"]);
    assert_eq!(status, Some(0), "{log}");

    sqlx::query(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (9999, 'newer version', true, '\\x00', 0)",
    )
    .execute(databases.pg())
    .await
    .unwrap();
    record_in_clickhouse(&databases, "(9999, '9999_newer.sql', '')").await;
    let (_api, base) = databases.serve(&[]);
    assert_eq!(http_client().get(format!("{base}/health")).send().await.unwrap().status(), 200);
    assert!(run_failing(&databases, &["migrate"])[0].contains("newer Tidemark"));
}

async fn record_in_clickhouse(databases: &IsolatedStores, row: &str) {
    let clickhouse = databases.clickhouse();
    let insert = format!("insert into schema_migrations (version, name, checksum) values {row}");
    clickhouse.query_raw(&insert).execute().await.unwrap();
}

fn assert_errors_suggest_export_and_import(errors: &[String], store: &str) {
    for error in errors {
        let start = format!("error: {store} was migrated by an incompatible Tidemark (migration 1 differs)");
        assert!(error.starts_with(&start), "{error}");
        assert!(error.contains("`tidemark export`") && error.contains("`tidemark import`"), "{error}");
    }
}

#[tokio::test]
async fn postgres_with_unreleased_migrations_is_rejected() {
    let databases = IsolatedStores::create().await;
    recreate_public_schema(databases.pg()).await;
    // The migrations table as versions before 0.1.0 recorded it.
    sqlx::raw_sql(
        "create table _sqlx_migrations (version bigint primary key, description text not null,
             installed_on timestamptz not null default now(), success boolean not null, checksum bytea not null,
             execution_time bigint not null);
         insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         select version, 'initial', true, sha384(convert_to(version::text, 'UTF8')), 0
         from unnest(array[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15, 16, 17]) version",
    )
    .execute(databases.pg())
    .await
    .unwrap();
    assert_errors_suggest_export_and_import(
        &run_failing(&databases, &["migrate", "serve", "track"]),
        "postgres",
    );
    let doctor = databases.command(&[]).arg("doctor").output().unwrap();
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("`tidemark export`"), "{doctor:?}");
    let tables: i64 = sqlx::query_scalar("select count(*) from pg_tables where schemaname = 'public'")
        .fetch_one(databases.pg())
        .await
        .unwrap();
    assert_eq!(tables, 1, "nothing was created");
}

#[tokio::test]
async fn clickhouse_with_unreleased_migrations_is_rejected() {
    let databases = IsolatedStores::create().await;
    record_in_clickhouse(&databases, "(1, '0001_dimensions.sql', 'another checksum')").await;
    assert_errors_suggest_export_and_import(
        &run_failing(&databases, &["migrate", "serve", "track"]),
        "clickhouse",
    );
}

#[tokio::test]
async fn interrupted_index_build_is_repeated() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    // A concurrent build that is killed leaves the index invalid.
    for statement in [
        "create index test_creators_index on creators (updated_at)",
        "update pg_index set indisvalid = false where indexrelid = 'test_creators_index'::regclass",
    ] {
        sqlx::query(statement).execute(pg).await.unwrap();
    }
    let index = "create index concurrently if not exists test_creators_index on creators (updated_at)";
    let with_index = later_version(index, /* no_tx */ true);
    let mut lock = migrate::lock_postgres(&databases.connection.database_url).await.unwrap();
    assert_eq!(migrate::migrate_postgres(&mut lock, &with_index).await.unwrap(), 1);
    let is_valid = "select indisvalid from pg_index where indexrelid = 'test_creators_index'::regclass";
    assert!(sqlx::query_scalar::<_, bool>(is_valid).fetch_one(pg).await.unwrap());
}

#[tokio::test]
async fn waiting_migration_does_not_block_a_concurrent_index() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    let mut first = pg.acquire().await.unwrap();
    sqlx::query("select pg_advisory_lock($1)")
        .bind(migrate::ADVISORY_LOCK)
        .execute(&mut *first)
        .await
        .unwrap();
    let first_pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *first).await.unwrap();
    let mut second = databases.command(&[]).arg("migrate").stdin(Stdio::null()).spawn().unwrap();
    wait_until("the second process waits", async || {
        let waits = "select exists (select from pg_stat_activity
                     where datname = current_database() and query like 'select case%advisory_lock%' and pid <> $1)";
        let waits: bool = sqlx::query_scalar(waits).bind(first_pid).fetch_one(pg).await.unwrap();
        waits.then_some(())
    })
    .await;
    let index = "create index concurrently test_videos_index on videos (id)";
    sqlx::query(index).execute(&mut *first).await.expect("no deadlock");
    assert!(second.try_wait().unwrap().is_none(), "the second process did not wait");
    first.close().await.unwrap();
    assert!(second.wait().unwrap().success());
}

#[tokio::test]
async fn process_started_without_postgres_waits_for_its_schema() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    recreate_public_schema(pg).await;
    let mut url: url::Url = databases.connection.database_url.parse().unwrap();
    let proxy = TcpProxy::start(url.host_str().unwrap(), url.port().unwrap()).await;
    url.set_port(Some(proxy.port)).unwrap();
    proxy.close();
    let proxied = [("TIDEMARK_DATABASE_URL", url.to_string())];
    let (api, base) = databases.serve(&proxied);
    let track = databases.track(&proxied);
    for process in [&api, &track] {
        let has_started = || process.log().contains("cannot read the schema version of postgres");
        wait_until("the process has started", async || has_started().then_some(())).await;
        assert_eq!(process.page("/readyz").await.0, 503);
    }
    proxy.open();
    for process in [&api, &track] {
        wait_until("/readyz reports missing migrations", async || {
            let (status, text) = process.page("/readyz").await;
            (status == 503 && text.contains("postgres lacks ") && text.contains("`tidemark migrate`"))
                .then_some(())
        })
        .await;
    }
    let get = async |path: &str, key: &str| {
        http_client().get(format!("{base}{path}")).bearer_auth(key).send().await.unwrap()
    };
    let unknown_key = ApiKey::generate().unwrap();
    let rejection = get("/accounts", unknown_key.reveal()).await;
    assert_eq!((rejection.status().as_u16(), &rejection.headers()["retry-after"] == "1"), (503, true));
    assert_eq!(get("/health", unknown_key.reveal()).await.status(), 503);
    let waits = |process: &Process| process.log().contains("waiting for the schema of this version");
    wait_until("both processes wait for the schema", async || (waits(&api) && waits(&track)).then_some(()))
        .await;
    let is_relay_running =
        async || outbox::RelayLock::is_held(&mut pg.acquire().await.unwrap()).await.unwrap();
    assert!(!is_relay_running().await, "the tracker runs on an older schema");

    let (status, log) = run(&databases, &["migrate"]);
    assert_eq!(status, Some(0), "{log}");
    for process in [&api, &track] {
        wait_until("the process is ready", async || (process.page("/readyz").await.0 == 200).then_some(()))
            .await;
    }
    wait_until("the tracker runs", async || is_relay_running().await.then_some(())).await;
    let (_, key) = create_organization(pg, OrganizationChange::default()).await;
    assert_eq!(get("/accounts", &key).await.status(), 200);
}

#[tokio::test]
async fn migration_waits_for_locks_without_blocking_writes() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    let mut long_transaction = pg.begin().await.unwrap();
    sqlx::query("lock table videos in row exclusive mode").execute(&mut *long_transaction).await.unwrap();
    let mut lock = migrate::lock_postgres(&databases.connection.database_url).await.unwrap();
    let migrate = tokio::spawn(async move {
        let with_column = later_version("alter table videos add column test bigint", /* no_tx */ false);
        migrate::migrate_postgres(&mut lock, &with_column).await
    });
    wait_until("the migration waits for the transaction", async || {
        let waits =
            "select exists (select from pg_locks where not granted and relation = 'videos'::regclass)";
        let waits: bool = sqlx::query_scalar(waits).fetch_one(pg).await.unwrap();
        waits.then_some(())
    })
    .await;
    // A write queues behind the migration, and gets its lock while the long transaction still holds its own: the
    // migration's lock attempt times out.
    let mut write = pg.begin().await.unwrap();
    let lock = sqlx::query("lock table videos in row exclusive mode").execute(&mut *write);
    tokio::time::timeout(WAIT_TIMEOUT, lock).await.expect("the migration blocks a write").unwrap();
    write.rollback().await.unwrap();
    assert!(!migrate.is_finished(), "the migration did not wait");
    long_transaction.rollback().await.unwrap();
    assert_eq!(migrate.await.unwrap().unwrap(), 1);
}

/// Rows as 0.1.0 wrote them: their keys are lower-case texts without normalization.
#[tokio::test]
async fn keys_of_stored_texts_are_rewritten_once() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    let (organization, _) = create_organization(pg, OrganizationChange::default()).await;
    let texts = ["Plain", "Cafe\u{301}", "É #Tag", "ＷＩＤＥ ❤\u{FE0F}"];
    for text in texts {
        sqlx::query(
            "with creator as (
                insert into creators (id, organization_id, name, name_key, added_at, updated_at)
                values (gen_random_uuid(), $1, $2, $3, now(), now()))
             insert into videos (id, organization_id, platform, external_id, subject_id, is_tracked, description,
                 description_key, added_at, updated_at)
             values (gen_random_uuid(), $1, 'tiktok', gen_random_uuid()::text, 0, true, $2, $3, now(), now())",
        )
        .bind(organization)
        .bind(text)
        .bind(fold_case(text))
        .execute(pg)
        .await
        .unwrap();
    }
    rebuild_derived_tables(pg, organization).await;
    let keys = async || -> Vec<(String, String, Option<String>)> {
        let select = "select v.description, v.description_key, c.name_search
             from videos v join creators c on c.organization_id = v.organization_id and c.name = v.description
             where v.organization_id = $1 order by v.internal_id";
        sqlx::query_as(select).bind(organization).fetch_all(pg).await.unwrap()
    };
    let before = keys().await;
    assert_eq!(run(&databases, &["migrate"]).0, Some(0));
    assert_eq!(keys().await, before, "the backfill was made when the database was created");

    sqlx::query("delete from backfills").execute(pg).await.unwrap();
    let (status, log) = run(&databases, &["migrate"]);
    assert_eq!(status, Some(0), "{log}");
    let rewritten = |text: &str, key: &str, search: Option<&str>| {
        (text.to_owned(), key.to_owned(), search.map(str::to_owned))
    };
    assert_eq!(
        keys().await,
        [
            rewritten(texts[0], "plain", None),
            rewritten(texts[1], "café", Some("café")),
            rewritten(texts[2], "é #tag", None),
            rewritten(texts[3], "wide ❤", Some("wide ❤")),
        ]
    );
    assert_derived_tables(pg, organization).await;
    let hashtags: Vec<Vec<String>> =
        sqlx::query_scalar("select hashtags from videos where organization_id = $1 order by internal_id")
            .bind(organization)
            .fetch_all(pg)
            .await
            .unwrap();
    assert_eq!(hashtags, [vec![], vec![], vec!["tag".to_owned()], vec![]]);
    let changes: Vec<String> = sqlx::query_scalar(
        "select distinct entity from search_changes where organization_id = $1 order by entity",
    )
    .bind(organization)
    .fetch_all(pg)
    .await
    .unwrap();
    assert_eq!(changes, ["creator", "video"]);
}

/// Posts as a version without events stored them.
#[tokio::test]
async fn young_posts_of_an_earlier_version_become_candidates_once() {
    let databases = IsolatedStores::create().await;
    let pg = databases.pg();
    let (organization, _) = create_organization(pg, OrganizationChange::default()).await;
    sqlx::query(
        "with account as (
            insert into accounts (id, organization_id, platform, username, added_at, updated_at)
            values (gen_random_uuid(), $1, 'tiktok', 'low.tide', now(), now()) returning id)
         insert into videos (id, organization_id, account_id, platform, external_id, subject_id, is_tracked, create_time,
             tracked_since, added_at, updated_at)
         select gen_random_uuid(), $1, id, 'tiktok', name, 0, false, ((today - posted) + time '09:00') at time zone 'UTC',
             today - observed, now(), now()
         from account, (select (now() at time zone 'UTC')::date as today) days,
             (values ('new', 0, 0), ('of two days', 2, 1), ('late', 4, 1), ('old', 8, 8)) posts (name, posted, observed)",
    )
    .bind(organization)
    .execute(pg)
    .await
    .unwrap();
    let candidates = async || -> Vec<(String, i16)> {
        let select =
            "select v.external_id, c.age_days from breakout_candidates c join videos v on v.id = c.video_id
             order by c.age_days";
        sqlx::query_as(select).fetch_all(pg).await.unwrap()
    };
    sqlx::query("delete from backfills where name = 'breakout_candidates'").execute(pg).await.unwrap();
    assert_eq!(run(&databases, &["migrate"]).0, Some(0));
    assert_eq!(candidates().await, [("new".to_owned(), 1), ("of two days".to_owned(), 3)]);
    sqlx::query("delete from breakout_candidates").execute(pg).await.unwrap();
    assert_eq!(run(&databases, &["migrate"]).0, Some(0));
    assert_eq!(candidates().await, []);
}
