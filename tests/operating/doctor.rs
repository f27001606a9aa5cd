//! `tidemark doctor`: each problem is reported with what to do about it.

use std::process::{Output, Stdio};

use serde_json::Value;
use sqlx::PgConnection;
use tidemark::store::clickhouse::history_writer::RecordedDelivery;
use tidemark::store::outbox;
use tidemark::store::postgres::diagnosis;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{IsolatedStores, command, wait_until};

/// Runs doctor with `more` variables on top of those of a test's databases.
fn run_doctor(variables: &[(&str, String)], more: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = command();
    command.arg("doctor").args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    command.envs(more.iter().copied()).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn findings(output: &Output) -> Vec<Value> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"))
}

/// The findings about restored databases.
pub(crate) fn doctor_findings(own: &IsolatedStores) -> Vec<Value> {
    findings(&run_doctor(&own.connection.environment(), &[], &["--json"]))
}

/// Databases, a folder for a search index, and the variables for both.
struct Installation {
    databases: IsolatedStores,
    variables: Vec<(&'static str, String)>,
    _folder: tempfile::TempDir,
}

impl Installation {
    async fn new() -> Self {
        let databases = IsolatedStores::create().await;
        let folder = tempfile::tempdir().unwrap();
        let mut variables = databases.environment.clone();
        variables.push(("TIDEMARK_SEARCH_INDEX", folder.path().join("index").display().to_string()));
        Installation { databases, variables, _folder: folder }
    }

    fn value(&self, name: &str) -> &str {
        &self.variables.iter().find(|(variable, _)| *variable == name).unwrap().1
    }

    /// Asserts that there is such a finding, and that the exit code says whether any check failed.
    #[track_caller]
    fn expect_finding(&self, more: &[(&str, &str)], status: &str, check: &str, parts: &[&str]) {
        self.expect_finding_with(more, &["--json"], status, check, parts);
    }

    #[track_caller]
    fn expect_finding_with(
        &self,
        more: &[(&str, &str)],
        arguments: &[&str],
        status: &str,
        check: &str,
        parts: &[&str],
    ) {
        let output = run_doctor(&self.variables, more, arguments);
        let found = findings(&output);
        let matches = |finding: &&Value| {
            let message = finding["message"].as_str().unwrap();
            finding["check"] == check
                && finding["status"] == status
                && parts.iter().all(|part| message.contains(part))
        };
        assert!(found.iter().any(|finding| matches(&finding)), "no {status} {check} {parts:?} in {found:#?}");
        let fails = found.iter().any(|finding| finding["status"] == "fail");
        assert_eq!(output.status.code(), Some(i32::from(fails)), "{found:#?}");
        self.assert_no_secrets(&output);
    }

