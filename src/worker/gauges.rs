//! What metrics show of a state that lies in the stores: looked up now and then, as long as somebody collects it. What
//! could not be looked up lately is absent, so that nothing old is taken for now.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use tokio_util::sync::CancellationToken;

use super::{BRIEF, within};
use crate::app::Databases;
use crate::model::platform::Platform;
use crate::platforms::Sources;
use crate::store::analytics::HistoryReader;
use crate::store::records::organizations;
use crate::store::search::{SearchIndex, changes};
use crate::store::tracking::queues;
use crate::store::tracking::queues::Queue;
use crate::store::tracking::source_budgets;
use crate::store::tracking::source_pauses::{self, PauseCause, SourcePause};
use crate::store::{Error, outbox};
use crate::telemetry::labels::{self, ANALYTICS_POOL, POSTGRES_POOL};
use crate::telemetry::metrics::{self, GaugeValue, register_gauge};
use crate::telemetry::names::{self, Metric};
use crate::telemetry::organization_size;

/// How often the stores are looked at.
const EVERY: Duration = Duration::from_secs(15);
/// How often all targets are counted, and the accounts of all organizations: that takes time, and changes little.
const COUNT_TARGETS: Duration = Duration::from_secs(300);
const COUNT_ACCOUNTS: Duration = Duration::from_secs(600);
/// How long what was seen counts as the state of now, after the time to look again.
const FRESH: Duration = Duration::from_secs(60);

/// What was seen last, and when; it is looked at again after a time.
struct Seen<T> {
    last: Mutex<Option<(Instant, T)>>,
    again: Duration,
}

impl<T> Seen<T> {
    fn every(again: Duration) -> Arc<Self> {
        Arc::new(Seen { last: Mutex::new(None), again })
    }

    fn put(&self, seen: T) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), seen));
    }

    /// Whether it is time to look. A look that failed is made again soon.
    fn is_time(&self) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().is_none_or(|(at, _)| at.elapsed() >= self.again)
    }

    fn values(&self, values: impl FnOnce(&T) -> Vec<GaugeValue>) -> Vec<GaugeValue> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = last.as_ref().filter(|(at, _)| at.elapsed() < self.again + FRESH);
        fresh.map_or_else(Vec::new, |(_, seen)| values(seen))
    }
}

/// Shows one figure of what was seen, without labels.
fn one<T: Send + 'static>(definition: &Metric, seen: &Arc<Seen<T>>, figure: fn(&T) -> f64) {
    let seen = seen.clone();
    register_gauge(definition, move || seen.values(|seen| vec![(figure(seen), Vec::new())]));
}

