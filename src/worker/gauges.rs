//! The gauges whose values are in the stores: read at intervals while metrics are collected.
//!
//! A gauge that could not be read lately is absent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::passes::{self, PassTask};
use super::timeout;
use crate::app::{Databases, EventStreams};
use crate::model::platform::Platform;
use crate::platforms::Sources;
use crate::store::analytics::HistoryReader;
use crate::store::lifecycle::retention;
use crate::store::pictures::{self, UsageSummary};
use crate::store::postgres::clock::{self, ClockSkew};
use crate::store::records::organizations;
use crate::store::records::webhooks::queue::{self, WebhookCounts};
use crate::store::search::{SearchIndex, changes};
use crate::store::tracking::queues::{self, Queue};
use crate::store::tracking::source_budgets;
use crate::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use crate::store::{Error, outbox};
use crate::telemetry::labels::{self, ANALYTICS_POOL, POSTGRES_POOL};
use crate::telemetry::metrics::{self, GaugeValue, register_gauge};
use crate::telemetry::names::{self, Metric};
use crate::telemetry::organization_size;

const READ_INTERVAL: Duration = Duration::from_secs(15);
/// Counting all targets, and all accounts, takes long.
const TARGETS_READ_INTERVAL: Duration = Duration::from_secs(300);
const ACCOUNTS_READ_INTERVAL: Duration = Duration::from_secs(600);
/// How long a value is exported after its next read was due.
const STALE_AFTER: Duration = Duration::from_secs(60);

/// The last value read, and when.
struct LastRead<T> {
    value: Mutex<Option<(Instant, T)>>,
    interval: Duration,
}

impl<T> LastRead<T> {
    fn new(interval: Duration) -> Arc<Self> {
        Arc::new(LastRead { value: Mutex::new(None), interval })
    }

    fn set(&self, value: T) {
        *self.value.lock() = Some((Instant::now(), value));
    }

    fn is_due(&self) -> bool {
        let value = self.value.lock();
        value.as_ref().is_none_or(|(at, _)| at.elapsed() >= self.interval)
    }

    /// Returns the gauge values of what was read; none if it is stale.
    fn gauge_values(&self, values: impl FnOnce(&T) -> Vec<GaugeValue>) -> Vec<GaugeValue> {
        let last = self.value.lock();
        let fresh = last.as_ref().filter(|(at, _)| at.elapsed() < self.interval + STALE_AFTER);
        fresh.map_or_else(Vec::new, |(_, value)| values(value))
    }
}

/// Registers a gauge without labels.
fn register_single<T: Send + 'static>(metric: &Metric, read: &Arc<LastRead<T>>, value: fn(&T) -> f64) {
    let read = read.clone();
    register_gauge(metric, move || read.gauge_values(|read| vec![(value(read), Vec::new())]));
}

/// The values of a tracker's gauges.
struct TrackerState {
    queues: Vec<Queue>,
    usages: Vec<SourceUsage>,
    pauses: Vec<SourcePause>,
    backlog: outbox::Backlog,
    clock_skew: ClockSkew,
    overdue_retentions: usize,
    webhooks: WebhookCounts,
    /// None before a tracker used a media folder.
    media: Option<UsageSummary>,
}

/// The daily limit of a source and the requests made today.
struct SourceUsage {
    source: &'static str,
    limit: u32,
    requests: i64,
}

/// Exports the gauges of a tracker until it is stopped.
pub(super) async fn run_for_tracker(
    databases: Databases,
    sources: Arc<Sources>,
    media_limit: Option<u64>,
    stop: CancellationToken,
) {
    if metrics::instruments().is_none() {
        return;
    }
    let (state, targets) = (LastRead::new(READ_INTERVAL), LastRead::new(TARGETS_READ_INTERVAL));
    register_connections(&databases, None);
    register_tracker(&state, &targets, &sources);
    register_media(&state, media_limit);
    let read = || async {
        state.set(timeout::short(read_tracker_state(&databases, &sources)).await?);
        if targets.is_due() {
            targets.set(timeout::short(queues::count_targets(&databases.pg)).await?);
        }
        Ok(())
    };
    passes::run(GaugeReader(read), stop).await;
}

