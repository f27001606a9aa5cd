//! `tidemark doctor`: that it is content when all is well, and that it says of whatever is wrong what to do about it.

use std::process::{Output, Stdio};

use serde_json::Value;
use sqlx::PgConnection;
use tidemark::store::clickhouse::history_writer::RecordedDelivery;
use tidemark::store::outbox;
use tidemark::store::postgres::diagnosis;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{IsolatedStores, command, wait_until};

/// Runs it with variables on top of those of a test's databases.
fn examine(variables: &[(&str, String)], more: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = command();
    command.arg("doctor").args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    command.envs(more.iter().copied()).stdin(Stdio::null()).output().unwrap()
}

#[track_caller]
fn findings(output: &Output) -> Vec<Value> {
    let told = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {told}"))
}

/// What it says of databases that were restored.
pub(crate) fn said(own: &IsolatedStores) -> Vec<Value> {
    findings(&examine(&own.connection.environment(), &[], &["--json"]))
}

/// Databases, a folder for an index, and the variables of both.
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
        &self.variables.iter().find(|(known, _)| *known == name).unwrap().1
    }

    /// Asserts that something is found to be so, in words, and that the exit status says whether anything fails.
    #[track_caller]
    fn says(&self, more: &[(&str, &str)], status: &str, check: &str, parts: &[&str]) {
        self.says_when(more, &["--json"], status, check, parts);
    }

    #[track_caller]
    fn says_when(
        &self,
        more: &[(&str, &str)],
        arguments: &[&str],
        status: &str,
        check: &str,
        parts: &[&str],
    ) {
        let output = examine(&self.variables, more, arguments);
        let found = findings(&output);
        let told = |finding: &&Value| {
            let message = finding["message"].as_str().unwrap();
            finding["check"] == check
                && finding["status"] == status
                && parts.iter().all(|part| message.contains(part))
        };
        let matching = found.iter().find(told);
        assert!(matching.is_some(), "no {status} {check} {parts:?} in {found:#?}");
        let fails = found.iter().any(|finding| finding["status"] == "fail");
        assert_eq!(output.status.code(), Some(i32::from(fails)), "{found:#?}");
        self.keeps_secrets(&output);
    }

    #[track_caller]
    fn keeps_secrets(&self, output: &Output) {
        let said = [&output.stdout[..], &output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let url: url::Url = self.value("TIDEMARK_DATABASE_URL").parse().unwrap();
        for secret in
            [url.password().unwrap(), self.value("TIDEMARK_CLICKHOUSE_PASSWORD"), "secret-of-a-test"]
        {
            assert!(!said.contains(secret), "a secret is shown: {said}");
        }
    }

    /// The URL of the database, changed.
    fn database(&self, change: impl FnOnce(&mut url::Url)) -> String {
        let mut url: url::Url = self.value("TIDEMARK_DATABASE_URL").parse().unwrap();
        change(&mut url);
        url.to_string()
    }
}

#[tokio::test]
async fn when_all_is_well_it_says_so() {
    let installation = Installation::new().await;
    let _track = installation.databases.track(&[]);
    let (_api, _) = installation.databases.serve(&[]);
    wait_until("a tracker relays and an API follows", async || {
        let output = examine(&installation.variables, &[], &["--json"]);
        let found = findings(&output);
        let well = |check: &str| found.iter().any(|found| found["check"] == check && found["status"] == "ok");
        (well("outbox") && well("api")).then_some(())
    })
    .await;
    // What Grafana, the load tests and `make audit` read is nobody's mistake.
    let of_others = [
        "TIDEMARK_PROMETHEUS_URL",
        "TIDEMARK_TEMPO_URL",
        "TIDEMARK_BASE_URL",
        "TIDEMARK_API_KEY",
        "TIDEMARK_LOADTEST_RESULTS",
        "TIDEMARK_ADVISORY_DB",
    ];
    let output = examine(&installation.variables, &of_others.map(|name| (name, "x")), &["--json", "--ask"]);
    let found = findings(&output);
    let unwell: Vec<_> = found.iter().filter(|finding| finding["status"] != "ok").collect();
    // A test takes its time from a sandbox, which is worth a word; and this machine's disk is as it is.
    let expected = |finding: &&&Value| {
        ["clock", "clickhouse-disk", "search-disk", "postgres-connections"]
            .contains(&finding["check"].as_str().unwrap())
    };
    assert_eq!(unwell.iter().filter(expected).count(), unwell.len(), "{unwell:#?}");
    let fails = unwell.iter().any(|finding| finding["status"] == "fail");
    assert_eq!(output.status.code(), Some(i32::from(fails)), "{unwell:#?}");
    for check in [
        "postgres-schema",
        "postgres-rights",
        "clickhouse-rights",
        "history",
        "tracker",
        "instagram",
        "tiktok",
    ] {
        assert!(found.iter().any(|finding| finding["check"] == check), "{check} is not looked at");
    }
    installation.keeps_secrets(&output);
    let table = examine(&installation.variables, &[], &[]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.starts_with("STATUS") && table.contains("\nok      postgres-schema "), "{table}");
}

