//! The definitions of all metrics.
//!
//! Names follow OpenTelemetry's semantic conventions where those have one. Dashboards and alerts of installations use
//! them. docs/operating.md lists the same; a test compares the two.

use super::labels::{
    CAUSE, ERROR_TYPE, LIMIT, METHOD, OPERATION, ORGANIZATION_SIZE, OUTCOME, PLATFORM, POOL, ROUTE, SOURCE,
    STATE, STATUS, SYSTEM, TARGET,
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    Counter,
    Gauge,
    /// With the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

/// Which process exports a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportedBy {
    Api,
    Tracker,
    Both,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    pub name: &'static str,
    pub kind: MetricKind,
    pub unit: &'static str,
    /// Each has few values, whatever clients send.
    pub labels: &'static [&'static str],
    pub exported_by: ExportedBy,
    pub description: &'static str,
}

impl Metric {
    /// Returns the name in Prometheus, of a histogram without `_bucket`, `_sum` or `_count`.
    pub fn prometheus_name(&self) -> String {
        let unit = match self.unit {
            "s" => "_seconds",
            "By" => "_bytes",
            _ => "",
        };
        let total = if self.kind == MetricKind::Counter { "_total" } else { "" };
        format!("{}{unit}{total}", self.name.replace('.', "_"))
    }
}

/// Bucket bounds in seconds, as the conventions recommend for requests.
const REQUEST_SECONDS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// As recommended for databases, with two more where most statements are.
const STATEMENT_SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// For scrapes and deliveries.
const TASK_SECONDS: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 300.0];

macro_rules! metrics {
    ($($constant:ident: $name:literal, $kind:expr, $unit:literal, [$($label:expr),*], $by:expr, $description:literal;)*) => {
        $(pub const $constant: Metric = Metric {
            name: $name, kind: $kind, unit: $unit, labels: &[$($label),*], exported_by: $by, description: $description,
        };)*
        pub const ALL: &[Metric] = &[$($constant),*];
    };
}

use ExportedBy::{Api, Both, Tracker};
use MetricKind::{Counter, Gauge, Histogram};

