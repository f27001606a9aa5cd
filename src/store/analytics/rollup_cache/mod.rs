//! The rollups of recently used organizations in memory: their figures need no query.
//!
//! ClickHouse answers the first request of an organization, while its rollup is loaded. Later ones first read what
//! deliveries up to their data version have changed, by the version of rows. Purged tombstones are not found so: a purge
//! invalidates all rollups first, and rows that were read long after the data version are not applied.

mod rows;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clickhouse::query::Query;
use futures_util::future;
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use opentelemetry::KeyValue;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use sqlx::PgPool;
use tokio::sync::watch;
use uuid::Uuid;

use self::rows::StoredRow;
use super::client::HistoryClient;
use crate::store::Error;
use crate::store::outbox::data_version::{self, HistoryVersion};
use crate::telemetry::{labels, metrics};

pub use rows::{RollupRows, RollupTotals};

/// How old a data version may be when the rows that it needs have been read. Less than [`PURGE_DELAY`].
const MAX_VERSION_AGE: Duration = Duration::from_millis(500);
/// How long a purge of tombstones waits after it invalidated all rollups.
pub const PURGE_DELAY: Duration = Duration::from_secs(1);
/// So that the load does not delay the request that starts it.
const LOAD_DELAY: Duration = Duration::from_millis(100);
/// The time from one load of an organization to the next, and after one that failed.
const LOAD_INTERVAL: Duration = Duration::from_secs(10);
const FAILED_LOAD_INTERVAL: Duration = Duration::from_secs(60);
/// The pause after an update that failed.
const UPDATE_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long a request waits for another update or a load.
const CHANGE_TIMEOUT: Duration = Duration::from_millis(100);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// More are loaded as a whole.
const MAX_CHANGED_ROWS: &str = "10000";
/// How long an organization stays in memory, and up to date, after its last request.
const MAX_IDLE: Duration = Duration::from_secs(600);

/// A version of an organization's history.
#[derive(Debug, Clone, Copy)]
pub struct ReadVersion {
    pub version: HistoryVersion,
    /// When its reading began: everything that was in memory by then is at least as new.
    pub read_at: Instant,
}

/// The rollups of this process. Cheap to clone.
#[derive(Clone)]
pub struct RollupCache {
    max_bytes: u64,
    entries: Cache<Uuid, Arc<Entry>>,
    /// One organization is loaded at a time.
    load: Arc<tokio::sync::Mutex<()>>,
    /// From memory, and from ClickHouse.
    reads: Arc<[AtomicU64; 2]>,
    /// While ClickHouse does not respond, no analytics are answered.
    is_paused: Arc<AtomicBool>,
    /// Notified when a request reads.
    uses: Arc<watch::Sender<()>>,
}

#[derive(Default)]
struct Entry {
    rows: RwLock<Option<(HistoryVersion, RollupRows)>>,
    /// Locked during a load or an update.
    schedule: Arc<tokio::sync::Mutex<Schedule>>,
    /// Bytes that it counts for.
    weight: AtomicU64,
}

/// When to load and to update at the earliest.
#[derive(Default)]
struct Schedule {
    load_at: Option<Instant>,
    update_at: Option<Instant>,
}

/// Reads since the process started, and the current size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RollupCacheStats {
    pub from_memory: u64,
    pub from_clickhouse: u64,
    pub organizations: u64,
    pub rows: u64,
    pub bytes: u64,
}

impl Entry {
    fn read(&self) -> RwLockReadGuard<'_, Option<(HistoryVersion, RollupRows)>> {
        self.rows.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<(HistoryVersion, RollupRows)>> {
        self.rows.write()
    }

    /// The last delivery in memory, if it can be compared with a version.
    fn delivery(&self, version: &HistoryVersion) -> Option<i64> {
        let rows = self.read();
        rows.as_ref().filter(|(loaded, _)| loaded.is_comparable(version)).map(|(loaded, _)| loaded.delivery)
    }

    fn weigh(&self) -> u32 {
        let bytes = self.read().as_ref().map_or(0, |(_, rows)| rows.bytes());
        self.weight.store(bytes, Ordering::Relaxed);
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }
}

