//! What nobody is told: no key, password, token or caption is in a log, at whichever level and in either form, at a
//! collector, on the page of metrics, or in Postgres, wherever a client has put it and whatever went wrong with it.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use reqwest::RequestBuilder;
use reqwest::header::AUTHORIZATION;
use serde_json::json;
use tidemark::model::key::ApiKey;
use tidemark::model::organization::KeyStatus;
use tidemark::store::records::keys::{self, NewKey};
use tidemark::store::records::organizations::OrganizationChange;

use crate::harness::{IsolatedStores, WAIT_TIMEOUT, create_organization, http_client, wait_until};

use crate::receiver::Receiver;

/// What stands in for a password of Postgres, of ClickHouse and of a proxy on the way to a collector.
const PASSWORD: &str = "sentinel-of-a-password";
/// What a client seeks, and what it puts where control characters are not expected.
const SOUGHT: &str = "sought-by-nobody-else";
/// A trace that a client began, and wants to be seen.
const CONTEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const FORGED: &str = "2026-01-01T00:00:00Z ERROR forged";

/// Every place of a request in which somebody might put a key.
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
        get("/whoami").header("traceparent", CONTEXT).header("tracestate", format!("client={key}")),
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

/// Keys of every kind that there is.
async fn all_keys(databases: &IsolatedStores) -> Vec<String> {
    let options = OrganizationChange { rate_limit: Some(Some(100_000)), ..OrganizationChange::default() };
    let (organization, good) = create_organization(databases.pg(), options).await;
    let make = async |new: NewKey| keys::create(databases.pg(), organization, &new).await.unwrap();
    let disabled = make(NewKey::named("disabled")).await;
    keys::set_status(databases.pg(), disabled.record.id, KeyStatus::Disabled).await.unwrap();
    let expired = NewKey { expires_at: Some(chrono::DateTime::UNIX_EPOCH), ..NewKey::named("expired") };
    let spent = NewKey { rate_limit: Some(1), ..NewKey::named("spent") };
    let unknown = ApiKey::generate().unwrap().reveal().to_owned();
    let mut malformed = ApiKey::generate().unwrap().reveal().to_owned();
    malformed.replace_range(malformed.len() - 1.., "!");
    vec![good, disabled.key, make(expired).await.key, make(spent).await.key, unknown, malformed]
}

/// What every process is told of a collector.
fn exports(receiver: &Receiver) -> Vec<(&'static str, String)> {
    vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url.clone()),
        ("OTEL_EXPORTER_OTLP_HEADERS", format!("x-collector-key={PASSWORD}")),
        ("OTEL_METRIC_EXPORT_INTERVAL", "300".to_owned()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100".to_owned()),
        ("OTEL_BLRP_SCHEDULE_DELAY", "100".to_owned()),
        ("TIDEMARK_LOG", "trace".to_owned()),
    ]
}