metrics! {
    REQUEST_DURATION: "http.server.request.duration", Histogram(REQUEST_SECONDS), "s", [METHOD, ROUTE, STATUS, ORGANIZATION_SIZE], Api,
        "Duration of requests, by route template and size class of the organization.";
    RATE_LIMIT_REJECTIONS: "tidemark.rate_limit.rejections", Counter, "{request}", [LIMIT], Api,
        "Requests rejected with 429: `key` over a key's rate limit, `address` too many unknown keys from one address.";
    SEARCH_DURATION: "tidemark.search.duration", Histogram(STATEMENT_SECONDS), "s", [], Api,
        "Duration of searches, index and Postgres together.";
    SEARCH_LAG: "tidemark.search.lag", Gauge, "s", [], Api,
        "Time since this process's search index was last complete; absent during the first build.";
    SEARCH_PENDING: "tidemark.search.pending", Gauge, "{change}", [], Api,
        "Changes that this process's search index lacks, counted up to 100,000.";
    SEARCH_DOCUMENTS: "tidemark.search.documents", Gauge, "{document}", [], Api,
        "Documents in this process's search index.";
    ROLLUP_READS: "tidemark.rollup_cache.reads", Counter, "{read}", [OUTCOME], Api,
        "Reads of the history of accounts for a request: from `memory`, or from `clickhouse` while the organization is not in memory.";
    ROLLUP_CHANGE_DURATION: "tidemark.rollup_cache.change.duration", Histogram(STATEMENT_SECONDS), "s", [OUTCOME], Api,
        "Duration of changes of rollups in memory: `loaded`, `updated`, `failed`.";
    ROLLUP_USAGE: "tidemark.rollup_cache.usage", Gauge, "By", [], Api,
        "Memory of rollups.";
    EVENT_STREAMS: "tidemark.event.streams", Gauge, "{stream}", [], Api,
        "Open streams of events.";
    IMPORT_DURATION: "tidemark.import.duration", Histogram(TASK_SECONDS), "s", [OUTCOME], Api,
        "Duration of imports over HTTP, until everything was visible: `succeeded`, `failed`, `cancelled`.";
    STATEMENT_DURATION: "db.client.operation.duration", Histogram(STATEMENT_SECONDS), "s", [SYSTEM, OPERATION, ROUTE, ERROR_TYPE], Both,
        "Duration of statements to `postgresql` and `clickhouse`, by route if a request runs them.";
    CONNECTIONS: "db.client.connection.count", Gauge, "{connection}", [POOL, STATE], Both,
        "Postgres connections (`postgres`) and, in API processes, permits of analytics queries (`clickhouse`), `idle` and `used`.";
    CONNECTIONS_MAX: "db.client.connection.max", Gauge, "{connection}", [POOL], Both,
        "Maximum of connections or permits of this process.";
    CONNECTION_WAIT: "db.client.connection.wait_time", Histogram(STATEMENT_SECONDS), "s", [POOL], Both,
        "Time until a connection or permit was acquired.";
    CONNECTION_PENDING: "db.client.connection.pending_requests", Gauge, "{request}", [POOL], Api,
        "Analytics queries that wait for a permit.";
    CONNECTION_TIMEOUTS: "db.client.connection.timeouts", Counter, "{timeout}", [POOL], Both,
        "Timeouts of waiting for a connection or permit.";
    MEMORY: "process.memory.usage", Gauge, "By", [], Both,
        "Resident memory of the process, mapped files included.";
    SOURCE_REQUEST_DURATION: "http.client.request.duration", Histogram(REQUEST_SECONDS), "s", [SOURCE, STATUS, ERROR_TYPE], Both,
        "Duration of requests to platforms, until the response was read, and to receivers of `webhooks`; API processes resolve short links only.";
    SOURCE_RESPONSES: "tidemark.source.responses", Counter, "{response}", [PLATFORM, SOURCE, TARGET, OUTCOME], Tracker,
        "Reads of accounts and videos from sources: `ok`, `not_found`, `rate_limited`, `credentials`, `transient`, `malformed`, `unsupported`, `refresh_share_used`, `uncounted`.";
    SOURCE_LIMIT: "tidemark.source.limit", Gauge, "{request}", [SOURCE], Tracker,
        "Requests that a source allows per UTC day; absent without a daily limit.";
    SOURCE_REMAINING: "tidemark.source.remaining", Gauge, "{request}", [SOURCE], Tracker,
        "Requests of the daily limit that remain today.";
    SCRAPE_DURATION: "tidemark.tracker.scrape.duration", Histogram(TASK_SECONDS), "s", [PLATFORM, TARGET, OUTCOME], Tracker,
        "Duration of scrapes, from the first request until committed: `responded`, `skipped`, `failed`, `paused`, `unrecorded`, `panicked`.";
    TRACKED_TARGETS: "tidemark.tracker.targets", Gauge, "{target}", [PLATFORM], Tracker,
        "Tracked accounts and individually tracked videos, without paused ones.";
    DUE_TARGETS: "tidemark.tracker.due", Gauge, "{target}", [PLATFORM], Tracker,
        "Due targets that no tracker has leased: the queue.";
    LEASED_TARGETS: "tidemark.tracker.in_flight", Gauge, "{target}", [PLATFORM], Tracker,
        "Targets that a tracker has leased.";
    FAILING_TARGETS: "tidemark.tracker.failing", Gauge, "{target}", [PLATFORM], Tracker,
        "Targets whose last attempt failed.";
    TRACKER_LAG: "tidemark.tracker.lag", Gauge, "s", [PLATFORM], Tracker,
        "How long the target that has waited longest is due, including time while sources are paused.";
    CLOCK_SKEW: "tidemark.tracker.clock_skew", Gauge, "s", [], Tracker,
        "How far the clock of this machine is ahead of Postgres': beyond 60 or -60 the tracker does not scrape.";
    SOURCE_PAUSED: "tidemark.source.paused", Gauge, "{source}", [PLATFORM, SOURCE, CAUSE], Tracker,
        "1 while a source is paused: `rate_limit` until the limit is over, `credentials` until a request succeeds; otherwise 0.";
    OUTBOX_ROWS: "tidemark.outbox.rows", Gauge, "{row}", [], Tracker,
        "Committed changes that ClickHouse lacks, counted up to 100,000.";
    OUTBOX_LAG: "tidemark.outbox.lag", Gauge, "s", [], Tracker,
        "How long the oldest of them has waited.";
    DELIVERY_DURATION: "tidemark.relay.delivery.duration", Histogram(TASK_SECONDS), "s", [OUTCOME], Tracker,
        "Duration of the relay's deliveries to ClickHouse: `delivered`, `failed`, or `lost` when ClickHouse's data was replaced meanwhile.";
    DELIVERED_ROWS: "tidemark.relay.rows", Counter, "{row}", [], Tracker,
        "Outbox rows that the relay delivered to ClickHouse.";
    RETENTION_OVERDUE: "tidemark.retention.overdue", Gauge, "{organization}", [], Tracker,
        "Organizations whose expired history is not deleted an hour after it was due; the log and `tidemark doctor` name them.";
    WEBHOOK_ATTEMPT_DURATION: "tidemark.webhook.attempt.duration", Histogram(TASK_SECONDS), "s", [OUTCOME], Tracker,
        "Duration of attempts to deliver an event to a webhook: `succeeded`, `failed`.";
    WEBHOOKS: "tidemark.webhooks", Gauge, "{webhook}", [OUTCOME], Tracker,
        "Webhooks: `ok`, `failing` since the latest attempt, `disabled` by failures.";
    WEBHOOK_LAG: "tidemark.webhook.lag", Gauge, "s", [], Tracker,
        "How long the oldest event has waited for its first attempt.";
    PICTURES: "tidemark.pictures", Counter, "{picture}", [OUTCOME], Tracker,
        "Pictures: `copied`, `shared` with another record, `gone`, `failed`, `other_host`, `too_large`, `undecodable`, `not_stored`, `dropped`, `evicted`, `lost`.";
    PICTURE_DELAY: "tidemark.picture.delay", Histogram(TASK_SECONDS), "s", [], Tracker,
        "Time from when a picture was due until responses show its copy.";
    PICTURES_WAITING: "tidemark.pictures.waiting", Gauge, "{picture}", [], Tracker,
        "Pictures to be fetched, counted up to 100,000.";
    MEDIA_USAGE: "tidemark.media.usage", Gauge, "By", [], Tracker,
        "Space that copies of pictures occupy.";
    MEDIA_LIMIT: "tidemark.media.limit", Gauge, "By", [], Tracker,
        "Space that copies of pictures may occupy (`TIDEMARK_MEDIA_MAX_BYTES`).";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operating_page_lists_every_metric() {
        let page = include_str!("../../docs/operating.md");
        let is_row = |line: &&str| {
            line.strip_prefix("| `")
                .is_some_and(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
        };
        let rows: Vec<_> = page.lines().filter(is_row).collect();
        let expected: Vec<_> = ALL.iter().map(row).collect();
        assert_eq!(rows, expected, "docs/operating.md should contain:\n{}", expected.join("\n"));
    }

    fn row(metric: &Metric) -> String {
        let kind = match metric.kind {
            Counter => "counter",
            Gauge => "gauge",
            Histogram(_) => "histogram",
        };
        let exported_by = match metric.exported_by {
            Api => "API",
            Tracker => "tracker",
            Both => "both",
        };
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, unit, description) = (metric.name, metric.unit, metric.description);
        format!("| `{name}` | {kind} | `{unit}` | {} | {exported_by} | {description} |", labels.join(" "))
    }

    #[test]
    fn metric_names_are_unique() {
        let mut names: Vec<_> = ALL.iter().map(Metric::prometheus_name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
