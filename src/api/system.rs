//! The service about itself and about who asks.

use std::time::{Duration, Instant};

use chrono::{NaiveDate, SecondsFormat};
use salvo::http::header::CACHE_CONTROL;
use salvo::http::{HeaderValue, StatusCode};
use salvo::{Depot, Request, Response, Router, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation, endpoint};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use crate::app::App;
use crate::http::forwarded::base_url;
use crate::http::openapi;
use crate::http::route::get_or_head;
use crate::http::{Caller, Data};
use crate::model::organization::Scope;
use crate::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use crate::store::{self, health, outbox};

/// How long a store may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);
/// How far behind Postgres search may be before that is worth a word.
const SEARCH_BEHIND: Duration = Duration::from_secs(10);

pub(super) fn public() -> Router {
    Router::new()
        .push(Router::with_path("health").push(get_or_head(read_health)))
        .push(Router::with_path("meta").push(get_or_head(read_meta)))
}

pub(super) fn private() -> Router {
    Router::with_path("whoami").push(get_or_head(read_whoami))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "HealthStatus")]
enum Status {
    /// It works.
    Ok,
    /// Something is wrong or late, but what does not need it works.
    Degraded,
    /// There is no answer.
    Down,
}

/// What one check found.
#[derive(Debug, Serialize, JsonSchema)]
struct Check {
    /// What the check found.
    status: Status,
    /// Milliseconds that the check took.
    #[schemars(example = 3)]
    latency_ms: u64,
    /// What is wrong and what to do, or what rests, where a word does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// What a check that got an answer found.
enum Found {
    Good,
    /// It works as it should, and this is why it does less than it could.
    Resting(String),
    Late,
    Wrong(String),
}

impl Found {
    fn good(good: bool) -> Self {
        if good { Found::Good } else { Found::Late }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Checks {
    /// The store of records.
    postgres: Check,
    /// The store of history.
    clickhouse: Check,
    /// The search index: whether it keeps up with the records.
    search: Check,
    /// The process that collects.
    tracker: Check,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// Always `health`.
    #[schemars(example = &"health")]
    r#type: &'static str,
    /// The service as a whole.
    status: Status,
    /// The version of the service.
    #[schemars(example = &"0.1.0")]
    version: &'static str,
    /// Its parts.
    checks: Checks,
}

async fn check(work: impl Future<Output = Result<Found, store::Error>>) -> Check {
    let started = Instant::now();
    let (status, detail) = match tokio::time::timeout(PATIENCE, work).await {
        Ok(Ok(Found::Good)) => (Status::Ok, None),
        Ok(Ok(Found::Resting(detail))) => (Status::Ok, Some(detail)),
        Ok(Ok(Found::Late)) => (Status::Degraded, None),
        Ok(Ok(Found::Wrong(detail))) => (Status::Degraded, Some(detail)),
        Err(_) => (Status::Down, None),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a health check failed");
            (Status::Down, None)
        }
    };
    Check { status, latency_ms: started.elapsed().as_millis() as u64, detail }
}

/// Whether ClickHouse answers, and whether it has all history that was ever delivered. Postgres remembers the latter;
/// that it is out is another check's matter.
async fn clickhouse(app: &App) -> Result<Found, store::Error> {
    let remembered = tokio::time::timeout(PATIENCE / 2, outbox::fetch_missing_history(&app.pg));
    let (answered, missing) = tokio::join!(app.history.ping(), remembered);
    answered?;
    let missing = missing.unwrap_or_else(|_| Ok(Vec::new())).unwrap_or_default();
    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
    Ok(if missing.is_empty() { Found::Good } else { Found::Wrong(missing.join("; ")) })
}

/// Whether what is due is read, and by which platforms it cannot be.
async fn tracker(app: &App) -> Result<Found, store::Error> {
    let now = app.clock.now().await;
    let (mut refused, mut rests) = (Vec::new(), Vec::new());
    for pause in source_pauses::fetch_all(&app.pg).await? {
        let SourcePause { platform, source, until, cause, .. } = pause;
        match cause {
            PauseCause::Credentials => {
                refused.push(format!("{platform} refused the credentials of {source}: mend them"))
            }
            PauseCause::RateLimit if until > now => {
                let until = until.to_rfc3339_opts(SecondsFormat::Secs, true);
                rests.push(format!("{platform}'s source {source} is at its limit and rests until {until}"));
            }
            PauseCause::RateLimit => {}
        }
    }
    let in_time = health::is_tracker_on_time(&app.pg, now).await?;
    Ok(match (refused.is_empty(), rests.is_empty()) {
        (false, _) => Found::Wrong(refused.into_iter().chain(rests).collect::<Vec<_>>().join("; ")),
        (true, false) if in_time => Found::Resting(rests.join("; ")),
        (true, false) => Found::Wrong(rests.join("; ")),
        (true, true) => Found::good(in_time),
    })
}

/// Whether the search index keeps up with the records, and how far it is behind them.
fn search(app: &App) -> Found {
    match app.search.lag() {
        Some(behind) if behind < SEARCH_BEHIND => Found::Good,
        Some(behind) => Found::Wrong(format!(
            "the search index is {} s behind the records: what was written since is not found",
            behind.as_secs()
        )),
        None => Found::Wrong(format!(
            "the search index is being built: {} records can be found so far",
            app.search.document_count()
        )),
    }
}

/// Tells whether the service works.
///
/// `degraded` when a part is out that not everything needs; 503 when nothing works.
#[endpoint(operation_id = "getHealth")]
async fn read_health(app: App) -> HealthAnswer {
    let (postgres, clickhouse, search, tracker) = tokio::join!(
        check(async { health::check_postgres(&app.pg, &app.schema).await.map(|()| Found::Good) }),
        check(clickhouse(&app)),
        check(async { Ok(search(&app)) }),
        check(tracker(&app)),
    );
    let checks = Checks { postgres, clickhouse, search, tracker };
    let all = [&checks.postgres, &checks.clickhouse, &checks.search, &checks.tracker];
    let status =
        if all.iter().all(|check| check.status == Status::Ok) { Status::Ok } else { Status::Degraded };
    HealthAnswer(Health { r#type: "health", status, version: env!("CARGO_PKG_VERSION"), checks })
}

struct HealthAnswer(Health);

impl EndpointOutRegister for HealthAnswer {
    fn register(_components: &mut Components, operation: &mut Operation) {
        openapi::add_success::<Data<Health>>(operation, "200", "The service works, as a whole or in part.");
        openapi::add_success::<Data<Health>>(
            operation,
            "503",
            "Postgres is out, and nothing works without it.",
        );
    }
}

#[async_trait]
impl Writer for HealthAnswer {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let out = self.0.checks.postgres.status != Status::Ok;
        Data { data: self.0 }.write(req, depot, res).await;
        if out {
            res.status_code(StatusCode::SERVICE_UNAVAILABLE);
            let headers = res.headers_mut();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            headers.insert("retry-after", HeaderValue::from_static("1"));
        }
    }
}

/// What this version of the API is and where its documentation stands.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Meta {
    /// Always `api_meta`.
    #[schemars(example = &"api_meta")]
    r#type: &'static str,
    /// The version of the API under this path.
    #[schemars(example = &"v2")]
    api_version: &'static str,
    /// Where the version is in its life.
    #[schemars(example = &"current")]
    status: &'static str,
    /// Where people read about the API.
    #[schemars(example = &"https://api.example/docs")]
    docs_url: String,
    /// Where this document is.
    #[schemars(example = &"https://api.example/v2/openapi.json")]
    openapi_url: String,
    /// What to try a key with.
    #[schemars(example = &"https://api.example/v2/whoami")]
    whoami_url: String,
    /// When the version was deprecated; null while it is fully supported.
    #[schemars(example = None::<()>)]
    deprecation: Option<String>,
    /// When the version will be gone; null while it is fully supported.
    #[schemars(example = None::<()>)]
    sunset: Option<String>,
}

impl Meta {
    fn current(base: &str) -> Self {
        Meta {
            r#type: "api_meta",
            api_version: "v2",
            status: "current",
            docs_url: format!("{base}/docs"),
            openapi_url: format!("{base}/v2/openapi.json"),
            whoami_url: format!("{base}/v2/whoami"),
            deprecation: None,
            sunset: None,
        }
    }

