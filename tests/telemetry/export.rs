//! The traces, metrics and logs that an API and a tracker export to a collector and to Prometheus.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use harness::{IsolatedStores, Process, WAIT_TIMEOUT, create_organization, http_client, wait_until};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};
use sqlx::PgPool;
use tempfile::TempDir;
use tidemark::model::platform::Platform;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use tidemark::telemetry::names::{ALL, ExportedBy};

use crate::receiver::{Receiver, attribute, hex, text};

const API: &str = "tidemark-api";
const TRACKER: &str = "tidemark-tracker";
/// The trace and the span of the client.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
/// Sent as search query and as `tracestate`. It must not be exported or forwarded.
const SEARCH_TERM: &str = "sentinel-of-a-search";

/// An API and a tracker that export everything at short intervals.
struct Installation {
    receiver: Receiver,
    databases: IsolatedStores,
    api: Process,
    tracker: Process,
    base: String,
    key: String,
    _media: TempDir,
}

impl Installation {
    async fn start() -> Self {
        let mut databases = IsolatedStores::create().await;
        let connection = databases.connection.clone();
        let short = format!("{}/short", connection.sandbox_url);
        let receiver = Receiver::start(&connection.clickhouse_url, &short).await;
        let proxied = [
            ("TIDEMARK_CLICKHOUSE_URL", format!("{}/clickhouse", receiver.url)),
            ("TIDEMARK_TIKTOK_SHORT_LINK_URL", format!("{}/short", receiver.url)),
        ];
        databases.environment.extend(proxied);
        let exports = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url.clone()),
            ("OTEL_METRIC_EXPORT_INTERVAL", "300".to_owned()),
            ("OTEL_BSP_SCHEDULE_DELAY", "200".to_owned()),
            ("OTEL_BLRP_SCHEDULE_DELAY", "200".to_owned()),
        ];
        let options = OrganizationChange { rate_limit: Some(Some(12)), ..OrganizationChange::default() };
        let (_, key) = create_organization(databases.pg(), options).await;
        let yesterday = harness::now() - TimeDelta::days(1);
        let pause = SourcePause {
            platform: Platform::Instagram,
            source: "http".to_owned(),
            until: yesterday,
            cause: PauseCause::Credentials,
            reason: "refused".to_owned(),
        };
        source_pauses::start(databases.pg(), &pause, yesterday).await.unwrap();
        let (api, base) = databases.serve(&exports);
        let media = tempfile::tempdir().unwrap();
        let folder = ("TIDEMARK_MEDIA_DIR", media.path().display().to_string());
        let tracker = databases.track(&[&exports[..], &[folder]].concat());
        Installation { receiver, databases, api, tracker, base, key, _media: media }
    }

    /// The status, the request id and the body of the response.
    async fn send(&self, request: reqwest::RequestBuilder) -> (u16, String, String) {
        let context = format!("00-{TRACE}-{PARENT}-01");
        let request =
            request.header("traceparent", context).header("tracestate", format!("client={SEARCH_TERM}"));
        let response = request.bearer_auth(&self.key).send().await.unwrap();
        let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
        (response.status().as_u16(), id, response.text().await.unwrap())
    }

    async fn get(&self, path: &str) -> (u16, String, String) {
        self.send(http_client().get(format!("{}{path}", self.base))).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, String, String) {
        self.send(http_client().post(format!("{}{path}", self.base)).json(&body)).await
    }

    /// Tracks accounts of both platforms and waits until their scrapes are in ClickHouse.
    async fn track_accounts(&self) {
        for platform in ["instagram", "tiktok"] {
            let username = &self.databases.sandbox_account(platform).username;
            let created = self.post("/accounts", json!({"platform": platform, "username": username})).await;
            assert_eq!(created.0, 201, "{}", created.2);
        }
        wait_until("both accounts are scraped and delivered", || async {
            let applied = "select count(*) filter (where last_scrape_time is not null) = 2
                               and not exists (select from outbox where applied_at is null) from accounts";
            let done: bool = sqlx::query_scalar(applied).fetch_one(self.databases.pg()).await.unwrap();
            done.then_some(())
        })
        .await;
    }

    /// The metrics page, once it is served.
    async fn page(&self, process: &Process) -> String {
        let url = wait_until("the metrics page is served", || async { process.metrics_url() }).await;
        http_client().get(url).send().await.unwrap().text().await.unwrap()
    }
}