impl RollupCache {
    /// Creates a cache of this capacity; 0 disables it.
    pub fn new(max_bytes: u64) -> Self {
        let entries = Cache::builder()
            .max_capacity(max_bytes)
            .weigher(|_: &Uuid, entry: &Arc<Entry>| entry.weigh())
            .eviction_policy(EvictionPolicy::lru())
            .time_to_idle(MAX_IDLE)
            .build();
        RollupCache {
            max_bytes,
            entries,
            load: Arc::default(),
            reads: Arc::default(),
            is_paused: Arc::default(),
            uses: Arc::default(),
        }
    }

    /// Notifies the receiver of each request that reads.
    pub fn watch_uses(&self) -> watch::Receiver<()> {
        self.uses.subscribe()
    }

    /// Computes from the rows of an organization, at least at a version. None if they are not in memory; they are loaded
    /// meanwhile.
    pub(super) async fn read<T>(
        &self,
        client: &HistoryClient,
        organization: Uuid,
        read: ReadVersion,
        compute: impl FnOnce(&RollupRows) -> T,
    ) -> Option<T> {
        self.uses.send_replace(());
        if self.max_bytes == 0 || self.is_paused.load(Ordering::Relaxed) {
            return None;
        }
        let entry = self.entries.get_with(organization, async { Arc::default() }).await;
        let mut result = None;
        if self.update(&entry, client, organization, read).await
            && let Some((loaded, rows)) = &*entry.read()
            && loaded.is_comparable(&read.version)
        {
            result = Some(compute(rows));
        }
        if result.is_none() {
            self.start_load(entry, client, organization, read.version);
        }
        let (position, outcome) = if result.is_some() { (0, "memory") } else { (1, "clickhouse") };
        self.reads[position].fetch_add(1, Ordering::Relaxed);
        if let Some(metrics) = metrics::instruments() {
            metrics.rollup_reads.add(1, &[KeyValue::new(labels::OUTCOME, outcome)]);
        }
        result
    }

    /// Reads what deliveries up to a version have changed. Returns false if that fails, or nothing is in memory.
    async fn update(
        &self,
        entry: &Arc<Entry>,
        client: &HistoryClient,
        organization: Uuid,
        ReadVersion { version, read_at }: ReadVersion,
    ) -> bool {
        let is_outdated = |delivery: &i64| *delivery < version.delivery;
        let Some(_) = entry.delivery(&version).filter(is_outdated) else {
            return entry.delivery(&version).is_some();
        };
        let schedule = tokio::time::timeout(CHANGE_TIMEOUT, entry.schedule.lock()).await;
        let Ok(mut schedule) = schedule else { return false };
        let Some(delivery) = entry.delivery(&version).filter(is_outdated) else {
            return entry.delivery(&version).is_some();
        };
        let started = Instant::now();
        if schedule.update_at.is_some_and(|at| at > started) {
            return false;
        }
        let bind =
            |query: Query| query.param("version", delivery).with_setting("max_result_rows", MAX_CHANGED_ROWS);
        let changed = client.fetch_all(organization, include_str!("changed.sql"), bind).await;
        let changed: Option<Vec<StoredRow>> = changed.ok().filter(|_| read_at.elapsed() < MAX_VERSION_AGE);
        record_change(started, if changed.is_some() { "updated" } else { "failed" });
        let Some(mut changed) = changed else {
            schedule.update_at = Some(Instant::now() + UPDATE_RETRY_DELAY);
            return false;
        };
        changed.sort_by_key(|row| row.version);
        let has_grown = match &mut *entry.write() {
            Some((loaded, rows)) => {
                *loaded = version;
                changed.iter().for_each(|row| rows.apply(row));
                rows.bytes() > entry.weight.load(Ordering::Relaxed) * 5 / 4
            }
            None => return false,
        };
        if has_grown {
            self.entries.insert(organization, Arc::clone(entry)).await;
        }
        true
    }