    /// An older version: what is written about the current one is all that there is.
    pub(super) fn deprecated(
        base: &str,
        api_version: &'static str,
        since: NaiveDate,
        until: NaiveDate,
    ) -> Self {
        let (deprecation, sunset) = (Some(since.to_string()), Some(until.to_string()));
        Meta { api_version, status: "deprecated", deprecation, sunset, ..Meta::current(base) }
    }
}

/// Tells which version of the API this is and where its documents are.
///
/// Needs no key.
#[endpoint(operation_id = "getMeta")]
async fn read_meta(req: &mut Request, depot: &mut Depot) -> Data<Meta> {
    Data { data: Meta::current(&base_url(req, depot)) }
}

/// Whose key this is and what it may do.
#[derive(Debug, Serialize, JsonSchema)]
struct WhoAmI {
    /// Always `whoami`.
    #[schemars(example = &"whoami")]
    r#type: &'static str,
    /// The organization that the key belongs to.
    organization_id: Uuid,
    /// The name of the key.
    #[schemars(example = &"dashboard")]
    api_key_name: String,
    /// What the key may do, implied scopes included.
    scopes: Vec<Scope>,
    /// Requests that the key may make in a clock minute.
    #[schemars(example = 600)]
    rate_limit: u32,
    /// The first UTC day of which the organization keeps history; absent where it keeps all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"2025-11-01")]
    history_since: Option<NaiveDate>,
}

/// Tells whose key this is and what it may do.
///
/// A first request to try a key with.
#[endpoint(operation_id = "getIdentity")]
async fn read_whoami(caller: Caller) -> Data<WhoAmI> {
    let data = WhoAmI {
        r#type: "whoami",
        organization_id: caller.organization,
        api_key_name: caller.key_name.to_string(),
        scopes: caller.scopes.to_vec(),
        rate_limit: caller.rate_limit,
        history_since: caller.history_since,
    };
    Data { data }
}
