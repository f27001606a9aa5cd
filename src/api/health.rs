//! The health of the service and of its parts.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use chrono::SecondsFormat;
use salvo::http::header::CACHE_CONTROL;
use salvo::http::{HeaderValue, StatusCode};
use salvo::{Depot, Request, Response, Writer, async_trait};
use salvo_oapi::{Components, EndpointOutRegister, Operation, endpoint};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::http::Data;
use crate::http::openapi::add_success;
use crate::store::postgres::clock;
use crate::store::tracking::queues;
use crate::store::tracking::skewed_clocks;
use crate::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use crate::store::{self, health, outbox};

const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// The lag of the search index from which it is degraded.
const MAX_SEARCH_LAG: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "HealthStatus")]
enum Status {
    /// Works.
    Ok,
    /// Works in part, or is late.
    Degraded,
    /// Does not respond.
    Down,
}

/// The result of a check.
#[derive(Debug, Serialize, JsonSchema)]
struct Check {
    /// Status of the part.
    status: Status,
    /// Duration of the check in milliseconds.
    #[schemars(example = 3)]
    latency_ms: u64,
    /// Problem and remedy, or the paused source; absent if there is nothing to report.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// The result of ClickHouse's check, and what it has not got yet.
#[derive(Debug, Serialize, JsonSchema)]
struct ClickhouseCheck {
    #[serde(flatten)]
    check: Check,
    /// Changes that are committed and not delivered yet, up to 100,000; null if unknown.
    #[schemars(example = 0)]
    outbox_pending: Option<i64>,
    /// How long the oldest of them has waited; null if unknown.
    #[schemars(example = 0)]
    outbox_lag_seconds: Option<i64>,
}

/// The result of the tracker's check, and its queue.
#[derive(Debug, Serialize, JsonSchema)]
struct TrackerCheck {
    #[serde(flatten)]
    check: Check,
    /// How long the oldest due attempt has waited; null if unknown.
    #[schemars(example = 0)]
    lag_seconds: Option<i64>,
    /// Accounts and videos whose next attempt is due and has not begun; null if unknown.
    #[schemars(example = 0)]
    due: Option<i64>,
    /// Accounts and videos whose latest attempt failed; null if unknown.
    #[schemars(example = 0)]
    failing: Option<i64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Checks {
    /// Database of records.
    postgres: Check,
    /// Database of history.
    clickhouse: ClickhouseCheck,
    /// Search index, and whether it is up to date.
    search: Check,
    /// Process that scrapes, and whether it is on time.
    tracker: TrackerCheck,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Health {
    /// Always `health`.
    #[schemars(example = &"health")]
    r#type: &'static str,
    /// Status of the service.
    status: Status,
    /// Version of the service.
    #[schemars(example = &"0.1.0")]
    version: &'static str,
    /// Status of each part.
    checks: Checks,
}

/// The status of a part that responded, and a detail.
type Finding = (Status, Option<String>);

async fn run_check(check: impl Future<Output = Result<Finding, store::Error>>) -> Check {
    let started = Instant::now();
    let (status, detail) = match tokio::time::timeout(CHECK_TIMEOUT, check).await {
        Ok(Ok(finding)) => finding,
        Err(_) => (Status::Down, None),
        Ok(Err(error)) => {
            tracing::warn!(%error, "a health check failed");
            (Status::Down, None)
        }
    };
    Check { status, latency_ms: started.elapsed().as_millis() as u64, detail }
}

/// Returns figures, unless reading them fails or takes long. The checks report why.
async fn read_figures<T>(read: impl Future<Output = Result<T, store::Error>>) -> Option<T> {
    tokio::time::timeout(CHECK_TIMEOUT / 2, read).await.ok()?.ok()
}

/// Checks that Postgres responds, accepts writes if it rejected one, and that this process goes by its time.
async fn check_postgres(app: &App) -> Result<Finding, store::Error> {
    health::check_postgres(&app.pg, &app.schema).await?;
    if app.rejects_writes.load(Ordering::Relaxed) {
        match health::check_writes(&app.pg).await {
            Err(error) if error.rejects_writes() => {
                let detail = "postgres rejects writes: make room on its disk, or let it accept writes";
                return Ok((Status::Degraded, Some(detail.to_owned())));
            }
            checked => checked?,
        }
        app.rejects_writes.store(false, Ordering::Relaxed);
    }
    let skew = clock::fetch_skew(&app.pg, app.clock.read_machine()).await?;
    Ok(if skew.is_excessive() {
        let detail = format!("the clock of this API process is {skew}: synchronize it by NTP");
        (Status::Degraded, Some(detail))
    } else {
        (Status::Ok, None)
    })
}

/// Checks that ClickHouse responds and has all delivered history, and no other. Postgres records the latter; if it is down,
/// only its own check reports that.
async fn check_clickhouse(app: &App) -> Result<Finding, store::Error> {
    let problems = read_figures(async {
        let missing = outbox::fetch_missing_history(&app.pg).await?;
        let unknown = outbox::unknown_history::describe(&app.pg).await?;
        Ok(missing.iter().map(ToString::to_string).chain(unknown).collect::<Vec<_>>())
    });
    let (ping, found) = tokio::join!(app.history.ping(), problems);
    ping?;
    let detail = found.filter(|found| !found.is_empty()).map(|found| found.join("; "));
    Ok((if detail.is_none() { Status::Ok } else { Status::Degraded }, detail))
}

/// Checks that scrapes are on time, and reports wrong clocks and paused sources.
async fn check_tracker(app: &App) -> Result<Finding, store::Error> {
    let now = app.clock.now().await;
    let (mut rejected, mut rate_limited) = (Vec::new(), Vec::new());
    for pause in source_pauses::fetch_all(&app.pg).await? {
        let SourcePause { platform, source, until, cause, .. } = pause;
        match cause {
            PauseCause::Credentials => {
                rejected.push(format!("{platform} rejected the credentials of {source}: replace them"))
            }
            PauseCause::RateLimit if until > now => {
                let until = until.to_rfc3339_opts(SecondsFormat::Secs, true);
                rate_limited.push(format!("{platform} rate limits {source}: paused until {until}"));
            }
            PauseCause::RateLimit => {}
        }
    }
    let is_on_time = health::is_tracker_on_time(&app.pg, &app.readable.accounts, now).await?;
    let skewed = skewed_clocks::describe_all(&app.pg).await?;
    let is_ok = is_on_time && rejected.is_empty() && skewed.is_empty();
    let details: Vec<_> = skewed.into_iter().chain(rejected).chain(rate_limited).collect();
    let status = if is_ok { Status::Ok } else { Status::Degraded };
    Ok((status, Some(details.join("; ")).filter(|detail| !detail.is_empty())))
}

/// Checks that the search index is up to date.
fn check_search(app: &App) -> Finding {
    let detail = match app.search.lag() {
        Some(lag) if lag < MAX_SEARCH_LAG => return (Status::Ok, None),
        Some(lag) => {
            format!("the search index is {} s behind: newer changes are not found yet", lag.as_secs())
        }
        None => {
            let count = app.search.document_count();
            format!("the search index is being built: {count} records are found so far")
        }
    };
    (Status::Degraded, Some(detail))
}

/// Check the health
///
/// `degraded` if a part is down or late that only some requests need. 503 if Postgres is down. Requires no key.
#[endpoint(operation_id = "getHealth")]
pub(super) async fn get(app: App) -> HealthResponse {
    let (postgres, clickhouse, backlog, search, tracker, queue) = tokio::join!(
        run_check(check_postgres(&app)),
        run_check(check_clickhouse(&app)),
        read_figures(outbox::fetch_backlog(&app.pg)),
        run_check(async { Ok(check_search(&app)) }),
        run_check(check_tracker(&app)),
        read_figures(async {
            queues::fetch_totals(&app.pg, &app.readable.accounts, app.clock.now().await).await
        }),
    );
    let clickhouse = ClickhouseCheck {
        check: clickhouse,
        outbox_pending: backlog.map(|backlog| backlog.rows),
        outbox_lag_seconds: backlog.map(|backlog| backlog.oldest_seconds as i64),
    };
    let tracker = TrackerCheck {
        check: tracker,
        lag_seconds: queue.map(|queue| queue.lag_seconds),
        due: queue.map(|queue| queue.due),
        failing: queue.map(|queue| queue.failing),
    };
    let checks = Checks { postgres, clickhouse, search, tracker };
    let all = [&checks.postgres, &checks.clickhouse.check, &checks.search, &checks.tracker.check];
    let status =
        if all.iter().all(|check| check.status == Status::Ok) { Status::Ok } else { Status::Degraded };
    HealthResponse(Health { r#type: "health", status, version: env!("CARGO_PKG_VERSION"), checks })
}

struct HealthResponse(Health);

impl EndpointOutRegister for HealthResponse {
    fn register(_components: &mut Components, operation: &mut Operation) {
        add_success::<Data<Health>>(operation, "200", "The service works, at least in part.");
        add_success::<Data<Health>>(operation, "503", "Postgres is down. No other request works.");
    }
}

#[async_trait]
impl Writer for HealthResponse {
    async fn write(self, req: &mut Request, depot: &mut Depot, res: &mut Response) {
        let is_down = self.0.checks.postgres.status == Status::Down;
        Data { data: self.0 }.write(req, depot, res).await;
        if is_down {
            res.status_code(StatusCode::SERVICE_UNAVAILABLE);
            let headers = res.headers_mut();
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            headers.insert("retry-after", HeaderValue::from_static("1"));
        }
    }
}
