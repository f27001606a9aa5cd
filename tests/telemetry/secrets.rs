//! No key, password, token or caption, and no secret or URL of a webhook, is in a log of any level and format, in exported
//! telemetry or on the metrics page, and no key or secret is in Postgres, wherever in a request a client put it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use harness::{IsolatedStores, Process, WAIT_TIMEOUT, create_organization, http_client, wait_until};
use reqwest::RequestBuilder;
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};
use tidemark::model::key::ApiKey;
use tidemark::model::organization::KeyStatus;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::records::organizations::OrganizationChange;

use crate::receiver::Receiver;

/// Used as password of Postgres and ClickHouse, token of a source and key of the collector.
const PASSWORD: &str = "sentinel-of-a-password";
const SEARCH_TERM: &str = "sentinel-of-a-search";
/// The path of a webhook's URL.
const HOOK: &str = "sentinel-of-a-hook";
/// The trace context of a client.
const TRACE_CONTEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// Sent after a line break, so that an unescaped value would forge a log line.
const FORGED_LINE: &str = "2026-01-01T00:00:00Z ERROR forged";

/// Requests with the key in every part where a client might put it.
fn requests(base: &str, key: &str) -> Vec<RequestBuilder> {
    let (client, root) = (http_client(), base.trim_end_matches("/v2"));
    let get = |path: &str| client.get(format!("{base}{path}"));
    let basic = |text: String| format!("Basic {}", BASE64_STANDARD.encode(text));
    let mut requests = vec![
        get("/whoami").bearer_auth(key),
        get("/whoami").header(AUTHORIZATION, format!("bEaReR   {key}  ")),
        get("/whoami").header(AUTHORIZATION, key),
        get("/whoami").header(AUTHORIZATION, format!("Token {key}")),
        get("/whoami").header(AUTHORIZATION, basic(format!("{key}:"))),
        get("/whoami").header(AUTHORIZATION, basic(format!("x:{key}"))),
        get("/whoami").bearer_auth(key).header(AUTHORIZATION, format!("Bearer {key}")),
        get("/whoami").bearer_auth(format!("{key} {key}")),
        get("/whoami").header("X-Api-Key", key).header("Cookie", format!("key={key}")),
        get("/whoami").header("X-Request-ID", key).bearer_auth(key),
        get("/health").header("X-Request-ID", format!("mine:{key}")),
        get("/whoami").header("Accept", key).bearer_auth(key),
        get("/whoami").header("Referer", format!("https://x.example/?key={key}")).header("User-Agent", key),
        get("/whoami").header("X-Forwarded-For", key).header("Forwarded", format!("for={key}")),
        get("/whoami").header("traceparent", key),
        get("/whoami").header("traceparent", TRACE_CONTEXT).header("tracestate", format!("client={key}")),
        get("/whoami").header("If-None-Match", format!("\"{key}\"")).bearer_auth(key),
        client.get(format!("{root}/{key}")),
        client.get(format!("{root}/docs/{key}")),
        client.get(format!("{root}/v1/{key}")).bearer_auth(key),
        client.get(format!("{root}/v1/getAccounts?limit={key}")).bearer_auth(key),
        client
            .post(format!("{base}/creators"))
            .bearer_auth(key)
            .header("Content-Type", "text/plain")
            .body(key.to_owned()),
        client.post(format!("{base}/creators")).bearer_auth(key).json(&json!({"name": [key], key: key})),
        client
            .post(format!("{base}/videos"))
            .bearer_auth(key)
            .json(&json!({"platform": "tiktok", "identifier": key})),
        client
            .post(format!("{base}/accounts"))
            .json(&json!({"platform": key, "username": key}))
            .bearer_auth(key),
        client.patch(format!("{base}/accounts/@{key}")).json(&json!({"category": key})).bearer_auth(key),
        client.put(format!("{base}/creators/{key}/accounts/{key}")).bearer_auth(key),
        client.delete(format!("{base}/videos/{key}")).bearer_auth(key),
    ];
    let broken = client.post(format!("{base}/creators")).bearer_auth(key);
    requests.push(broken.header("Content-Type", "application/json").body(format!("{{\"{key}\": {key}")));
    for path in ["/", "/accounts/", "/accounts/@", "/creators/top/", "/videos/metrics/"] {
        requests.push(get(&format!("{path}{key}")).bearer_auth(key));
    }
    for query in ["api_key=", "limit=", "cursor=", "q=", "sort=", "creator_id=", "platform=", "%ff&x="] {
        requests.push(get(&format!("/accounts?{query}{key}")).bearer_auth(key));
    }
    requests
}