#[track_caller]
fn find_span<'a>(spans: &'a [(String, Span)], name: &str) -> &'a Span {
    let span = spans.iter().find(|(_, span)| span.name == name);
    &span.unwrap_or_else(|| panic!("no {name} among {:?}", names(spans))).1
}

fn names(spans: &[(String, Span)]) -> Vec<&str> {
    spans.iter().map(|(_, span)| span.name.as_str()).collect()
}

#[tokio::test]
async fn traces_metrics_and_logs_are_exported() {
    let mut installation = Installation::start().await;
    check_source_pause(&installation).await;
    installation.track_accounts().await;
    let request_id = check_request_trace(&installation).await;
    check_route_template(&installation).await;
    check_trace_context(&installation).await;

    let scraped = installation.receiver.read(|received| {
        let mut spans = received.spans.iter().filter(|(service, _)| service == TRACKER);
        spans.any(|(_, span)| span.name == "scrape tiktok account" && span.parent_span_id.is_empty())
    });
    assert!(scraped, "a scrape must have its own trace");
    check_logs(&installation, &request_id).await;

    // Move the remaining metrics: webhooks, searches, imports, and requests beyond the rate limit.
    insert_failing_webhook(installation.databases.pg()).await;
    let url = format!("{}/import", installation.base.trim_end_matches("/v2"));
    assert_eq!(installation.send(http_client().post(url).body("no table")).await.0, 202);
    wait_until("the import has ended", || async {
        let ended = "select exists (select from uploads where finished_at is not null)";
        let ended: bool = sqlx::query_scalar(ended).fetch_one(installation.databases.pg()).await.unwrap();
        ended.then_some(())
    })
    .await;
    assert_eq!(installation.get(&format!("/search?q={SEARCH_TERM}")).await.0, 200);
    let search = wait_until("the search has a span", || async {
        installation.receiver.trace(TRACE).into_iter().find(|(_, span)| span.name == "search")
    })
    .await;
    assert_eq!(attribute(&search.1.attributes, "http.route"), "/v2/search");
    wait_until("the rate limit is reached", || async {
        (installation.get("/whoami").await.0 == 429).then_some(())
    })
    .await;
    check_metrics(&installation).await;
    check_metrics_pages(&installation).await;

    check_secrets(&installation).await;
    // Each fails if the process does not exit.
    installation.api.stop().await;
    installation.tracker.stop().await;
    let is_export_error =
        |line: &Value| line["message"].as_str().is_some_and(|text| text.contains("collector"));
    assert!(!installation.api.lines().iter().any(is_export_error), "{}", installation.api.log());
}

/// Statements are children of the request's span, which is a child of the client's. Returns the request id.
async fn check_request_trace(installation: &Installation) -> String {
    let (status, request_id, body) = installation.get("/overview?period=7d").await;
    assert_eq!(status, 200, "{body}");
    let spans = wait_until("the request's trace is complete", || async {
        let spans = installation.receiver.trace(TRACE);
        let has_span = |name| spans.iter().any(|(_, span)| span.name == name);
        (has_span("GET /v2/overview") && has_span("SELECT clickhouse")).then_some(spans)
    })
    .await;
    let request = find_span(&spans, "GET /v2/overview");
    assert_eq!(hex(&request.parent_span_id), PARENT);
    assert_eq!(request.kind, SpanKind::Server as i32);
    assert_eq!(attribute(&request.attributes, "http.route"), "/v2/overview");
    assert_eq!(attribute(&request.attributes, "http.response.status_code"), "200");
    assert_eq!(attribute(&request.attributes, "tidemark.request_id"), request_id);
    let count_children = |suffix: &str| {
        let children = spans.iter().filter(|(_, span)| span.parent_span_id == request.span_id);
        children.filter(|(_, span)| span.name.ends_with(suffix)).count()
    };
    assert!(count_children(" clickhouse") > 0 && count_children(" postgresql") > 0, "{:?}", names(&spans));
    let statement = find_span(&spans, "SELECT clickhouse");
    assert_eq!(statement.kind, SpanKind::Client as i32);
    let query = attribute(&statement.attributes, "db.query.text");
    assert!(query.contains("{org"), "placeholders must not be replaced");
    for (name, span) in spans.iter().map(|(_, span)| (&span.name, span)) {
        if span.parent_span_id == request.span_id {
            assert_eq!(attribute(&span.attributes, "http.route"), "/v2/overview", "{name}");
        }
    }
    request_id
}