    #[track_caller]
    fn assert_no_secrets(&self, output: &Output) {
        let text = [&output.stdout[..], &output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let url: url::Url = self.value("TIDEMARK_DATABASE_URL").parse().unwrap();
        for secret in
            [url.password().unwrap(), self.value("TIDEMARK_CLICKHOUSE_PASSWORD"), "secret-of-a-test"]
        {
            assert!(!text.contains(secret), "a secret is shown: {text}");
        }
    }

    fn database_url(&self, change: impl FnOnce(&mut url::Url)) -> String {
        let mut url: url::Url = self.value("TIDEMARK_DATABASE_URL").parse().unwrap();
        change(&mut url);
        url.to_string()
    }
}

#[tokio::test]
async fn healthy_installation_has_only_ok_findings() {
    let installation = Installation::new().await;
    let _track = installation.databases.track(&[]);
    let (_api, _) = installation.databases.serve(&[]);
    wait_until("a tracker relays and an API follows", async || {
        let output = run_doctor(&installation.variables, &[], &["--json"]);
        let found = findings(&output);
        let is_ok =
            |check: &str| found.iter().any(|found| found["check"] == check && found["status"] == "ok");
        (is_ok("outbox") && is_ok("api")).then_some(())
    })
    .await;
    // Variables for Grafana, the load tests and `make audit` are no mistake.
    let external = [
        "TIDEMARK_PROMETHEUS_URL",
        "TIDEMARK_TEMPO_URL",
        "TIDEMARK_BASE_URL",
        "TIDEMARK_API_KEY",
        "TIDEMARK_LOADTEST_RESULTS",
        "TIDEMARK_ADVISORY_DB",
    ];
    let output = run_doctor(&installation.variables, &external.map(|name| (name, "x")), &["--json", "--ask"]);
    let found = findings(&output);
    let problems: Vec<_> = found.iter().filter(|finding| finding["status"] != "ok").collect();
    // A test's clock is a sandbox's, and the machine's disk and connections may be short.
    let expected = |finding: &&&Value| {
        ["clock", "clickhouse-disk", "search-disk", "postgres-connections"]
            .contains(&finding["check"].as_str().unwrap())
    };
    assert_eq!(problems.iter().filter(expected).count(), problems.len(), "{problems:#?}");
    let fails = problems.iter().any(|finding| finding["status"] == "fail");
    assert_eq!(output.status.code(), Some(i32::from(fails)), "{problems:#?}");
    for check in [
        "postgres-schema",
        "postgres-rights",
        "clickhouse-rights",
        "history",
        "tracker",
        "instagram",
        "tiktok",
    ] {
        assert!(found.iter().any(|finding| finding["check"] == check), "{check} is missing");
    }
    installation.assert_no_secrets(&output);
    let table = run_doctor(&installation.variables, &[], &[]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.starts_with("STATUS") && table.contains("\nok      postgres-schema "), "{table}");
}

#[tokio::test]
async fn configuration_problems_are_reported() {
    let installation = Installation::new().await;
    let expect = |more: &[(&str, &str)], status, check, parts: &[&str]| {
        installation.expect_finding(more, status, check, parts);
    };
    expect(
        &[("TIDEMARK_LISTEN", "nowhere")],
        "fail",
        "configuration",
        &["TIDEMARK_LISTEN is invalid", "nowhere"],
    );
    expect(
        &[("TIDEMARK_DATABSE_URL", "x")],
        "warn",
        "configuration",
        &["nothing reads TIDEMARK_DATABSE_URL"],
    );
    expect(&[("TIDEMARK_METRICS_LISTEN", "0.0.0.0:9464")], "warn", "configuration", &["other machines"]);
    let without_url = [("TIDEMARK_TIKTOK_SOURCES", "http"), ("TIDEMARK_HTTP_SOURCE_URL", "")];
    expect(&without_url, "fail", "sources", &["TIDEMARK_HTTP_SOURCE_URL: set it"]);
    expect(&[("TIDEMARK_INSTAGRAM_SOURCES", "none")], "warn", "instagram", &["no source has credentials"]);
    expect(
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")],
        "fail",
        "telemetry",
        &["127.0.0.1:1 cannot be reached"],
    );
    expect(
        &[("OTEL_TRACES_EXPORTER", "jaeger")],
        "fail",
        "telemetry",
        &["OTEL_TRACES_EXPORTER", "otlp or none"],
    );
    expect(
        &[("TIDEMARK_SEARCH_INDEX", "/dev/null/index")],
        "fail",
        "search-folder",
        &["TIDEMARK_SEARCH_INDEX"],
    );
    expect(&[("TIDEMARK_CLOCK_URL", "http://127.0.0.1:1")], "fail", "clock", &["unset TIDEMARK_CLOCK_URL"]);
    let unconfigured = run_doctor(&[], &[], &["--json"]);
    assert_eq!(unconfigured.status.code(), Some(1));
    let found = findings(&unconfigured);
    let unset = found
        .iter()
        .any(|found| found["message"].as_str().unwrap().starts_with("TIDEMARK_DATABASE_URL is not set"));
    assert!(unset, "{found:#?}");
}

#[tokio::test]
async fn postgres_connection_problems_are_reported() {
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
async fn problems_of_the_postgres_role_are_reported() {
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
    // This test has connections of its own, which count although the role does not see them.
    let capacity = "select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int";
    let capacity: i32 = sqlx::query_scalar(capacity).fetch_one(pg).await.unwrap();
    let found =
        findings(&run_doctor(&installation.variables, &[("TIDEMARK_DATABASE_URL", &reader)], &["--json"]));
    let connections = found.iter().find(|finding| finding["check"] == "postgres-connections").unwrap();
    let only_its_own = format!("{} of {capacity} connections", capacity - 1);
    assert!(!connections["message"].as_str().unwrap().contains(&only_its_own), "{connections}");
    let read_only = format!("alter role {role} set default_transaction_read_only = on");
    sqlx::raw_sql(sqlx::AssertSqlSafe(read_only)).execute(pg).await.unwrap();
    expect("fail", "postgres-settings", &["Postgres is read-only", "free disk space"]);
    let statements = format!("drop owned by {role}; drop role {role}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(pg).await.unwrap();
}

#[tokio::test]
async fn problems_of_the_postgres_data_are_reported() {
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
    ] {
        sqlx::query(statement).execute(pg).await.unwrap();
    }
    expect("fail", "tracker", &["tiktok rejects the credentials of http"]);
    expect("fail", "history", &["restore a backup of clickhouse"]);
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
    assert!(vacuum.await.unwrap().is_err(), "it ended before the check");
}

#[tokio::test]
async fn clickhouse_problems_are_reported() {
    let installation = Installation::new().await;
    let expect_failure = |more: &[(&str, &str)], check, parts: &[&str]| {
        installation.expect_finding(more, "fail", check, parts)
    };
    expect_failure(
        &[("TIDEMARK_CLICKHOUSE_URL", "http://127.0.0.1:1")],
        "clickhouse",
        &["127.0.0.1:1 cannot be reached"],
    );
    let wrong_password = [("TIDEMARK_CLICKHOUSE_PASSWORD", "secret-of-a-test")];
    expect_failure(&wrong_password, "clickhouse", &["rejects the user", "TIDEMARK_CLICKHOUSE_PASSWORD"]);
    expect_failure(
        &[("TIDEMARK_CLICKHOUSE_DATABASE", "nothing_here")],
        "clickhouse-schema",
        &["`tidemark migrate`"],
    );
    let connection = &installation.databases.connection;
    let analyst = [
        ("TIDEMARK_CLICKHOUSE_USER", connection.clickhouse_readonly_user.as_str()),
        ("TIDEMARK_CLICKHOUSE_PASSWORD", &connection.clickhouse_readonly_password),
    ];
    expect_failure(
        &analyst,
        "clickhouse-rights",
        &["may not write accounts", "grant it select, insert and alter delete"],
    );
}

/// ClickHouse is empty, and Postgres has made seven deliveries.
#[tokio::test]
async fn missing_history_fails_only_if_the_outbox_lacks_it() {
    let installation = Installation::new().await;
    let pg = installation.databases.pg();
    let statements = "select setval('deliveries', 7);
                      insert into outbox (organization_id, events, since, delivery, applied_at)
                      values (gen_random_uuid(), '\\x00', now(), 7, now())";
    sqlx::raw_sql(statements).execute(pg).await.unwrap();
    let repeated = ["lacks the deliveries after 0, up to 7", "`tidemark track` repeats them"];
    installation.expect_finding(&[], "warn", "history", &repeated);
    let prune = "delete from outbox; insert into outbox_pruned (delivery, applied_at) values (7, now())";
    sqlx::raw_sql(prune).execute(pg).await.unwrap();
    let lost = ["from the beginning to ", "restore a backup of clickhouse"];
    installation.expect_finding(&[], "fail", "history", &lost);

    // A relay that starts records the same, which is reported once.
    outbox::resume(pg, RecordedDelivery { number: 0, applied_at: None }).await.unwrap();
    let found = findings(&run_doctor(&installation.variables, &[], &["--json"]));
    let history: Vec<_> = found.iter().filter(|finding| finding["check"] == "history").collect();
    assert!(history.len() == 1 && history[0]["status"] == "fail", "{history:#?}");
}

/// A collector that rejects every request.
async fn rejecting_collector() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let _ = connection.read(&mut [0; 4096]).await;
            let body = r#"{"error": {"code": "unauthorized", "message": "no"}}"#;
            let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close";
            let response = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            connection.write_all(response.as_bytes()).await.unwrap();
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_option_sends_a_request_to_each_source() {
    let installation = Installation::new().await;
    let url = rejecting_collector().await;
    let rejecting = [
        ("TIDEMARK_TIKTOK_SOURCES", "http"),
        ("TIDEMARK_HTTP_SOURCE_URL", url.as_str()),
        ("TIDEMARK_HTTP_SOURCE_TOKEN", "secret-of-a-test"),
    ];
    installation.expect_finding(&rejecting, "ok", "tiktok", &["--ask"]);
    installation.expect_finding_with(
        &rejecting,
        &["--json", "--ask"],
        "fail",
        "tiktok",
        &["http rejects the credentials"],
    );
    let unreachable =
        [("TIDEMARK_TIKTOK_SOURCES", "http"), ("TIDEMARK_HTTP_SOURCE_URL", "http://127.0.0.1:1")];
    installation.expect_finding_with(&unreachable, &["--json", "--ask"], "fail", "tiktok", &["http fails"]);
    installation.expect_finding_with(
        &[],
        &["--json", "--ask"],
        "ok",
        "tiktok",
        &["tiktok-research accepts the credentials"],
    );
}