/// The state of the tracker's queues, the sources' budgets and the outbox.
struct Tracking {
    queues: Vec<Queue>,
    budgets: Vec<(&'static str, u32, i64)>,
    pauses: Vec<SourcePause>,
    outbox: outbox::Backlog,
}

/// Shows what a tracker's metrics tell of the stores, until told to stop.
pub(super) async fn run_for_tracker(stores: Databases, sources: Arc<Sources>, stop: CancellationToken) {
    if metrics::instruments().is_none() {
        return;
    }
    let (seen, tracked) = (Seen::every(EVERY), Seen::every(COUNT_TARGETS));
    connections(&stores, None);
    let by_platform = |definition: &Metric, figure: fn(&Queue) -> f64| {
        let seen: Arc<Seen<Tracking>> = seen.clone();
        let value = move |queue: &Queue| (figure(queue), vec![platform(queue.platform)]);
        register_gauge(definition, move || seen.values(|seen| seen.queues.iter().map(value).collect()));
    };
    let targets = tracked.clone();
    register_gauge(&names::TRACKED_TARGETS, move || {
        let value = |(of, targets): &(Platform, i64)| (*targets as f64, vec![platform(*of)]);
        targets.values(|seen: &Vec<_>| seen.iter().map(value).collect())
    });
    by_platform(&names::DUE_TARGETS, |queue| queue.due as f64);
    by_platform(&names::LEASED_TARGETS, |queue| queue.leased as f64);
    by_platform(&names::FAILING_TARGETS, |queue| queue.failing as f64);
    by_platform(&names::TRACKER_LAG, |queue| queue.lag_seconds as f64);
    let paused = seen.clone();
    let of = sources.clone();
    register_gauge(&names::SOURCE_PAUSED, move || paused.values(|seen| resting(&of, &seen.pauses)));
    let by_source = |definition: &Metric, figure: fn(u32, i64) -> i64| {
        let seen: Arc<Seen<Tracking>> = seen.clone();
        let value = move |(source, limit, spent): &(&'static str, u32, i64)| {
            (figure(*limit, *spent) as f64, vec![KeyValue::new(labels::SOURCE, *source)])
        };
        register_gauge(definition, move || seen.values(|seen| seen.budgets.iter().map(value).collect()));
    };
    by_source(&names::SOURCE_LIMIT, |limit, _| limit.into());
    by_source(&names::SOURCE_REMAINING, |limit, spent| (i64::from(limit) - spent).max(0));
    one(&names::OUTBOX_ROWS, &seen, |seen| seen.outbox.rows as f64);
    one(&names::OUTBOX_LAG, &seen, |seen| seen.outbox.oldest_seconds);
    let look = || async {
        seen.put(within(BRIEF, tracking(&stores, &sources)).await?);
        if tracked.is_time() {
            tracked.put(within(BRIEF, queues::count_targets(&stores.pg)).await?);
        }
        Ok(())
    };
    regularly("the tracker's queues", stop, look).await;
}

async fn tracking(stores: &Databases, sources: &Sources) -> Result<Tracking, Error> {
    let (pg, now) = (&stores.pg, stores.clock.now().await);
    let mut budgets = Vec::<(&'static str, u32, i64)>::new();
    for platform in Platform::ALL {
        for (source, limit) in sources.daily_limits(platform) {
            if !budgets.iter().any(|(known, ..)| *known == source) {
                budgets.push((
                    source,
                    limit,
                    source_budgets::count_requests(pg, source, now.date_naive()).await?,
                ));
            }
        }
    }
    let mut pauses = source_pauses::fetch_all(pg).await?;
    pauses.retain(|pause| pause.is_active(now));
    Ok(Tracking {
        queues: queues::fetch_all(pg, now).await?,
        budgets,
        pauses,
        outbox: outbox::fetch_backlog(pg).await?,
    })
}

/// Whether each source of each platform rests, as one value for each cause.
fn resting(sources: &Sources, pauses: &[SourcePause]) -> Vec<GaugeValue> {
    let mut values = Vec::new();
    for of in Platform::ALL {
        for source in sources.names(of) {
            for (cause, word) in
                [(PauseCause::RateLimit, "rate_limit"), (PauseCause::Credentials, "credentials")]
            {
                let is_it = |pause: &SourcePause| {
                    pause.platform == of && pause.source == source && pause.cause == cause
                };
                let rests = if pauses.iter().any(is_it) { 1.0 } else { 0.0 };
                let labels = vec![
                    platform(of),
                    KeyValue::new(labels::SOURCE, source),
                    KeyValue::new(labels::CAUSE, word),
                ];
                values.push((rests, labels));
            }
        }
    }
    values
}

fn platform(platform: Platform) -> KeyValue {
    KeyValue::new(labels::PLATFORM, platform.as_str())
}

/// Shows what an API process's metrics tell of the stores and its index, until told to stop.
pub async fn run_for_api(
    stores: Databases,
    history: HistoryReader,
    search: SearchIndex,
    stop: CancellationToken,
) {
    if metrics::instruments().is_none() {
        return;
    }
    let places = history.clone();
    register_gauge(&names::CONNECTION_PENDING, move || {
        vec![(places.load().1 as f64, vec![KeyValue::new(labels::POOL, ANALYTICS_POOL)])]
    });
    connections(&stores, Some(history));
    let index = search.clone();
    register_gauge(&names::SEARCH_LAG, move || {
        index.lag().map(|lag| (lag.as_secs_f64(), Vec::new())).into_iter().collect()
    });
    let index = search.clone();
    register_gauge(&names::SEARCH_DOCUMENTS, move || vec![(index.document_count() as f64, Vec::new())]);
    let (pending, sizes) = (Seen::every(EVERY), Seen::every(COUNT_ACCOUNTS));
    one(&names::SEARCH_PENDING, &pending, |pending: &i64| *pending as f64);
    let look = || async {
        pending.put(within(BRIEF, changes::count_pending(&stores.pg, search.applied_txid())).await?);
        if sizes.is_time() {
            organization_size::set_account_counts(
                within(BRIEF, organizations::count_accounts(&stores.pg)).await?,
            );
            sizes.put(());
        }
        Ok(())
    };
    regularly("sizes and what search lacks", stop, look).await;
}

/// Shows the connections to Postgres and, where questions are asked of ClickHouse, the places for them.
fn connections(stores: &Databases, history: Option<HistoryReader>) {
    let pool = |name| KeyValue::new(labels::POOL, name);
    // A count that begins with its first event would not show that event as one.
    if let Some(metrics) = metrics::instruments() {
        for name in [POSTGRES_POOL].into_iter().chain(history.as_ref().map(|_| ANALYTICS_POOL)) {
            metrics.connection_timeouts.add(0, &[pool(name)]);
        }
    }
    let most = f64::from(stores.pg.options().get_max_connections());
    let places = history.as_ref().map(HistoryReader::max_concurrency);
    register_gauge(&names::CONNECTIONS_MAX, move || {
        let places = places.map(|places| (places as f64, vec![pool(ANALYTICS_POOL)]));
        [(most, vec![pool(POSTGRES_POOL)])].into_iter().chain(places).collect()
    });
    let pg = stores.pg.clone();
    register_gauge(&names::CONNECTIONS, move || {
        let idle = pg.num_idle();
        let of_postgres = (POSTGRES_POOL, idle, (pg.size() as usize).saturating_sub(idle));
        let of_clickhouse = history.as_ref().map(|history| {
            let used = history.load().0;
            (ANALYTICS_POOL, history.max_concurrency().saturating_sub(used), used)
        });
        let values = |(name, idle, used): (&'static str, usize, usize)| {
            let value =
                |count: usize, state| (count as f64, vec![pool(name), KeyValue::new(labels::STATE, state)]);
            [value(idle, "idle"), value(used, "used")]
        };
        [of_postgres].into_iter().chain(of_clickhouse).flat_map(values).collect()
    });
}

/// Looks regularly until told to stop. That it fails is told once, until it works again.
async fn regularly<F>(what: &'static str, stop: CancellationToken, look: impl Fn() -> F)
where
    F: Future<Output = Result<(), Error>>,
{
    let mut turn = tokio::time::interval(EVERY);
    turn.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = turn.tick() => {}
        }
        let Some(looked) = stop.run_until_cancelled(look()).await else { return };
        match looked {
            Ok(()) => failing = false,
            Err(error) if !std::mem::replace(&mut failing, true) => {
                tracing::warn!(%error, what, "metrics lack what cannot be looked up");
            }
            Err(error) => tracing::debug!(%error, what, "metrics still lack what cannot be looked up"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seldom_looked_at_is_shown_until_it_is_looked_at_again() {
        let seen = |ago| Seen {
            last: Mutex::new(Some((Instant::now() - Duration::from_secs(ago), 1.0))),
            again: COUNT_TARGETS,
        };
        let shown = |seen: &Seen<f64>| seen.values(|one| vec![(*one, Vec::new())]).len();
        for (ago, expected) in [(200, (false, 1)), (310, (true, 1)), (400, (true, 0))] {
            assert_eq!((seen(ago).is_time(), shown(&seen(ago))), expected, "after {ago} s");
        }
        assert!(Seen::<()>::every(COUNT_ACCOUNTS).is_time(), "nothing was seen yet");
    }
}