/// A span is named after the route template, not after the path.
async fn check_route_template(installation: &Installation) {
    let account: String = sqlx::query_scalar("select id::text from accounts limit 1")
        .fetch_one(installation.databases.pg())
        .await
        .unwrap();
    assert_eq!(installation.get(&format!("/accounts/{account}")).await.0, 200);
    wait_until("a span has the route template", || async {
        let spans = installation.receiver.trace(TRACE);
        spans.iter().any(|(_, span)| span.name == "GET /v2/accounts/{account_id}").then_some(())
    })
    .await;
}

/// Requests to ClickHouse and platforms have the client's trace context.
async fn check_trace_context(installation: &Installation) {
    let receiver = &installation.receiver;
    let video = json!({"platform": "tiktok", "identifier": "https://vm.tiktok.com/nothing/"});
    assert_eq!(installation.post("/videos", video).await.0, 422);
    let has_trace = |destination| {
        let in_trace = |context: &Option<String>| context.as_ref().is_some_and(|text| text.contains(TRACE));
        receiver.read(|received| {
            received.forwarded.iter().any(|(name, context)| *name == destination && in_trace(context))
        })
    };
    assert!(has_trace("clickhouse") && has_trace("short"));
    check_statement_parents(receiver).await;
}

/// Log lines have the trace id, on standard error and at the collector.
async fn check_logs(installation: &Installation, request_id: &str) {
    let line = installation.api.lines().into_iter().find(|line| line["request_id"] == request_id);
    let line = line.unwrap();
    assert_eq!(
        (line["trace_id"].as_str(), line["message"].as_str()),
        (Some(TRACE), Some("request finished"))
    );
    wait_until("the collector has the line", || async {
        installation.receiver.read(|received| {
            let mut logs = received.logs.iter().map(|(_, log)| log);
            let found = logs.find(|log| attribute(&log.attributes, "request_id") == request_id)?;
            assert_eq!(
                (hex(&found.trace_id).as_str(), text(&found.body).as_str()),
                (TRACE, "request finished")
            );
            Some(())
        })
    })
    .await;
}

/// A source whose credentials were rejected stays paused until a request succeeds, even after `until`.
async fn check_source_pause(installation: &Installation) {
    wait_until("the paused source is exported", || async {
        let page = installation.page(&installation.tracker).await;
        let mut lines = page.lines().filter(|line| line.starts_with("tidemark_source_paused{"));
        let paused = lines.find(|line| line.ends_with(" 1"))?;
        for label in
            ["tidemark_cause=\"credentials\"", "tidemark_platform=\"instagram\"", "tidemark_source=\"http\""]
        {
            assert!(paused.contains(label), "{paused}");
        }
        Some(())
    })
    .await;
    let pg = installation.databases.pg();
    assert!(source_pauses::end(pg, Platform::Instagram, "http", harness::now()).await.unwrap());
}

/// The parent of every ClickHouse request is the span of a statement.
async fn check_statement_parents(receiver: &Receiver) {
    let parents: BTreeSet<_> = receiver.read(|received| {
        let contexts = received.forwarded.iter().filter(|(name, _)| *name == "clickhouse");
        let contexts = contexts.filter_map(|(_, context)| context.as_deref());
        contexts.map(|context| context.split('-').nth(2).unwrap().to_owned()).collect()
    });
    // Spans of a request and of the relay.
    assert!(parents.len() > 5, "{parents:?}");
    wait_until("the statements' spans are received", || async {
        receiver.read(|received| {
            let spans = received.spans.iter().filter(|(_, span)| span.name.ends_with(" clickhouse"));
            let statements: BTreeSet<_> = spans.map(|(_, span)| hex(&span.span_id)).collect();
            parents.is_subset(&statements).then_some(())
        })
    })
    .await;
}

