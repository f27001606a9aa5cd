//! The names of all metrics, in one place: what is measured, in which unit, by which labels, and what it means.
//!
//! Names follow OpenTelemetry's semantic conventions where those have one. docs/operating.md lists the same, and a test
//! compares the two; dashboards and alerts use these names, so they stay as they are.

/// How a metric behaves over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// How long things took, in buckets with these bounds.
    Histogram(&'static [f64]),
}

/// Which process exports a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Api,
    Tracker,
    Both,
}

/// A metric: what the program, the documentation and the dashboards agree on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Definition {
    pub name: &'static str,
    pub kind: Kind,
    pub unit: &'static str,
    /// The labels that it may carry; each has few values, whoever asks whatever.
    pub labels: &'static [&'static str],
    pub of: Of,
    pub meaning: &'static str,
}

impl Definition {
    /// The name that Prometheus knows it by: of a histogram, without `_bucket`, `_sum` or `_count`.
    pub fn prometheus_name(&self) -> String {
        let unit = match self.unit {
            "s" => "_seconds",
            "By" => "_bytes",
            _ => "",
        };
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        format!("{}{unit}{total}", self.name.replace('.', "_"))
    }
}

/// The bounds that the conventions recommend for requests, in seconds.
const OF_REQUESTS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// The bounds that the conventions recommend for databases, with two more where most statements are.
const OF_STATEMENTS: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// The bounds for what may take long, in seconds.
const OF_WORK: &[f64] = &[0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 300.0];

pub const METHOD: &str = "http.request.method";
pub const ROUTE: &str = "http.route";
pub const STATUS: &str = "http.response.status_code";
pub const SIZE: &str = "tidemark.organization.size";
pub const LIMIT: &str = "tidemark.limit";
pub const SYSTEM: &str = "db.system.name";
pub const OPERATION: &str = "db.operation.name";
pub const ERROR: &str = "error.type";
pub const POOL: &str = "db.client.connection.pool.name";
pub const STATE: &str = "db.client.connection.state";
pub const PLATFORM: &str = "tidemark.platform";
pub const SOURCE: &str = "tidemark.source";
pub const TARGET: &str = "tidemark.target";
pub const OUTCOME: &str = "tidemark.outcome";
pub const CAUSE: &str = "tidemark.cause";

macro_rules! definitions {
    ($($constant:ident: $name:literal, $kind:expr, $unit:literal, [$($label:expr),*], $of:expr, $meaning:literal;)*) => {
        $(pub const $constant: Definition = Definition {
            name: $name, kind: $kind, unit: $unit, labels: &[$($label),*], of: $of, meaning: $meaning,
        };)*
        /// Every metric that there is.
        pub const ALL: &[Definition] = &[$($constant),*];
    };
}

use Kind::{Counter, Gauge, Histogram};
use Of::{Api, Both, Tracker};