/// Active, disabled, expired, rate limited, unknown and malformed keys. The first is active.
async fn all_keys(databases: &IsolatedStores) -> Vec<String> {
    let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
    let (organization, active) = create_organization(databases.pg(), options).await;
    let create = async |new: NewKey| keys::create(databases.pg(), organization, &new).await.unwrap();
    let disabled = create(NewKey::named("disabled")).await;
    keys::set_status(databases.pg(), disabled.record.id, KeyStatus::Disabled).await.unwrap();
    let expired = NewKey { expires_at: Some(chrono::DateTime::UNIX_EPOCH), ..NewKey::named("expired") };
    let rate_limited = NewKey { rate_limit: Some(1), ..NewKey::named("limited") };
    let unknown = ApiKey::generate().unwrap().reveal().to_owned();
    let mut malformed = ApiKey::generate().unwrap().reveal().to_owned();
    malformed.replace_range(malformed.len() - 1.., "!");
    vec![active, disabled.key, create(expired).await.key, create(rate_limited).await.key, unknown, malformed]
}

/// Environment variables of a process that exports everything and logs at level trace.
fn exports(receiver: &Receiver) -> Vec<(&'static str, String)> {
    vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url.clone()),
        ("OTEL_EXPORTER_OTLP_HEADERS", format!("x-collector-key={PASSWORD}")),
        ("OTEL_METRIC_EXPORT_INTERVAL", "300".to_owned()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100".to_owned()),
        ("OTEL_BLRP_SCHEDULE_DELAY", "100".to_owned()),
        ("TIDEMARK_LOG", "trace".to_owned()),
        ("TIDEMARK_WEBHOOK_ALLOWED_HOSTS", "127.0.0.1".to_owned()),
    ]
}