fn register_tracker(
    state: &Arc<LastRead<TrackerState>>,
    targets: &Arc<LastRead<Vec<(Platform, i64)>>>,
    sources: &Arc<Sources>,
) {
    let targets = targets.clone();
    register_gauge(&names::TRACKED_TARGETS, move || {
        let value = |(platform, count): &(Platform, i64)| (*count as f64, vec![platform_label(*platform)]);
        targets.gauge_values(|targets| targets.iter().map(value).collect())
    });
    let register_queue = |metric: &Metric, value: fn(&Queue) -> i64| {
        let state = state.clone();
        let value = move |queue: &Queue| (value(queue) as f64, vec![platform_label(queue.platform)]);
        register_gauge(metric, move || state.gauge_values(|state| state.queues.iter().map(value).collect()));
    };
    register_queue(&names::DUE_TARGETS, |queue| queue.due);
    register_queue(&names::LEASED_TARGETS, |queue| queue.leased);
    register_queue(&names::FAILING_TARGETS, |queue| queue.failing);
    register_queue(&names::TRACKER_LAG, |queue| queue.lag_seconds);
    register_gauge(&names::SOURCE_PAUSED, {
        let (state, sources) = (state.clone(), sources.clone());
        move || state.gauge_values(|state| pause_values(&sources, &state.pauses))
    });
    let register_usage = |metric: &Metric, value: fn(&SourceUsage) -> i64| {
        let state = state.clone();
        let value = move |usage: &SourceUsage| {
            (value(usage) as f64, vec![KeyValue::new(labels::SOURCE, usage.source)])
        };
        register_gauge(metric, move || state.gauge_values(|state| state.usages.iter().map(value).collect()));
    };
    register_usage(&names::SOURCE_LIMIT, |usage| usage.limit.into());
    register_usage(&names::SOURCE_REMAINING, |usage| (i64::from(usage.limit) - usage.requests).max(0));
    register_single(&names::OUTBOX_ROWS, state, |state| state.backlog.rows as f64);
    register_single(&names::OUTBOX_LAG, state, |state| state.backlog.oldest_seconds);
    register_single(&names::RETENTION_OVERDUE, state, |state| state.overdue_retentions as f64);
    register_single(&names::WEBHOOK_LAG, state, |state| state.webhooks.lag_seconds);
    register_gauge(&names::WEBHOOKS, {
        let state = state.clone();
        move || state.gauge_values(|state| webhook_values(&state.webhooks))
    });
    register_single(&names::CLOCK_SKEW, state, |state| state.clock_skew.as_seconds());
}

/// Registers the gauges of the media folder, if there is one.
fn register_media(state: &Arc<LastRead<TrackerState>>, limit: Option<u64>) {
    let Some(limit) = limit else { return };
    let register = |metric: &Metric, value: fn(&UsageSummary) -> i64| {
        let state = state.clone();
        let value = move |media: &UsageSummary| (value(media) as f64, Vec::new());
        register_gauge(metric, move || state.gauge_values(|state| state.media.iter().map(value).collect()));
    };
    register(&names::PICTURES_WAITING, |media| media.waiting);
    register(&names::MEDIA_USAGE, |media| media.used_bytes);
    register_gauge(&names::MEDIA_LIMIT, move || vec![(limit as f64, Vec::new())]);
}

async fn read_tracker_state(databases: &Databases, sources: &Sources) -> Result<TrackerState, Error> {
    let (pg, now) = (&databases.pg, databases.clock.now().await);
    let mut usages = Vec::<SourceUsage>::new();
    for platform in Platform::ALL {
        for (source, limit) in sources.daily_limits(platform) {
            if !usages.iter().any(|usage| usage.source == source) {
                let requests = source_budgets::count_requests(pg, source, now.date_naive()).await?;
                usages.push(SourceUsage { source, limit, requests });
            }
        }
    }
    let mut pauses = source_pauses::fetch_all(pg).await?;
    pauses.retain(|pause| pause.is_active(now));
    let (queues, backlog) = (queues::fetch_all(pg, now).await?, outbox::fetch_backlog(pg).await?);
    let clock_skew = clock::fetch_skew(pg, databases.clock.read_machine()).await?;
    let overdue_retentions = retention::fetch_overdue(pg).await?.len();
    let webhooks = queue::count(pg, now).await?;
    let media = pictures::fetch_summary(pg).await?;
    Ok(TrackerState { queues, usages, pauses, backlog, clock_skew, overdue_retentions, webhooks, media })
}

fn webhook_values(counts: &WebhookCounts) -> Vec<GaugeValue> {
    let values = [("ok", counts.ok), ("failing", counts.failing), ("disabled", counts.disabled)];
    values.map(|(status, count)| (count as f64, vec![KeyValue::new(labels::OUTCOME, status)])).into()
}

/// Returns 1 or 0 for each platform, source and cause.
fn pause_values(sources: &Sources, pauses: &[SourcePause]) -> Vec<GaugeValue> {
    let mut values = Vec::new();
    for platform in Platform::ALL {
        for source in sources.names(platform) {
            for (cause, label) in
                [(PauseCause::RateLimit, "rate_limit"), (PauseCause::Credentials, "credentials")]
            {
                let is_paused = pauses.iter().any(|pause| {
                    pause.platform == platform && pause.source == source && pause.cause == cause
                });
                let labels = vec![
                    platform_label(platform),
                    KeyValue::new(labels::SOURCE, source),
                    KeyValue::new(labels::CAUSE, label),
                ];
                values.push((f64::from(u8::from(is_paused)), labels));
            }
        }
    }
    values
}

fn platform_label(platform: Platform) -> KeyValue {
    KeyValue::new(labels::PLATFORM, platform.as_str())
}