fn with(variables: &[(&'static str, String)], more: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    variables.iter().cloned().chain(more.iter().map(|(name, value)| (*name, (*value).to_owned()))).collect()
}

#[track_caller]
fn lacks(what: &str, told: &str, secrets: &[String]) {
    for secret in secrets {
        let Some(at) = told.find(secret.as_str()) else { continue };
        let line = told[..at].rfind('\n').map_or(0, |end| end + 1);
        panic!("{what} tells {secret}: {}", told[line..].chars().take(600).collect::<String>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_password_or_caption_is_told_at_any_level() {
    let databases = IsolatedStores::create().await;
    let connection = databases.connection.clone();
    let receiver = Receiver::start(&connection.clickhouse_url, &connection.sandbox_url).await;
    let exports = exports(&receiver);
    let keys = all_keys(&databases).await;

    // A tracker that reads captions, and an API in either form of the log.
    let username = &databases.sandbox_account("tiktok").username;
    let tracker = databases.track(&exports);
    let (json_api, base) = databases.serve(&exports);
    let account = json!({"platform": "tiktok", "username": username, "scrape_interval_hours": 6});
    let added =
        http_client().post(format!("{base}/accounts")).bearer_auth(&keys[0]).json(&account).send().await;
    assert_eq!(added.unwrap().status(), 201);
    let (text_api, text_base) = databases.serve(&with(&exports, &[("TIDEMARK_LOG_FORMAT", "text")]));
    for base in [&base, &text_base] {
        for key in &keys {
            for request in requests(base, key) {
                let answer = request.send().await.unwrap();
                assert!(answer.status().as_u16() < 500, "{} of {}", answer.status(), answer.url());
            }
        }
        let forged = format!("{base}/accounts/%0a{}", FORGED.replace(' ', "%20"));
        http_client().get(forged).bearer_auth(&keys[0]).send().await.unwrap();
        let odd = json!({"platform": "tiktok", "username": format!("\n{FORGED}")});
        http_client().post(format!("{base}/accounts")).bearer_auth(&keys[0]).json(&odd).send().await.unwrap();
    }
    wait_until("captions are here", || async {
        let there =
            "select count(*) > 0 and not exists (select from outbox where applied_at is null) from videos";
        let there: bool = sqlx::query_scalar(there).fetch_one(databases.pg()).await.unwrap();
        there.then_some(())
    })
    .await;
    for base in [&base, &text_base] {
        for path in ["/account-videos", "/overview", "/health", &format!("/search?q={SOUGHT}")] {
            let answer =
                http_client().get(format!("{base}{path}")).bearer_auth(&keys[0]).send().await.unwrap();
            assert_eq!(answer.status(), 200, "{path}");
        }
    }
    let captions = "select description from videos where length(description) >= 30 limit 100";
    let captions: Vec<String> = sqlx::query_scalar(captions).fetch_all(databases.pg()).await.unwrap();
    assert!(captions.len() > 5, "{captions:?}");

    // Stores that are away, and refuse.
    let away = [
        ("TIDEMARK_DATABASE_URL", &*format!("postgres://somebody:{PASSWORD}@127.0.0.1:1/x")),
        ("TIDEMARK_CLICKHOUSE_PASSWORD", PASSWORD),
        ("TIDEMARK_HTTP_SOURCE_TOKEN", PASSWORD),
    ];
    let (outage, outage_base) = databases.serve(&with(&exports, &away));
    let asked = requests(&outage_base, &keys[0]).into_iter().take(8).map(RequestBuilder::send);
    for answer in futures_util::future::join_all(asked).await {
        lacks(
            "an answer",
            &answer.unwrap().text().await.unwrap(),
            &[PASSWORD.to_owned(), "127.0.0.1:1".to_owned()],
        );
    }

    // A part of a key is as bad as all of it.
    let mut secrets: Vec<_> = keys.iter().map(|key| key[4..30].to_owned()).collect();
    secrets.extend(keys.iter().map(|key| BASE64_STANDARD.encode(format!("{key}:"))));
    stored_nowhere(&databases, &secrets).await;
    let database: url::Url = connection.database_url.parse().unwrap();
    secrets.extend(database.password().map(str::to_owned));
    secrets.extend([connection.clickhouse_password.clone(), PASSWORD.to_owned(), SOUGHT.to_owned()]);
    let tokens = tidemark::sandbox::server::environment("x").into_iter();
    let tokens = tokens.filter(|(name, _)| ["TOKEN", "SECRET", "_KEY"].iter().any(|end| name.ends_with(end)));
    secrets.extend(tokens.map(|(_, token)| token));
    secrets.extend(captions);
    assert!(secrets.iter().all(|secret| secret.len() >= 8), "{secrets:?}");

    let mut processes = [json_api, text_api, outage, tracker];
    for process in &mut processes {
        if let Some(page) = process.metrics_url() {
            lacks("metrics", &http_client().get(page).send().await.unwrap().text().await.unwrap(), &secrets);
        }
        assert!(process.stop() < Duration::from_secs(25));
    }
    for process in &processes {
        let log = process.log();
        assert!(log.contains("TRACE") && log.len() > 10_000, "the log is not as detailed as can be");
        lacks("a log", &log, &secrets);
        assert!(log.lines().all(|line| !line.starts_with(FORGED)), "a line of the log was forged");
    }
    assert!(processes[0].lines().len() > 100, "its log is JSON to the last line");
    let sent = receiver.look(|received| String::from_utf8_lossy(&received.bytes).into_owned());
    assert!(sent.contains("GET /v2/whoami") && sent.contains("request finished"), "nothing was sent");
    lacks("what is sent", &sent, &secrets);
}

/// No table has a secret in any of its columns.
async fn stored_nowhere(databases: &IsolatedStores, secrets: &[String]) {
    let tables = "select tablename::text from pg_tables where schemaname = 'public'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(databases.pg()).await.unwrap();
    assert!(tables.len() > 10, "{tables:?}");
    for table in tables {
        let found = format!(
            "select count(*) from \"{table}\" t, unnest($1::text[]) secret where strpos(t::text, secret) > 0"
        );
        let found = sqlx::query_scalar(sqlx::AssertSqlSafe(found)).bind(secrets);
        let found: i64 = tokio::time::timeout(WAIT_TIMEOUT, found.fetch_one(databases.pg()))
            .await
            .expect("an answer")
            .unwrap();
        assert_eq!(found, 0, "{table} holds a key");
    }
}

/// What the command line says of keys and stores, on both of its outputs and at every level.
#[tokio::test]
async fn the_command_line_tells_a_key_once_and_no_password() {
    let databases = IsolatedStores::create().await;
    let (organization, key) = create_organization(databases.pg(), OrganizationChange::default()).await;
    let organization = organization.to_string();
    let run = |arguments: &[&str], more: &[(&str, &str)]| {
        let mut command = crate::harness::command();
        command.args(arguments).args(["--log", "trace"]).envs(databases.environment.clone());
        command.envs(more.iter().copied()).stdin(std::process::Stdio::null());
        let output = command.output().unwrap();
        let told = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        (output.status.success(), String::from_utf8_lossy(&told).into_owned())
    };
    let (made, told) = run(&["key", "create", "--org", &organization, "--name", "x", "--json"], &[]);
    let created = told.split('"').find(|part| ApiKey::parse(part).is_some()).unwrap().to_owned();
    assert!(made && told.matches(&created).count() == 1, "{told}");
    let id: String = sqlx::query_scalar("select id::text from api_keys order by id desc limit 1")
        .fetch_one(databases.pg())
        .await
        .unwrap();
    let database: url::Url = databases.connection.database_url.parse().unwrap();
    let mut secrets = vec![key, created, PASSWORD.to_owned()];
    secrets.extend(database.password().map(str::to_owned));
    secrets.push(databases.connection.clickhouse_password.clone());
    let away = format!("postgres://somebody:{PASSWORD}@127.0.0.1:1/x");
    let wrong = format!("postgres://somebody:{PASSWORD}@[nonsense/x");
    let fails = [("TIDEMARK_DATABASE_URL", away.as_str()), ("TIDEMARK_CLICKHOUSE_PASSWORD", PASSWORD)];
    let cannot = [("TIDEMARK_DATABASE_URL", wrong.as_str())];
    let commands: [&[&str]; 6] = [
        &["key", "list", "--org", &organization],
        &["key", "list", "--org", &organization, "--json"],
        &["key", "set", &id, "--status", "disabled", "--json"],
        &["org", "list"],
        &["migrate"],
        &["--help"],
    ];
    for arguments in commands {
        let (worked, told) = run(arguments, &[]);
        assert!(worked, "{arguments:?}: {told}");
        lacks(&arguments.join(" "), &told, &secrets);
        let (worked, told) = run(arguments, &cannot);
        assert!(!worked || arguments == ["--help"], "{arguments:?}: {told}");
        lacks(&arguments.join(" "), &told, &secrets);
    }
    let (worked, told) = run(&["org", "list"], &fails);
    assert!(!worked);
    lacks("a store that is away", &told, &secrets);
    for command in ["serve", "track", "up", "import", "verify"] {
        lacks(command, &run(&[command, "--help"], &[]).1, &secrets);
    }
}
