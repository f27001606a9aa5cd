//! Traces, metrics and logs as a collector and Prometheus get them from an API and a tracker at work.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};
use tidemark::model::platform::Platform;
use tidemark::store::records::organizations::OrganizationChange;
use tidemark::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use tidemark::telemetry::names::{ALL, ExportedBy};

use crate::harness::{IsolatedStores, Process, create_organization, http_client, wait_until};
use crate::receiver::{Receiver, attribute, hex, text};

const API: &str = "tidemark-api";
const TRACKER: &str = "tidemark-tracker";
/// The trace of the client that asks, and its span.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
/// What the client seeks and says of its trace, which nobody else is told.
const SOUGHT: &str = "sought-by-nobody-else";

/// An API and a tracker that export everything, quickly.
struct Installation {
    receiver: Receiver,
    databases: IsolatedStores,
    api: Process,
    tracker: Process,
    base: String,
    key: String,
}

impl Installation {
    async fn start() -> Self {
        let mut databases = IsolatedStores::create().await;
        let connection = databases.connection.clone();
        let short = format!("{}/short", connection.sandbox_url);
        let receiver = Receiver::start(&connection.clickhouse_url, &short).await;
        let stands_between = [
            ("TIDEMARK_CLICKHOUSE_URL", format!("{}/clickhouse", receiver.url)),
            ("TIDEMARK_TIKTOK_SHORT_LINK_URL", format!("{}/short", receiver.url)),
        ];
        databases.environment.extend(stands_between);
        let exports = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url.clone()),
            ("OTEL_METRIC_EXPORT_INTERVAL", "300".to_owned()),
            ("OTEL_BSP_SCHEDULE_DELAY", "200".to_owned()),
            ("OTEL_BLRP_SCHEDULE_DELAY", "200".to_owned()),
        ];
        let options = OrganizationChange { rate_limit: Some(Some(12)), ..OrganizationChange::default() };
        let (_, key) = create_organization(databases.pg(), options).await;
        let yesterday = Utc::now() - TimeDelta::days(1);
        let refused = SourcePause {
            platform: Platform::Instagram,
            source: "http".to_owned(),
            until: yesterday,
            cause: PauseCause::Credentials,
            reason: "refused".to_owned(),
        };
        source_pauses::start(databases.pg(), &refused, yesterday).await.unwrap();
        let (api, base) = databases.serve(&exports);
        let tracker = databases.track(&exports);
        Installation { receiver, databases, api, tracker, base, key }
    }

    async fn ask(&self, request: reqwest::RequestBuilder) -> (u16, String, String) {
        let context = format!("00-{TRACE}-{PARENT}-01");
        let request = request.header("traceparent", context).header("tracestate", format!("client={SOUGHT}"));
        let answer = request.bearer_auth(&self.key).send().await.unwrap();
        let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
        (answer.status().as_u16(), id, answer.text().await.unwrap())
    }

    async fn get(&self, path: &str) -> (u16, String, String) {
        self.ask(http_client().get(format!("{}{path}", self.base))).await
    }

    async fn post(&self, path: &str, body: Value) -> (u16, String, String) {
        self.ask(http_client().post(format!("{}{path}", self.base)).json(&body)).await
    }

    /// Tracks accounts of both platforms and waits until what was scraped of them is in ClickHouse.
    async fn work(&self) {
        for platform in ["instagram", "tiktok"] {
            let username = &self.databases.sandbox_account(platform).username;
            let made = self.post("/accounts", json!({"platform": platform, "username": username})).await;
            assert_eq!(made.0, 201, "{}", made.2);
        }
        wait_until("both accounts are scraped and delivered", || async {
            let counted = "select count(*) filter (where last_scrape_time is not null) = 2
                               and not exists (select from outbox where applied_at is null) from accounts";
            let done: bool = sqlx::query_scalar(counted).fetch_one(self.databases.pg()).await.unwrap();
            done.then_some(())
        })
        .await;
    }

    /// A metric's page, once it can be read.
    async fn page(&self, process: &Process) -> String {
        let url = wait_until("the page of metrics can be read", || async { process.metrics_url() }).await;
        http_client().get(url).send().await.unwrap().text().await.unwrap()
    }
}

#[track_caller]
fn one<'a>(spans: &'a [(String, Span)], name: &str) -> &'a Span {
    let named = spans.iter().find(|(_, span)| span.name == name);
    &named.unwrap_or_else(|| panic!("no {name} among {:?}", names(spans))).1
}

fn names(spans: &[(String, Span)]) -> Vec<&str> {
    spans.iter().map(|(_, span)| span.name.as_str()).collect()
}