/// Inserts a webhook whose secret cannot be decrypted, so that nothing is requested, with a message.
async fn insert_failing_webhook(pg: &PgPool) {
    let insert = "with webhook as (
            insert into webhooks (id, organization_id, url, format, origin, is_active, secret, position, due_at, added_at,
                updated_at)
            select gen_random_uuid(), id, 'https://example.com/', 'standard', '', true, '', id, '-infinity', now(), now()
            from organizations returning organization_id, id
         )
         insert into webhook_messages (organization_id, webhook_id, id, type, body, due_at, created_at)
         select organization_id, id, gen_random_uuid(), 'webhook.test', '{}', '-infinity', now() from webhook";
    sqlx::query(insert).execute(pg).await.unwrap();
}

/// Every declared metric is received from the declared processes, with no undeclared label.
async fn check_metrics(installation: &Installation) {
    let expected: BTreeSet<_> = ALL
        .iter()
        .flat_map(|metric| match metric.exported_by {
            ExportedBy::Api => vec![(API, metric.name)],
            ExportedBy::Tracker => vec![(TRACKER, metric.name)],
            ExportedBy::Both => vec![(API, metric.name), (TRACKER, metric.name)],
        })
        .map(|(service, name)| (service.to_owned(), name.to_owned()))
        .collect();
    let receiver = &installation.receiver;
    let exported = || -> BTreeSet<_> { receiver.read(|received| received.metrics.keys().cloned().collect()) };
    let missing = || -> Vec<_> { expected.difference(&exported()).cloned().collect() };
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !missing().is_empty() {
        assert!(Instant::now() < deadline, "missing: {:?}", missing());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(exported().difference(&expected).collect::<Vec<_>>(), Vec::<&(String, String)>::new());
    receiver.read(|received| {
        for metric in ALL {
            assert_eq!(received.units[metric.name], metric.unit, "{}", metric.name);
            for service in [API, TRACKER] {
                let labels = received.metrics.get(&(service.to_owned(), metric.name.to_owned()));
                for label in labels.into_iter().flatten() {
                    assert!(metric.labels.contains(&label.as_str()), "{} has {label}", metric.name);
                }
            }
        }
    });
}

/// The metrics pages have the same metrics, with the names that dashboards use.
async fn check_metrics_pages(installation: &Installation) {
    for (process, exporter) in
        [(&installation.api, ExportedBy::Api), (&installation.tracker, ExportedBy::Tracker)]
    {
        let page = installation.page(process).await;
        for metric in ALL
            .iter()
            .filter(|metric| metric.exported_by == exporter || metric.exported_by == ExportedBy::Both)
        {
            let header = format!("# TYPE {} ", metric.prometheus_name());
            assert!(page.contains(&header), "no {header:?} in\n{page}");
        }
    }
    let page = installation.page(&installation.api).await;
    let requests = page.lines().find(|line| {
        line.starts_with("http_server_request_duration_seconds_count")
            && line.contains("http_route=\"/v2/overview\"")
    });
    let requests = requests.unwrap_or_else(|| panic!("{page}"));
    for label in
        ["http_request_method=\"GET\"", "http_response_status_code=\"200\"", "tidemark_organization_size="]
    {
        assert!(requests.contains(label), "{requests}");
    }
}

/// No key, password, search query or username is in telemetry; no `tracestate` is forwarded.
async fn check_secrets(installation: &Installation) {
    let mut output = installation.receiver.read(|received| received.bytes.clone());
    for process in [&installation.api, &installation.tracker] {
        output.extend_from_slice(process.log().as_bytes());
        output.extend_from_slice(installation.page(process).await.as_bytes());
    }
    let output = String::from_utf8_lossy(&output);
    let password = &installation.databases.connection.clickhouse_password;
    assert!(password.len() > 8 && output.contains("/v2/search"));
    let forwarded = installation.receiver.read(|received| format!("{:?}", received.forwarded));
    for secret in [&installation.key, password, SEARCH_TERM] {
        assert!(!output.contains(secret), "{secret} was logged or exported");
        assert!(!forwarded.contains(secret), "{secret} was forwarded");
    }
    let accounts = ["instagram", "tiktok"].map(|platform| installation.databases.sandbox_account(platform));
    let exported =
        installation.receiver.read(|received| String::from_utf8_lossy(&received.bytes).into_owned());
    for account in accounts {
        assert!(!exported.contains(&account.username), "{} was exported", account.username);
    }
}