definitions! {
    REQUEST: "http.server.request.duration", Histogram(OF_REQUESTS), "s", [METHOD, ROUTE, STATUS, SIZE], Api,
        "How long requests took, by the route's template and how many accounts the organization tracks.";
    REFUSALS: "tidemark.rate_limit.refusals", Counter, "{request}", [LIMIT], Api,
        "Requests refused with 429: `key` over a key's own limit, `address` too many unknown keys from one address.";
    SEARCH: "tidemark.search.duration", Histogram(OF_STATEMENTS), "s", [], Api,
        "How long searches took, index and Postgres together.";
    SEARCH_LAG: "tidemark.search.lag", Gauge, "s", [], Api,
        "How long ago this process's index last held everything; absent while it is first built.";
    SEARCH_PENDING: "tidemark.search.pending", Gauge, "{change}", [], Api,
        "Changes that this process's index does not hold yet, counted up to 100,000.";
    SEARCH_DOCUMENTS: "tidemark.search.documents", Gauge, "{document}", [], Api,
        "Documents in this process's index.";
    STATEMENT: "db.client.operation.duration", Histogram(OF_STATEMENTS), "s", [SYSTEM, OPERATION, ROUTE, ERROR], Both,
        "How long statements took, `postgresql` and `clickhouse`, by the request's route where one asked.";
    CONNECTIONS: "db.client.connection.count", Gauge, "{connection}", [POOL, STATE], Both,
        "Connections to Postgres (`postgres`) and, of the API, places for questions of analytics at ClickHouse (`clickhouse`), `idle` and `used`.";
    CONNECTIONS_MAX: "db.client.connection.max", Gauge, "{connection}", [POOL], Both,
        "Most connections, or places, that the process uses.";
    CONNECTION_WAIT: "db.client.connection.wait_time", Histogram(OF_STATEMENTS), "s", [POOL], Both,
        "How long it took to get a connection, or a place.";
    CONNECTION_PENDING: "db.client.connection.pending_requests", Gauge, "{request}", [POOL], Api,
        "Questions of analytics that wait for a place at ClickHouse.";
    CONNECTION_TIMEOUTS: "db.client.connection.timeouts", Counter, "{timeout}", [POOL], Both,
        "How often there was no connection, or no place, within the time for it.";
    MEMORY: "process.memory.usage", Gauge, "By", [], Both,
        "Memory of the process that is in use, files mapped into it included.";
    SOURCE_REQUEST: "http.client.request.duration", Histogram(OF_REQUESTS), "s", [SOURCE, STATUS, ERROR], Both,
        "How long requests to platforms took, until the answer was read; the API asks about short links only.";
    SOURCE_ANSWERS: "tidemark.source.answers", Counter, "{answer}", [PLATFORM, SOURCE, TARGET, OUTCOME], Tracker,
        "What sources said of accounts and videos: `ok`, `not_found`, `rate_limited`, `credentials`, `transient`, `malformed`, `unsupported`, `uncounted`.";
    SOURCE_LIMIT: "tidemark.source.limit", Gauge, "{request}", [SOURCE], Tracker,
        "Requests that a source allows in a UTC day, where it says how many.";
    SOURCE_LEFT: "tidemark.source.left", Gauge, "{request}", [SOURCE], Tracker,
        "Requests that are left of them today.";
    SCRAPE: "tidemark.tracker.scrape.duration", Histogram(OF_WORK), "s", [PLATFORM, TARGET, OUTCOME], Tracker,
        "How long scrapes took, from asking until committed: `answered`, `not_asked`, `failed`, `rested`, `unrecorded`, `panicked`.";
    TARGETS: "tidemark.tracker.targets", Gauge, "{target}", [PLATFORM], Tracker,
        "Accounts and individually tracked videos that are not paused.";
    DUE: "tidemark.tracker.due", Gauge, "{target}", [PLATFORM], Tracker,
        "Those whose time has come and that nobody has in hand: the queue.";
    IN_HAND: "tidemark.tracker.in_hand", Gauge, "{target}", [PLATFORM], Tracker,
        "Those that a tracker has in hand.";
    FAILING: "tidemark.tracker.failing", Gauge, "{target}", [PLATFORM], Tracker,
        "Those whose last attempt failed.";
    LAG: "tidemark.tracker.lag", Gauge, "s", [PLATFORM], Tracker,
        "How long the one that is due longest has waited, also where its platform's sources rest.";
    SOURCE_PAUSED: "tidemark.source.paused", Gauge, "{source}", [PLATFORM, SOURCE, CAUSE], Tracker,
        "1 while a source rests, by `rate_limit` until it may be asked again or by `credentials` until it has answered, and 0 while it goes on.";
    OUTBOX: "tidemark.outbox.rows", Gauge, "{row}", [], Tracker,
        "Committed changes that are not in ClickHouse yet, counted up to 100,000.";
    OUTBOX_LAG: "tidemark.outbox.lag", Gauge, "s", [], Tracker,
        "How long the oldest of them has waited.";
    DELIVERY: "tidemark.relay.delivery.duration", Histogram(OF_WORK), "s", [OUTCOME], Tracker,
        "How long the relay's deliveries to ClickHouse took: `delivered`, `failed`, or `lost` when ClickHouse changed its files.";
    DELIVERED: "tidemark.relay.rows", Counter, "{row}", [], Tracker,
        "Rows of the outbox that the relay brought to ClickHouse.";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documentation's table, row by row as the program would write it.
    #[test]
    fn the_documentation_lists_exactly_these() {
        let page = include_str!("../../docs/operating.md");
        let is_row = |line: &&str| {
            line.strip_prefix("| `")
                .is_some_and(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))
        };
        let written: Vec<_> = page.lines().filter(is_row).collect();
        let known: Vec<_> = ALL.iter().map(row).collect();
        assert_eq!(written, known, "docs/operating.md should hold:\n{}", known.join("\n"));
    }

    fn row(metric: &Definition) -> String {
        let kind = match metric.kind {
            Counter => "counter",
            Gauge => "gauge",
            Histogram(_) => "histogram",
        };
        let of = match metric.of {
            Api => "API",
            Tracker => "tracker",
            Both => "both",
        };
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, unit, meaning) = (metric.name, metric.unit, metric.meaning);
        format!("| `{name}` | {kind} | `{unit}` | {} | {of} | {meaning} |", labels.join(" "))
    }

    #[test]
    fn no_name_is_used_twice() {
        let mut names: Vec<_> = ALL.iter().map(Definition::prometheus_name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
