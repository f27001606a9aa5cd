//! Problems of Postgres that `tidemark doctor` reports: connection, role and data.

use harness::{IsolatedStores, wait_until};
use sqlx::PgConnection;
use tidemark::store::postgres::diagnosis;

use super::{Installation, findings, run_doctor};

#[tokio::test]
async fn connection_problems_are_reported() {
    let installation = Installation::new().await;
    let expect_failure = |url: &str, parts: &[&str]| {
        installation.expect_finding(&[("TIDEMARK_DATABASE_URL", url)], "fail", "postgres", parts);
    };
    let unreachable = installation.database_url(|url| url.set_port(Some(1)).unwrap());
    expect_failure(&unreachable, &["127.0.0.1:1 cannot be reached", "start it"]);
    let wrong_password = installation.database_url(|url| url.set_password(Some("secret-of-a-test")).unwrap());
    expect_failure(&wrong_password, &["rejects the role", "TIDEMARK_DATABASE_URL"]);
    let missing = installation.database_url(|url| url.set_path("/nothing_here"));
    expect_failure(&missing, &["`tidemark migrate`"]);
    expect_failure("no url", &["is no URL", "for example"]);
}

#[tokio::test]
async fn role_problems_are_reported() {
    let installation = Installation::new().await;
    let pg = installation.databases.pg();
    let role = "doctor_reads_only";
    let statements = format!(
        "drop role if exists {role};
         create role {role} login password 'secret-of-a-test';
         grant select on all tables in schema public to {role}"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(pg).await.unwrap();
    let reader = installation.database_url(|url| {
        url.set_username(role).unwrap();
        url.set_password(Some("secret-of-a-test")).unwrap();
    });
    let expect = |status, check, parts: &[&str]| {
        installation.expect_finding(&[("TIDEMARK_DATABASE_URL", &reader)], status, check, parts);
    };
    expect("fail", "postgres-rights", &["accounts", "grant select, insert"]);
    expect(
        "warn",
        "postgres-transactions",
        &["does not see transactions", &format!("grant pg_read_all_stats to {role}`")],
    );
    // The test's other connections count although the role does not see them.
    let capacity = "select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int";
    let capacity: i32 = sqlx::query_scalar(capacity).fetch_one(pg).await.unwrap();
    let found =
        findings(&run_doctor(&installation.variables, &[("TIDEMARK_DATABASE_URL", &reader)], &["--json"]));
    let connections = found.iter().find(|finding| finding["check"] == "postgres-connections").unwrap();
    let own_only = format!("{} of {capacity} connections", capacity - 1);
    assert!(!connections["message"].as_str().unwrap().contains(&own_only), "{connections}");
    let read_only = format!("alter role {role} set default_transaction_read_only = on");
    sqlx::raw_sql(sqlx::AssertSqlSafe(read_only)).execute(pg).await.unwrap();
    expect("fail", "postgres-settings", &["Postgres is read-only", "free disk space"]);
    let statements = format!("drop owned by {role}; drop role {role}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(pg).await.unwrap();
}

#[tokio::test]
async fn data_problems_are_reported() {
    let installation = Installation::new().await;
    let pg = installation.databases.pg();
    let expect = |status, check, parts: &[&str]| installation.expect_finding(&[], status, check, parts);
    let statements = "update pg_index set indisvalid = false where indexrelid = 'creators_by_name'::regclass;
                      insert into outbox (organization_id, events, since, created_at)
                      values (gen_random_uuid(), '\\x00', now(), now() - interval '1 hour')";
    sqlx::raw_sql(statements).execute(pg).await.unwrap();
    expect("fail", "postgres-indexes", &["drop index concurrently creators_by_name"]);
    expect("fail", "outbox", &["1 changes wait", "start `tidemark track`"]);
    let many = "insert into outbox (organization_id, events, since)
                select gen_random_uuid(), '\\x00', now() from generate_series(1, 100000)";
    sqlx::query(many).execute(pg).await.unwrap();
    expect("fail", "outbox", &["100,000 or more changes wait"]);
    expect("warn", "api", &["start `tidemark serve`"]);
    for statement in [
        "delete from outbox",
        "insert into source_pauses values ('tiktok', 'http', now(), 'credentials', 'refused', now())",
        "insert into missing_history values (7, null, now())",
        "insert into skewed_clocks values ('10.0.0.7', -3600, now())",
        "insert into organizations (id, name, history_since, history_since_set_at)
         values (gen_random_uuid(), 'Slow', '2026-01-01', now() - interval '61 minutes')",
        "insert into webhooks (id, organization_id, url, format, origin, is_active, secret, position, failing_since, added_at,
             updated_at)
         select gen_random_uuid(), id, 'https://example.com/', 'slack', '', true, '', id, now(), now(), now()
         from organizations where name = 'Slow'",
    ] {
        sqlx::query(statement).execute(pg).await.unwrap();
    }
    expect("fail", "tracker", &["tiktok rejects the credentials of http"]);
    expect("fail", "tracker", &["10.0.0.7", "its clock is 3600 s behind Postgres'", "`tidemark repair`"]);
    expect("fail", "history", &["restore a backup of clickhouse"]);
    expect("fail", "retention", &["history of Slow (", "before 2026-01-01 is not deleted"]);
    expect("warn", "webhooks", &["of Slow (", "fails since", "its deliveries show"]);
    let last = "delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)";
    sqlx::query(last).execute(pg).await.unwrap();
    expect("fail", "postgres-schema", &["lacks 1 migrations", "`tidemark migrate`"]);
}

#[tokio::test]
async fn vacuum_is_not_reported_as_a_long_transaction() {
    let stores = IsolatedStores::create().await;
    let pg = stores.pg();
    let mut connection = pg.acquire().await.unwrap();
    let mut other = pg.acquire().await.unwrap();
    let longest = async |connection: &mut PgConnection| {
        diagnosis::find_longest_transaction(connection, 0).await.unwrap()
    };
    sqlx::query("begin").execute(&mut *other).await.unwrap();
    assert!(longest(&mut connection).await.is_some());
    sqlx::query("rollback").execute(&mut *other).await.unwrap();
    sqlx::query("create table pages as select generate_series(1, 200000)")
        .execute(&mut *other)
        .await
        .unwrap();
    let slow = "set vacuum_cost_delay = '100ms'; set vacuum_cost_limit = 1";
    sqlx::raw_sql(slow).execute(&mut *other).await.unwrap();
    let vacuum = tokio::spawn(async move { sqlx::query("vacuum pages").execute(&mut *other).await });
    let pid = wait_until("the vacuum runs", async || {
        let pid = "select pid from pg_stat_progress_vacuum where datname = current_database() and relid = 'pages'::regclass";
        sqlx::query_scalar::<_, i32>(pid).fetch_optional(pg).await.unwrap()
    })
    .await;
    let open = longest(&mut connection).await;
    assert!(open.as_ref().is_none_or(|open| open.pid != pid), "{open:?}");
    sqlx::query("select pg_cancel_backend($1)").bind(pid).execute(pg).await.unwrap();
    assert!(vacuum.await.unwrap().is_err(), "the vacuum ended before the check");
}