#[tokio::test]
async fn what_is_wrong_with_the_configuration_is_said() {
    let installation = Installation::new().await;
    let says =
        |more: &[(&str, &str)], status, check, parts: &[&str]| installation.says(more, status, check, parts);
    says(
        &[("TIDEMARK_LISTEN", "nowhere")],
        "fail",
        "configuration",
        &["TIDEMARK_LISTEN cannot be used", "nowhere"],
    );
    says(&[("TIDEMARK_DATABSE_URL", "x")], "warn", "configuration", &["nothing reads TIDEMARK_DATABSE_URL"]);
    says(&[("TIDEMARK_METRICS_LISTEN", "0.0.0.0:9464")], "warn", "configuration", &["other machines"]);
    let lacking = [("TIDEMARK_TIKTOK_SOURCES", "http"), ("TIDEMARK_HTTP_SOURCE_URL", "")];
    says(&lacking, "fail", "sources", &["TIDEMARK_HTTP_SOURCE_URL: set it"]);
    says(&[("TIDEMARK_INSTAGRAM_SOURCES", "none")], "warn", "instagram", &["no source has credentials"]);
    says(
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")],
        "fail",
        "telemetry",
        &["127.0.0.1:1 cannot be reached"],
    );
    says(
        &[("OTEL_TRACES_EXPORTER", "jaeger")],
        "fail",
        "telemetry",
        &["OTEL_TRACES_EXPORTER", "otlp or none"],
    );
    says(
        &[("TIDEMARK_SEARCH_INDEX", "/dev/null/index")],
        "fail",
        "search-folder",
        &["TIDEMARK_SEARCH_INDEX"],
    );
    says(&[("TIDEMARK_CLOCK_URL", "http://127.0.0.1:1")], "fail", "clock", &["unset TIDEMARK_CLOCK_URL"]);
    let nothing = examine(&[], &[], &["--json"]);
    assert_eq!(nothing.status.code(), Some(1));
    let found = findings(&nothing);
    let unset = found
        .iter()
        .any(|found| found["message"].as_str().unwrap().starts_with("TIDEMARK_DATABASE_URL is not set"));
    assert!(unset, "{found:#?}");
}