/// Exports the gauges of an API process until it is stopped.
pub async fn run_for_api(
    databases: Databases,
    history: HistoryReader,
    search: SearchIndex,
    streams: EventStreams,
    stop: CancellationToken,
) {
    if metrics::instruments().is_none() {
        return;
    }
    register_gauge(&names::EVENT_STREAMS, move || vec![(streams.count() as f64, Vec::new())]);
    let queries = history.clone();
    register_gauge(&names::CONNECTION_PENDING, move || {
        let (_running, waiting) = queries.load();
        vec![(waiting as f64, vec![KeyValue::new(labels::POOL, ANALYTICS_POOL)])]
    });
    let rollups = history.rollups().clone();
    register_gauge(&names::ROLLUP_USAGE, move || vec![(rollups.stats().bytes as f64, Vec::new())]);
    register_connections(&databases, Some(history));
    register_gauge(&names::SEARCH_LAG, {
        let search = search.clone();
        move || search.lag().map(|lag| (lag.as_secs_f64(), Vec::new())).into_iter().collect()
    });
    register_gauge(&names::SEARCH_DOCUMENTS, {
        let search = search.clone();
        move || vec![(search.document_count() as f64, Vec::new())]
    });
    let (pending, accounts) = (LastRead::new(READ_INTERVAL), LastRead::new(ACCOUNTS_READ_INTERVAL));
    register_single(&names::SEARCH_PENDING, &pending, |pending: &i64| *pending as f64);
    let read = || async {
        let pg = &databases.pg;
        pending.set(timeout::short(changes::count_pending(pg, search.applied_txid())).await?);
        if accounts.is_due() {
            let counts = timeout::short(organizations::count_accounts(pg)).await?;
            organization_size::set_account_counts(counts);
            accounts.set(());
        }
        Ok(())
    };
    passes::run(GaugeReader(read), stop).await;
}

/// Registers the gauges of Postgres connections and, with a history reader, of the permits for analytics queries.
fn register_connections(databases: &Databases, history: Option<HistoryReader>) {
    let pool = |name| KeyValue::new(labels::POOL, name);
    // Prometheus shows no increase for a counter that starts above 0.
    if let Some(metrics) = metrics::instruments() {
        for name in [POSTGRES_POOL].into_iter().chain(history.as_ref().map(|_| ANALYTICS_POOL)) {
            metrics.connection_timeouts.add(0, &[pool(name)]);
        }
    }
    let max_connections = f64::from(databases.pg.options().get_max_connections());
    let permits = history.as_ref().map(HistoryReader::max_concurrency);
    register_gauge(&names::CONNECTIONS_MAX, move || {
        let permits = permits.map(|permits| (permits as f64, vec![pool(ANALYTICS_POOL)]));
        [(max_connections, vec![pool(POSTGRES_POOL)])].into_iter().chain(permits).collect()
    });
    let pg = databases.pg.clone();
    register_gauge(&names::CONNECTIONS, move || {
        let num_idle = pg.num_idle();
        let postgres = (POSTGRES_POOL, num_idle, (pg.size() as usize).saturating_sub(num_idle));
        let analytics = history.as_ref().map(|history| {
            let (used, _waiting) = history.load();
            (ANALYTICS_POOL, history.max_concurrency().saturating_sub(used), used)
        });
        let values = |(name, idle, used): (&'static str, usize, usize)| {
            let value =
                |count: usize, state| (count as f64, vec![pool(name), KeyValue::new(labels::STATE, state)]);
            [value(idle, "idle"), value(used, "used")]
        };
        [postgres].into_iter().chain(analytics).flat_map(values).collect()
    });
}

/// Reads what gauges export at intervals.
struct GaugeReader<R>(R);

impl<R, F> PassTask for GaugeReader<R>
where
    R: Fn() -> F + Send,
    F: Future<Output = Result<(), Error>> + Send,
{
    const FAILURE: &'static str = "cannot read gauges";
    const INTERVAL: Duration = READ_INTERVAL;

    fn run_pass(&mut self) -> impl Future<Output = Result<(), Error>> + Send {
        self.0()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauge_is_exported_until_it_is_stale() {
        let last_read = |seconds_ago| LastRead {
            value: Mutex::new(Some((Instant::now() - Duration::from_secs(seconds_ago), 1.0))),
            interval: TARGETS_READ_INTERVAL,
        };
        let exported = |read: &LastRead<f64>| read.gauge_values(|value| vec![(*value, Vec::new())]).len();
        for (seconds_ago, expected) in [(200, (false, 1)), (310, (true, 1)), (400, (true, 0))] {
            let read = last_read(seconds_ago);
            assert_eq!((read.is_due(), exported(&read)), expected, "after {seconds_ago} s");
        }
        assert!(LastRead::<()>::new(ACCOUNTS_READ_INTERVAL).is_due(), "nothing was read yet");
    }
}