fn with(variables: &[(&'static str, String)], added: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    variables.iter().cloned().chain(added.iter().map(|(name, value)| (*name, (*value).to_owned()))).collect()
}

#[track_caller]
fn assert_lacks(source: &str, text: &str, secrets: &[String]) {
    for secret in secrets {
        let Some(at) = text.find(secret.as_str()) else { continue };
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        panic!("{source} contains {secret}: {}", text[line..].chars().take(600).collect::<String>());
    }
}

/// The processes of the test, and the base URLs of two APIs, one with a JSON log and one with a text log.
struct Processes {
    json_api: Process,
    text_api: Process,
    tracker: Process,
    bases: [String; 2],
}

impl Processes {
    /// Starts them and tracks an account, so that the tracker scrapes captions.
    async fn start(databases: &IsolatedStores, exports: &[(&'static str, String)], key: &str) -> Self {
        let username = &databases.sandbox_account("tiktok").username;
        let tracker = databases.track(exports);
        let (json_api, json_base) = databases.serve(exports);
        let account = json!({"platform": "tiktok", "username": username, "scrape_interval_hours": 6});
        let added =
            http_client().post(format!("{json_base}/accounts")).bearer_auth(key).json(&account).send().await;
        assert_eq!(added.unwrap().status(), 201);
        let (text_api, text_base) = databases.serve(&with(exports, &[("TIDEMARK_LOG_FORMAT", "text")]));
        Processes { json_api, text_api, tracker, bases: [json_base, text_base] }
    }
}

/// Sends every key in every part of a request, and forged log lines.
async fn send_secrets(bases: &[String], keys: &[String]) {
    for base in bases {
        for key in keys {
            for request in requests(base, key) {
                let response = request.send().await.unwrap();
                assert!(response.status().as_u16() < 500, "{} of {}", response.status(), response.url());
            }
        }
        let forged = format!("{base}/accounts/%0a{}", FORGED_LINE.replace(' ', "%20"));
        http_client().get(forged).bearer_auth(&keys[0]).send().await.unwrap();
        let forged = json!({"platform": "tiktok", "username": format!("\n{FORGED_LINE}")});
        let request = http_client().post(format!("{base}/accounts")).bearer_auth(&keys[0]).json(&forged);
        request.send().await.unwrap();
    }
}

/// Waits until captions are stored, reads them through the APIs, and returns long ones.
async fn read_captions(databases: &IsolatedStores, bases: &[String], key: &str) -> Vec<String> {
    wait_until("captions are stored", || async {
        let stored =
            "select count(*) > 0 and not exists (select from outbox where applied_at is null) from videos";
        let stored: bool = sqlx::query_scalar(stored).fetch_one(databases.pg()).await.unwrap();
        stored.then_some(())
    })
    .await;
    for base in bases {
        for path in ["/account-videos", "/overview", "/health", &format!("/search?q={SEARCH_TERM}")] {
            let response = http_client().get(format!("{base}{path}")).bearer_auth(key).send().await.unwrap();
            assert_eq!(response.status(), 200, "{path}");
        }
    }
    let captions = "select description from videos where length(description) >= 30 limit 100";
    let captions: Vec<String> = sqlx::query_scalar(captions).fetch_all(databases.pg()).await.unwrap();
    assert!(captions.len() > 5, "{captions:?}");
    captions
}

/// Creates a webhook, rotates its secret and has it tested. Returns both secrets.
async fn use_webhook(databases: &IsolatedStores, base: &str, key: &str) -> [String; 2] {
    let post = async |path: &str, body: Value| -> Value {
        let sent =
            http_client().post(format!("{base}{path}")).bearer_auth(key).json(&body).send().await.unwrap();
        assert!(sent.status().is_success(), "{path}: {}", sent.status());
        sent.json().await.unwrap_or_default()
    };
    let created = post("/webhooks", json!({"url": format!("http://127.0.0.1:1/{HOOK}")})).await;
    let path = format!("/webhooks/{}", created["data"]["id"].as_str().unwrap());
    let rotated = post(&format!("{path}/rotate-secret"), json!({})).await;
    post(&format!("{path}/test"), json!({})).await;
    wait_until("the attempt is recorded", || async {
        let attempts = sqlx::query_scalar("select count(*) from webhook_attempts");
        let attempts: i64 = attempts.fetch_one(databases.pg()).await.unwrap();
        (attempts > 0).then_some(())
    })
    .await;
    [created, rotated].map(|webhook| webhook["data"]["secret"].as_str().unwrap()[6..].to_owned())
}

/// Starts an API that cannot reach Postgres, and checks its responses.
async fn serve_without_databases(
    databases: &IsolatedStores,
    exports: &[(&'static str, String)],
    key: &str,
) -> Process {
    let unreachable = [
        ("TIDEMARK_DATABASE_URL", &*format!("postgres://user:{PASSWORD}@127.0.0.1:1/x")),
        ("TIDEMARK_CLICKHOUSE_PASSWORD", PASSWORD),
        ("TIDEMARK_HTTP_SOURCE_TOKEN", PASSWORD),
    ];
    let (api, base) = databases.serve(&with(exports, &unreachable));
    let responses = requests(&base, key).into_iter().take(8).map(RequestBuilder::send);
    let secrets = [PASSWORD.to_owned(), "127.0.0.1:1".to_owned()];
    for response in futures_util::future::join_all(responses).await {
        assert_lacks("a response", &response.unwrap().text().await.unwrap(), &secrets);
    }
    api
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_and_exports_contain_no_secrets_at_trace_level() {
    let databases = IsolatedStores::create().await;
    let connection = databases.connection.clone();
    let receiver = Receiver::start(&connection.clickhouse_url, &connection.sandbox_url).await;
    let exports = exports(&receiver);
    let keys = all_keys(&databases).await;
    let Processes { json_api, text_api, tracker, bases } =
        Processes::start(&databases, &exports, &keys[0]).await;
    send_secrets(&bases, &keys).await;
    let captions = read_captions(&databases, &bases, &keys[0]).await;
    let webhook_secrets = use_webhook(&databases, &bases[0], &keys[0]).await;
    let outage = serve_without_databases(&databases, &exports, &keys[0]).await;

    // A part of a key is as secret as the key.
    let mut secrets: Vec<_> = keys.iter().map(|key| key[4..30].to_owned()).collect();
    secrets.extend(keys.iter().map(|key| BASE64_STANDARD.encode(format!("{key}:"))));
    secrets.extend(webhook_secrets);
    assert_not_stored(&databases, &secrets).await;
    let database: url::Url = connection.database_url.parse().unwrap();
    secrets.extend(database.password().map(str::to_owned));
    secrets.extend([connection.clickhouse_password.clone(), PASSWORD.to_owned()]);
    secrets.extend([SEARCH_TERM, HOOK].map(str::to_owned));
    let tokens = sandbox::server::environment("x").into_iter();
    let tokens = tokens.filter(|(name, _)| ["TOKEN", "SECRET", "_KEY"].iter().any(|end| name.ends_with(end)));
    secrets.extend(tokens.map(|(_, token)| token));
    secrets.extend(captions);
    assert!(secrets.iter().all(|secret| secret.len() >= 8), "{secrets:?}");

    let mut processes = [json_api, text_api, outage, tracker];
    for process in &mut processes {
        let (status, page) = process.page("/metrics").await;
        assert_eq!(status, 200);
        assert_lacks("the metrics page", &page, &secrets);
        // Fails if it does not exit.
        process.stop().await;
    }
    for process in &processes {
        let log = process.log();
        assert!(log.contains("TRACE") && log.len() > 10_000, "the log must be at level trace");
        assert_lacks("a log", &log, &secrets);
        assert!(log.lines().all(|line| !line.starts_with(FORGED_LINE)), "a log line was forged");
    }
    assert!(processes[0].lines().len() > 100, "every line of its log must be JSON");
    let exported = receiver.read(|received| String::from_utf8_lossy(&received.bytes).into_owned());
    assert!(
        exported.contains("GET /v2/whoami") && exported.contains("request finished"),
        "nothing was exported"
    );
    assert_lacks("an export", &exported, &secrets);
}

/// Checks that no column of any table contains a secret.
async fn assert_not_stored(databases: &IsolatedStores, secrets: &[String]) {
    let tables = "select tablename::text from pg_tables where schemaname = 'public'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(databases.pg()).await.unwrap();
    assert!(tables.len() > 10, "{tables:?}");
    for table in tables {
        let found = format!(
            "select count(*) from \"{table}\" t, unnest($1::text[]) sought_secret where strpos(t::text, sought_secret) > 0"
        );
        let found = sqlx::query_scalar(sqlx::AssertSqlSafe(found)).bind(secrets);
        let found: i64 = tokio::time::timeout(WAIT_TIMEOUT, found.fetch_one(databases.pg()))
            .await
            .expect("the query must finish")
            .unwrap();
        assert_eq!(found, 0, "{table} contains a key");
    }
}

#[tokio::test]
async fn cli_prints_a_new_key_once_and_no_password() {
    let databases = IsolatedStores::create().await;
    let (organization, key) = create_organization(databases.pg(), OrganizationChange::default()).await;
    let organization = organization.to_string();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = harness::command();
        command.args(arguments).args(["--log", "trace"]).envs(databases.environment.clone());
        command.envs(variables.iter().copied()).stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        let printed = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
    };
    let (created, printed) = run(&["key", "create", "--org", &organization, "--name", "x", "--json"], &[]);
    let new_key = printed.split('"').find(|part| ApiKey::parse(part).is_some()).unwrap().to_owned();
    assert!(created && printed.matches(&new_key).count() == 1, "{printed}");
    let id: String = sqlx::query_scalar("select id::text from api_keys order by id desc limit 1")
        .fetch_one(databases.pg())
        .await
        .unwrap();
    let database: url::Url = databases.connection.database_url.parse().unwrap();
    let mut secrets = vec![key, new_key, PASSWORD.to_owned()];
    secrets.extend(database.password().map(str::to_owned));
    secrets.push(databases.connection.clickhouse_password.clone());
    let unreachable = format!("postgres://user:{PASSWORD}@127.0.0.1:1/x");
    let malformed = format!("postgres://user:{PASSWORD}@[nonsense/x");
    let with_unreachable =
        [("TIDEMARK_DATABASE_URL", unreachable.as_str()), ("TIDEMARK_CLICKHOUSE_PASSWORD", PASSWORD)];
    let with_malformed = [("TIDEMARK_DATABASE_URL", malformed.as_str())];
    let commands: [&[&str]; 6] = [
        &["key", "list", "--org", &organization],
        &["key", "list", "--org", &organization, "--json"],
        &["key", "set", &id, "--status", "disabled", "--json"],
        &["org", "list"],
        &["migrate"],
        &["--help"],
    ];
    for arguments in commands {
        let (succeeded, printed) = run(arguments, &[]);
        assert!(succeeded, "{arguments:?}: {printed}");
        assert_lacks(&arguments.join(" "), &printed, &secrets);
        let (succeeded, printed) = run(arguments, &with_malformed);
        assert!(!succeeded || arguments == ["--help"], "{arguments:?}: {printed}");
        assert_lacks(&arguments.join(" "), &printed, &secrets);
    }
    let (succeeded, printed) = run(&["org", "list"], &with_unreachable);
    assert!(!succeeded);
    assert_lacks("the error of an unreachable database", &printed, &secrets);
    for command in ["serve", "track", "up", "import", "verify"] {
        assert_lacks(command, &run(&[command, "--help"], &[]).1, &secrets);
    }
}