#[tokio::test]
async fn a_trace_goes_from_request_to_statement_and_every_metric_is_told_by_its_name() {
    let mut installation = Installation::start().await;
    refused_credentials_are_told(&installation).await;
    installation.work().await;

    // One trace, from the client's span over the request's to those of the statements.
    let (status, request_id, body) = installation.get("/overview?period=7d").await;
    assert_eq!(status, 200, "{body}");
    let receiver = &installation.receiver;
    let spans = wait_until("the request's trace is whole", || async {
        let spans = receiver.trace(TRACE);
        let named = |name| spans.iter().any(|(_, span)| span.name == name);
        (named("GET /v2/overview") && named("SELECT clickhouse")).then_some(spans)
    })
    .await;
    let request = one(&spans, "GET /v2/overview");
    assert_eq!(hex(&request.parent_span_id), PARENT);
    assert_eq!(request.kind, SpanKind::Server as i32);
    assert_eq!(attribute(&request.attributes, "http.route"), "/v2/overview");
    assert_eq!(attribute(&request.attributes, "http.response.status_code"), "200");
    assert_eq!(attribute(&request.attributes, "tidemark.request_id"), request_id);
    let below = |name: &str| {
        let children = spans.iter().filter(|(_, span)| span.parent_span_id == request.span_id);
        children.filter(|(_, span)| span.name.ends_with(name)).count()
    };
    assert!(below(" clickhouse") > 0 && below(" postgresql") > 0, "{:?}", names(&spans));
    let statement = one(&spans, "SELECT clickhouse");
    assert_eq!(statement.kind, SpanKind::Client as i32);
    assert!(
        attribute(&statement.attributes, "db.query.text").contains("{org"),
        "placeholders are left alone"
    );
    for (name, span) in spans.iter().map(|(_, span)| (&span.name, span)) {
        if span.parent_span_id == request.span_id {
            assert_eq!(attribute(&span.attributes, "http.route"), "/v2/overview", "{name}");
        }
    }

    let account: String = sqlx::query_scalar("select id::text from accounts limit 1")
        .fetch_one(installation.databases.pg())
        .await
        .unwrap();
    assert_eq!(installation.get(&format!("/accounts/{account}")).await.0, 200);
    wait_until("a route is told by its template", || async {
        let spans = receiver.trace(TRACE);
        spans.iter().any(|(_, span)| span.name == "GET /v2/accounts/{account_id}").then_some(())
    })
    .await;

    // ClickHouse and platforms continue it.
    let video = json!({"platform": "tiktok", "identifier": "https://vm.tiktok.com/nothing/"});
    assert_eq!(installation.post("/videos", video).await.0, 422);
    let passed_on = |to| {
        let continued = |context: &Option<String>| context.as_ref().is_some_and(|text| text.contains(TRACE));
        receiver.look(|received| {
            received.passed_on.iter().any(|(name, context)| *name == to && continued(context))
        })
    };
    assert!(passed_on("clickhouse") && passed_on("short"));
    belong_to_statements(receiver).await;

    // The tracker's work has traces of its own.
    let scraped = receiver.look(|received| {
        let mut spans = received.spans.iter().filter(|(service, _)| service == TRACKER);
        spans.any(|(_, span)| span.name == "scrape tiktok account" && span.parent_span_id.is_empty())
    });
    assert!(scraped, "a scrape is a trace");

    // Lines of the log lead to the trace, on standard error and at the collector.
    let line = installation.api.lines().into_iter().find(|line| line["request_id"] == request_id.as_str());
    let line = line.unwrap();
    assert_eq!(
        (line["trace_id"].as_str(), line["message"].as_str()),
        (Some(TRACE), Some("request finished"))
    );
    wait_until("the collector has the line", || async {
        receiver.look(|received| {
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

    // Whatever else is counted: searches, and requests beyond the limit.
    assert_eq!(installation.get(&format!("/search?q={SOUGHT}")).await.0, 200);
    let search = wait_until("the search is a span", || async {
        receiver.trace(TRACE).into_iter().find(|(_, span)| span.name == "search")
    })
    .await;
    assert_eq!(attribute(&search.1.attributes, "http.route"), "/v2/search");
    wait_until("the limit is reached", || async {
        (installation.get("/whoami").await.0 == 429).then_some(())
    })
    .await;
    every_metric(&installation).await;
    pages(&installation).await;

    nothing_secret(&installation).await;
    let longest = Duration::from_secs(20);
    assert!(installation.api.stop() < longest && installation.tracker.stop() < longest);
    let told = |line: &Value| line["message"].as_str().is_some_and(|text| text.contains("collector"));
    assert!(!installation.api.lines().iter().any(told), "{}", installation.api.log());
}

/// A source whose credentials were refused rests until it has answered, however long ago that was.
async fn refused_credentials_are_told(installation: &Installation) {
    wait_until("the source is told to rest", || async {
        let page = installation.page(&installation.tracker).await;
        let mut lines = page.lines().filter(|line| line.starts_with("tidemark_source_paused{"));
        let rests = lines.find(|line| line.ends_with(" 1"))?;
        for label in
            ["tidemark_cause=\"credentials\"", "tidemark_platform=\"instagram\"", "tidemark_source=\"http\""]
        {
            assert!(rests.contains(label), "{rests}");
        }
        Some(())
    })
    .await;
    let pg = installation.databases.pg();
    assert!(source_pauses::end(pg, Platform::Instagram, "http", Utc::now()).await.unwrap());
}

/// What ClickHouse is asked continues the span of the statement, and none beside it.
async fn belong_to_statements(receiver: &Receiver) {
    let parents: BTreeSet<_> = receiver.look(|received| {
        let contexts = received.passed_on.iter().filter(|(name, _)| *name == "clickhouse");
        let contexts = contexts.filter_map(|(_, context)| context.as_deref());
        contexts.map(|context| context.split('-').nth(2).unwrap().to_owned()).collect()
    });
    // A request's, and the relay's.
    assert!(parents.len() > 5, "{parents:?}");
    wait_until("the statements' spans are there", || async {
        receiver.look(|received| {
            let spans = received.spans.iter().filter(|(_, span)| span.name.ends_with(" clickhouse"));
            let statements: BTreeSet<_> = spans.map(|(_, span)| hex(&span.span_id)).collect();
            parents.is_subset(&statements).then_some(())
        })
    })
    .await;
}

/// Every metric of the table arrives, from the processes that it says, with no label that it does not name.
async fn every_metric(installation: &Installation) {
    let wanted: BTreeSet<_> = ALL
        .iter()
        .flat_map(|metric| match metric.exported_by {
            ExportedBy::Api => vec![(API, metric.name)],
            ExportedBy::Tracker => vec![(TRACKER, metric.name)],
            ExportedBy::Both => vec![(API, metric.name), (TRACKER, metric.name)],
        })
        .map(|(service, name)| (service.to_owned(), name.to_owned()))
        .collect();
    let receiver = &installation.receiver;
    let seen = || -> BTreeSet<_> { receiver.look(|received| received.metrics.keys().cloned().collect()) };
    let missing = || -> Vec<_> { wanted.difference(&seen()).cloned().collect() };
    let all = wait_until("every metric arrives", || async { missing().is_empty().then_some(()) });
    tokio::select! {
        () = all => {}
        () = tokio::time::sleep(Duration::from_secs(25)) => panic!("missing: {:?}", missing()),
    }
    assert_eq!(seen().difference(&wanted).collect::<Vec<_>>(), Vec::<&(String, String)>::new());
    receiver.look(|received| {
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

/// The same can be read at `/metrics`, under the names that dashboards use.
async fn pages(installation: &Installation) {
    for (process, of) in [(&installation.api, ExportedBy::Api), (&installation.tracker, ExportedBy::Tracker)]
    {
        let page = installation.page(process).await;
        for metric in
            ALL.iter().filter(|metric| metric.exported_by == of || metric.exported_by == ExportedBy::Both)
        {
            let head = format!("# TYPE {} ", metric.prometheus_name());
            assert!(page.contains(&head), "no {head:?} in\n{page}");
        }
    }
    let page = installation.page(&installation.api).await;
    let told = page.lines().find(|line| {
        line.starts_with("http_server_request_duration_seconds_count")
            && line.contains("http_route=\"/v2/overview\"")
    });
    let told = told.unwrap_or_else(|| panic!("{page}"));
    for label in
        ["http_request_method=\"GET\"", "http_response_status_code=\"200\"", "tidemark_organization_size="]
    {
        assert!(told.contains(label), "{told}");
    }
}

/// Nothing of what a client sent or what opens a store went out, by whatever way.
async fn nothing_secret(installation: &Installation) {
    let mut told = installation.receiver.look(|received| received.bytes.clone());
    for process in [&installation.api, &installation.tracker] {
        told.extend_from_slice(process.log().as_bytes());
        told.extend_from_slice(installation.page(process).await.as_bytes());
    }
    let told = String::from_utf8_lossy(&told);
    let password = &installation.databases.connection.clickhouse_password;
    assert!(password.len() > 8 && told.contains("/v2/search"));
    let passed_on = installation.receiver.look(|received| format!("{:?}", received.passed_on));
    for secret in [&installation.key, password, SOUGHT] {
        assert!(!told.contains(secret), "{secret} was told");
        assert!(!passed_on.contains(secret), "{secret} was passed on");
    }
    let accounts = ["instagram", "tiktok"].map(|platform| installation.databases.sandbox_account(platform));
    let sent = installation.receiver.look(|received| String::from_utf8_lossy(&received.bytes).into_owned());
    for account in accounts {
        assert!(!sent.contains(&account.username), "{} was sent", account.username);
    }
}