#[tokio::test]
async fn what_is_wrong_with_postgres_is_said() {
    let installation = Installation::new().await;
    let says = |url: &str, status, check, parts: &[&str]| {
        installation.says(&[("TIDEMARK_DATABASE_URL", url)], status, check, parts);
    };
    let gone = installation.database(|url| url.set_port(Some(1)).unwrap());
    says(&gone, "fail", "postgres", &["127.0.0.1:1 cannot be reached", "start it"]);
    let refused = installation.database(|url| url.set_password(Some("secret-of-a-test")).unwrap());
    says(&refused, "fail", "postgres", &["refuses the role", "TIDEMARK_DATABASE_URL"]);
    says(
        &installation.database(|url| url.set_path("/nothing_here")),
        "fail",
        "postgres",
        &["`tidemark migrate`"],
    );
    says("no url", "fail", "postgres", &["no URL such as"]);

    let pg = installation.databases.pg();
    let role = "doctor_reads_only";
    let statements = format!(
        "drop role if exists {role};
         create role {role} login password 'secret-of-a-test';
         grant select on all tables in schema public to {role};
         update pg_index set indisvalid = false where indexrelid = 'creators_by_name'::regclass;
         insert into outbox (organization_id, events, since, created_at)
         values (gen_random_uuid(), '\\x00', now(), now() - interval '1 hour')"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(pg).await.unwrap();
    let reader = installation.database(|url| {
        url.set_username(role).unwrap();
        url.set_password(Some("secret-of-a-test")).unwrap();
    });
    says(&reader, "fail", "postgres-rights", &["accounts", "grant select, insert"]);
    says(
        &reader,
        "warn",
        "postgres-transactions",
        &["sees none of others", &format!("grant pg_read_all_stats to {role}`")],
    );
    // This test has connections of its own; those of others that the role does not see count as well.
    let places = "select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int";
    let places: i32 = sqlx::query_scalar(places).fetch_one(pg).await.unwrap();
    let found =
        findings(&examine(&installation.variables, &[("TIDEMARK_DATABASE_URL", &reader)], &["--json"]));
    let of_places = found.iter().find(|finding| finding["check"] == "postgres-connections").unwrap();
    let only_its_own = format!("{} of {places} connections", places - 1);
    assert!(!of_places["message"].as_str().unwrap().contains(&only_its_own), "{of_places}");
    let read_only = format!("alter role {role} set default_transaction_read_only = on");
    sqlx::raw_sql(sqlx::AssertSqlSafe(read_only)).execute(pg).await.unwrap();
    says(&reader, "fail", "postgres-settings", &["only lets itself be read", "make room on its disk"]);
    installation.says(&[], "fail", "postgres-indexes", &["drop index concurrently creators_by_name"]);
    installation.says(&[], "fail", "outbox", &["1 changes wait", "start `tidemark track`"]);
    let many = "insert into outbox (organization_id, events, since)
                select gen_random_uuid(), '\\x00', now() from generate_series(1, 100000)";
    sqlx::query(many).execute(pg).await.unwrap();
    installation.says(&[], "fail", "outbox", &["100,000 or more changes wait"]);
    installation.says(&[], "warn", "api", &["start `tidemark serve`"]);
    for statement in [
        "delete from outbox",
        "insert into source_pauses values ('tiktok', 'http', now(), 'credentials', 'refused', now())",
        "insert into missing_history values (7, null, now())",
    ] {
        sqlx::query(statement).execute(pg).await.unwrap();
    }
    installation.says(&[], "fail", "tracker", &["tiktok refused the credentials of http"]);
    installation.says(&[], "fail", "history", &["restore a backup of clickhouse"]);
    let last = "delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)";
    sqlx::query(last).execute(pg).await.unwrap();
    installation.says(&[], "fail", "postgres-schema", &["lacks 1 migrations", "`tidemark migrate`"]);
    let statements = format!("drop owned by {role}; drop role {role}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(pg).await.unwrap();
}

#[tokio::test]
async fn a_vacuum_is_no_transaction_that_is_in_the_way() {
    let stores = IsolatedStores::create().await;
    let pg = stores.pg();
    let mut looking = pg.acquire().await.unwrap();
    let mut other = pg.acquire().await.unwrap();
    let there =
        async |looking: &mut PgConnection| diagnosis::find_longest_transaction(looking, 0).await.unwrap();
    sqlx::query("begin").execute(&mut *other).await.unwrap();
    assert!(there(&mut looking).await.is_some());
    sqlx::query("rollback").execute(&mut *other).await.unwrap();
    sqlx::query("create table pages as select generate_series(1, 200000)")
        .execute(&mut *other)
        .await
        .unwrap();
    let slow = "set vacuum_cost_delay = '100ms'; set vacuum_cost_limit = 1";
    sqlx::raw_sql(slow).execute(&mut *other).await.unwrap();
    let vacuum = tokio::spawn(async move { sqlx::query("vacuum pages").execute(&mut *other).await });
    let pid = wait_until("the vacuum is at work", async || {
        let pid = "select pid from pg_stat_progress_vacuum where datname = current_database() and relid = 'pages'::regclass";
        sqlx::query_scalar::<_, i32>(pid).fetch_optional(pg).await.unwrap()
    })
    .await;
    let open = there(&mut looking).await;
    assert!(open.as_ref().is_none_or(|open| open.pid != pid), "{open:?}");
    sqlx::query("select pg_cancel_backend($1)").bind(pid).execute(pg).await.unwrap();
    assert!(vacuum.await.unwrap().is_err(), "it was over before it was looked at");
}

#[tokio::test]
async fn what_is_wrong_with_clickhouse_is_said() {
    let installation = Installation::new().await;
    let says = |more: &[(&str, &str)], check, parts: &[&str]| installation.says(more, "fail", check, parts);
    says(
        &[("TIDEMARK_CLICKHOUSE_URL", "http://127.0.0.1:1")],
        "clickhouse",
        &["127.0.0.1:1 cannot be reached"],
    );
    let wrong = [("TIDEMARK_CLICKHOUSE_PASSWORD", "secret-of-a-test")];
    says(&wrong, "clickhouse", &["refuses the user", "TIDEMARK_CLICKHOUSE_PASSWORD"]);
    says(&[("TIDEMARK_CLICKHOUSE_DATABASE", "nothing_here")], "clickhouse-schema", &["`tidemark migrate`"]);
    let connection = &installation.databases.connection;
    let analyst = [
        ("TIDEMARK_CLICKHOUSE_USER", connection.clickhouse_readonly_user.as_str()),
        ("TIDEMARK_CLICKHOUSE_PASSWORD", &connection.clickhouse_readonly_password),
    ];
    says(
        &analyst,
        "clickhouse-rights",
        &["may not write accounts", "grant it select, insert and alter delete"],
    );
}

/// What is said of history where ClickHouse has none, and Postgres knows of seven deliveries.
#[tokio::test]
async fn history_that_nobody_can_bring_again_is_told_from_what_a_tracker_brings() {
    let installation = Installation::new().await;
    let pg = installation.databases.pg();
    let statements = "select setval('deliveries', 7);
                      insert into outbox (organization_id, events, since, delivery, applied_at)
                      values (gen_random_uuid(), '\\x00', now(), 7, now())";
    sqlx::raw_sql(statements).execute(pg).await.unwrap();
    let again = ["lacks the deliveries after 0, up to 7", "`tidemark track` brings them again"];
    installation.says(&[], "warn", "history", &again);
    let forgotten = "delete from outbox; insert into outbox_pruned (delivery, applied_at) values (7, now())";
    sqlx::raw_sql(forgotten).execute(pg).await.unwrap();
    let lost = ["from the beginning to ", "restore a backup of clickhouse"];
    installation.says(&[], "fail", "history", &lost);

    // A relay that begins there notes the same, which is said once.
    outbox::resume(pg, RecordedDelivery { number: 0, applied_at: None }).await.unwrap();
    let found = findings(&examine(&installation.variables, &[], &["--json"]));
    let told: Vec<_> = found.iter().filter(|finding| finding["check"] == "history").collect();
    assert!(told.len() == 1 && told[0]["status"] == "fail", "{told:#?}");
}

/// A collector that refuses whoever asks.
async fn refusing() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let _ = connection.read(&mut [0; 4096]).await;
            let body = r#"{"error": {"code": "unauthorized", "message": "no"}}"#;
            let head = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            connection.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_are_asked_where_that_is_wanted() {
    let installation = Installation::new().await;
    let url = refusing().await;
    let refused = [
        ("TIDEMARK_TIKTOK_SOURCES", "http"),
        ("TIDEMARK_HTTP_SOURCE_URL", url.as_str()),
        ("TIDEMARK_HTTP_SOURCE_TOKEN", "secret-of-a-test"),
    ];
    installation.says(&refused, "ok", "tiktok", &["--ask"]);
    installation.says_when(
        &refused,
        &["--json", "--ask"],
        "fail",
        "tiktok",
        &["http refuses the credentials"],
    );
    let gone = [("TIDEMARK_TIKTOK_SOURCES", "http"), ("TIDEMARK_HTTP_SOURCE_URL", "http://127.0.0.1:1")];
    installation.says_when(&gone, &["--json", "--ask"], "fail", "tiktok", &["does not answer as it should"]);
    installation.says_when(&[], &["--json", "--ask"], "ok", "tiktok", &["tiktok-research answers"]);
}