    /// Loads an organization in the background, unless that is under way or failed a moment ago.
    fn start_load(
        &self,
        entry: Arc<Entry>,
        client: &HistoryClient,
        organization: Uuid,
        version: HistoryVersion,
    ) {
        let Ok(mut schedule) = Arc::clone(&entry.schedule).try_lock_owned() else { return };
        if schedule.load_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        let (cache, client) = (self.clone(), client.with_log_comment("rollup cache"));
        tokio::spawn(async move {
            tokio::time::sleep(LOAD_DELAY).await;
            let _load = cache.load.lock().await;
            let started = Instant::now();
            let loaded = cache.load(&client, organization).await;
            let (outcome, interval) = match &loaded {
                Ok(Some(_)) => ("loaded", LOAD_INTERVAL),
                Ok(None) | Err(_) => ("failed", FAILED_LOAD_INTERVAL),
            };
            record_change(started, outcome);
            *schedule = Schedule { load_at: Some(Instant::now() + interval), update_at: None };
            match loaded {
                Ok(rows) => *entry.write() = rows.map(|rows| (version, rows)),
                Err(error) => tracing::debug!(%error, "cannot load a rollup into memory"),
            }
            cache.entries.insert(organization, Arc::clone(&entry)).await;
        });
    }

    /// Loads an organization; None if it does not fit.
    async fn load(&self, client: &HistoryClient, organization: Uuid) -> Result<Option<RollupRows>, Error> {
        let mut rows = RollupRows::default();
        let each = |row: StoredRow| rows.apply(&row);
        // At least one, because 0 is no limit.
        let max_rows = (self.max_bytes / RollupRows::ROW_BYTES).max(1);
        match client.for_each(organization, include_str!("all.sql"), max_rows, each).await {
            Err(error) if error.exceeds_query_limit() => return Ok(None),
            result => result?,
        }
        rows.shrink();
        Ok(Some(rows).filter(|rows| rows.bytes() <= self.max_bytes))
    }

    /// Pauses while ClickHouse does not respond.
    pub(super) async fn check_clickhouse(&self, client: &HistoryClient) {
        let is_paused = self.is_paused.load(Ordering::Relaxed);
        if is_paused || self.entries.iter().next().is_some() {
            let ping = tokio::time::timeout(PING_TIMEOUT, client.ping()).await;
            self.is_paused.store(!matches!(ping, Ok(Ok(()))), Ordering::Relaxed);
        }
    }

    /// Brings all organizations in memory up to date.
    pub(super) async fn follow(&self, pg: &PgPool, client: &HistoryClient) -> Result<(), Error> {
        let entries: HashMap<_, _> =
            self.entries.iter().filter(|(_, entry)| entry.read().is_some()).collect();
        if entries.is_empty() {
            return Ok(());
        }
        let (read_at, organizations) = (Instant::now(), entries.keys().map(|id| **id).collect::<Vec<_>>());
        let versions = data_version::fetch_history_versions(pg, &organizations).await?;
        let update = |(id, version): &(Uuid, HistoryVersion)| {
            let (id, version) = (*id, ReadVersion { version: *version, read_at });
            entries.get(&id).map(|entry| self.update(entry, client, id, version))
        };
        future::join_all(versions.iter().filter_map(update)).await;
        Ok(())
    }

    pub fn stats(&self) -> RollupCacheStats {
        let [from_memory, from_clickhouse] =
            [0, 1].map(|position| self.reads[position].load(Ordering::Relaxed));
        let mut stats = RollupCacheStats { from_memory, from_clickhouse, ..RollupCacheStats::default() };
        for (_, entry) in &self.entries {
            if let Some((_, rows)) = &*entry.read() {
                stats.organizations += 1;
                stats.rows += rows.len();
                stats.bytes += rows.bytes();
            }
        }
        stats
    }
}

fn record_change(started: Instant, outcome: &'static str) {
    if let Some(metrics) = metrics::instruments() {
        let labels = [KeyValue::new(labels::OUTCOME, outcome)];
        metrics::record_duration(&metrics.rollup_change_duration, started.elapsed(), &labels);
    }
}
