//! `tidemark doctor`: each problem is reported with what to do about it.

mod postgres;

use std::process::{Output, Stdio};

use harness::{IsolatedStores, command, wait_until};
use serde_json::Value;
use tidemark::media::MediaFolder;
use tidemark::store::clickhouse::history_writer::RecordedDelivery;
use tidemark::store::outbox;
use tidemark::store::records::organizations::{self, OrganizationChange};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

/// Runs doctor on a test's databases, for example restored ones.
pub(crate) fn doctor_findings(stores: &IsolatedStores) -> Vec<Value> {
    findings(&run_doctor(&stores.connection.environment(), &[], &["--json"]))
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
    // Variables for Grafana, the load tests and `make audit` are not reported as unknown.
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
    // A test uses the sandbox's clock, and the machine's disk space and connections may be scarce.
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
async fn media_problems_are_reported() {
    let installation = Installation::new().await;
    installation.expect_finding(&[], "ok", "media", &["pictures are not copied"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("media");
    let variable = [("TIDEMARK_MEDIA_DIR", path.to_str().unwrap())];
    installation.expect_finding(&variable, "ok", "media", &["will be created"]);
    let unusable = [("TIDEMARK_MEDIA_DIR", "/dev/null/media")];
    installation.expect_finding(&unusable, "fail", "media", &["/dev/null/media", "not writable"]);
    let too_large = [variable[0], ("TIDEMARK_MEDIA_MAX_BYTES", "1125899906842624")];
    installation.expect_finding(&too_large, "warn", "media-disk", &["TIDEMARK_MEDIA_MAX_BYTES"]);
    let pg = installation.databases.pg();
    sqlx::raw_sql("insert into media (secret, used_bytes) values (sha256('secret'), 12000000)")
        .execute(pg)
        .await
        .unwrap();
    installation.expect_finding(&variable, "warn", "media", &["is not the folder of the pictures"]);
    MediaFolder::new(&path).create().unwrap();
    installation.expect_finding(&variable, "ok", "media", &["12 MB of 2.1 GB"]);
    let wait = "insert into record_pictures (record_id, organization_id, kind, source, due_at)
                select gen_random_uuid(), $1, 'cover', decode(repeat('00', 16), 'hex'), now() from generate_series(1, 10000)";
    let organization = organizations::create(pg, "test", &OrganizationChange::default()).await.unwrap().id;
    sqlx::query(wait).bind(organization).execute(pg).await.unwrap();
    installation.expect_finding(&variable, "warn", "media-queue", &["pictures wait"]);
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

/// ClickHouse is empty, and Postgres has recorded seven deliveries.
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
