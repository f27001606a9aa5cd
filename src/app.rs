//! Shared application state: the connected databases, the clock, and for requests the API's settings.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use ipnet::IpNet;
use sqlx::PgPool;
use tokio::sync::OwnedMutexGuard;
use url::Url;
use uuid::Uuid;

use crate::config::StoreArgs;
use crate::media::MediaReader;
use crate::model::readable::{KnownSource, ReadablePlatforms};
use crate::response_cache::ResponseCache;
use crate::shutdown::InFlightRequests;
use crate::store::analytics::HistoryReader;
use crate::store::analytics::rollup_cache::RollupCache;
use crate::store::clickhouse::client;
use crate::store::migrate::SchemaCheck;
use crate::store::postgres::clock::ClockReading;
use crate::store::postgres::pool::{self, DatabaseUrlError};
use crate::store::search::SearchIndex;
use crate::tls;

/// The state that API handlers share. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub pg: PgPool,
    /// Whether Postgres has the migrations of this version.
    pub schema: SchemaCheck,
    pub history: HistoryReader,
    pub clock: Clock,
    pub search: SearchIndex,
    pub responses: ResponseCache,
    pub exports: OpenExports,
    pub batches: BatchQueue,
    /// Copies of pictures, if there is a folder for them.
    pub media: Option<MediaReader>,
    pub readable: ReadablePlatforms,
    /// The sources that the program has; none in most tests.
    pub sources: Arc<[KnownSource]>,
    pub settings: Arc<Settings>,
    /// Counts requests in flight; rejects new ones during shutdown.
    pub in_flight: InFlightRequests,
}

/// Settings of the API process.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Base URL of the service, without a path; by default the host of each request.
    pub public_url: Option<String>,
    /// Allowed CORS origins; `*` for all.
    pub cors_origins: Vec<String>,
    /// Unknown keys that one client address may send per clock minute.
    pub auth_failure_limit: u32,
    /// Proxies whose `Forwarded` headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    pub rate_limit_store: RateLimitStore,
    /// Resolves short links instead of the platform, for tests and the demo.
    pub short_link_url: Option<Url>,
    /// Capacity of the response cache; 0 disables it.
    pub response_cache_bytes: u64,
    /// Capacity of the rollups in memory; 0 disables them.
    pub rollup_cache_bytes: u64,
    /// Concurrent analytics queries of this process.
    pub analytics_concurrency: usize,
    /// How old the last successful scrape has to be for a refresh.
    pub refresh_floor: TimeDelta,
    /// Folder of copies of pictures.
    pub media_dir: Option<PathBuf>,
}

/// Where requests per key are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum RateLimitStore {
    /// In the memory of each API process
    #[default]
    Memory,
    /// In Postgres, shared by all API processes
    Postgres,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            public_url: None,
            cors_origins: Vec::new(),
            auth_failure_limit: 60,
            trusted_proxies: Vec::new(),
            rate_limit_store: RateLimitStore::default(),
            short_link_url: None,
            response_cache_bytes: 64 << 20,
            rollup_cache_bytes: 128 << 20,
            analytics_concurrency: 16,
            refresh_floor: TimeDelta::hours(1),
            media_dir: None,
        }
    }
}

impl App {
    pub fn new(
        databases: Databases,
        search: SearchIndex,
        readable: ReadablePlatforms,
        settings: Settings,
    ) -> Self {
        let Databases { pg, clickhouse, clock } = databases;
        let rollups = RollupCache::new(settings.rollup_cache_bytes);
        let history = HistoryReader::new(&clickhouse, settings.analytics_concurrency, rollups);
        let responses = ResponseCache::new(settings.response_cache_bytes);
        App {
            pg,
            schema: SchemaCheck::default(),
            history,
            clock,
            search,
            responses,
            exports: OpenExports::default(),
            batches: BatchQueue::default(),
            media: settings.media_dir.clone().map(MediaReader::new),
            readable,
            sources: Arc::default(),
            settings: Arc::new(settings),
            in_flight: InFlightRequests::default(),
        }
    }
}

/// How many exports of an organization a process sends at a time: each holds a batch of rows in memory.
const MAX_EXPORTS_PER_ORGANIZATION: usize = 4;

/// The exports that are being sent, by organization. Cheap to clone.
#[derive(Clone, Default)]
pub struct OpenExports(Arc<Mutex<HashMap<Uuid, usize>>>);

/// Counts one export until it is dropped.
pub struct ExportGuard(OpenExports, Uuid);

impl OpenExports {
    /// Counts an export, unless the organization has too many.
    pub fn begin(&self, organization: Uuid) -> Option<ExportGuard> {
        let mut open = self.lock();
        let count = open.entry(organization).or_default();
        if *count == MAX_EXPORTS_PER_ORGANIZATION {
            return None;
        }
        *count += 1;
        Some(ExportGuard(self.clone(), organization))
    }

    /// The number of exports of all organizations.
    pub fn count(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ExportGuard {
    fn drop(&mut self) {
        let mut open = self.0.lock();
        if let Some(count) = open.get_mut(&self.1) {
            *count -= 1;
        }
        open.retain(|_, count| *count > 0);
    }
}

/// How long a batch waits for those before it; a request has five seconds in all.
const MAX_BATCH_WAIT: Duration = Duration::from_secs(3);

/// Batches that write, one of each organization at a time. They would wait for the same locks: here they wait without a
/// connection, which other organizations need. Cheap to clone.
#[derive(Clone, Default)]
pub struct BatchQueue(Arc<Mutex<HashMap<Uuid, Arc<tokio::sync::Mutex<()>>>>>);

impl BatchQueue {
    /// Waits for the organization's batches before this one; None if they take too long.
    pub async fn wait(&self, organization: Uuid) -> Option<OwnedMutexGuard<()>> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(organization).or_default())
        };
        tokio::time::timeout(MAX_BATCH_WAIT, turn.lock_owned()).await.ok()
    }
}

/// Connections to Postgres and ClickHouse, and the clock. Cheap to clone.
#[derive(Clone)]
pub struct Databases {
    pub pg: PgPool,
    pub clickhouse: clickhouse::Client,
    pub clock: Clock,
}

impl Databases {
    /// Creates the connection pools without connecting, so a database that is down is no error here.
    pub fn connect(args: &StoreArgs) -> Result<Self, ConnectError> {
        Databases::with_pool(pool::connect(&args.postgres)?, args)
    }

    /// Like [`Databases::connect`], with a pool whose connections are bounded by the request timeout.
    pub fn connect_for_requests(args: &StoreArgs) -> Result<Self, ConnectError> {
        Databases::with_pool(pool::connect_for_requests(&args.postgres)?, args)
    }

    fn with_pool(pg: PgPool, args: &StoreArgs) -> Result<Self, ConnectError> {
        let clickhouse = client::connect(&args.clickhouse);
        let clock = args.clock_url.clone().map_or(Ok(Clock::system()), Clock::remote)?;
        Ok(Databases { pg, clickhouse, clock })
    }
}

/// An invalid connection setting.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Database(#[from] DatabaseUrlError),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error("cannot create an HTTP client: {0}")]
    Http(#[from] reqwest::Error),
}

/// The service clock, used by tracking and analytics: the machine's, or a sandbox's, which tests can move.
#[derive(Clone, Default)]
pub struct Clock {
    remote: Option<Arc<RemoteClock>>,
    /// How far the machine's clock is wrong, in tests.
    error_seconds: Arc<AtomicI64>,
}

struct RemoteClock {
    url: String,
    client: reqwest::Client,
    /// Difference to the machine's clock at the last response.
    last_offset: Mutex<Option<TimeDelta>>,
    is_down: AtomicBool,
}

impl Clock {
    pub fn system() -> Self {
        Clock::default()
    }

    /// Makes the machine's clock wrong for this clock and its clones, in tests.
    pub fn set_error(&self, error: TimeDelta) {
        self.error_seconds.store(error.num_seconds(), Ordering::Relaxed);
    }

    /// Reads the time from a sandbox. It is on this machine or its network, so proxy variables are ignored.
    pub fn remote(url: String) -> Result<Self, ConnectError> {
        let client = tls::client_builder()?.no_proxy().build()?;
        let remote =
            RemoteClock { url, client, last_offset: Mutex::default(), is_down: AtomicBool::default() };
        Ok(Clock { remote: Some(Arc::new(remote)), ..Clock::default() })
    }

    pub const fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// Returns the time truncated to microseconds, the precision of both databases: Postgres would round a finer one,
    /// ClickHouse truncates it. While a remote clock is down its last offset applies; its first response is awaited.
    pub async fn now(&self) -> DateTime<Utc> {
        let Some(remote) = &self.remote else { return self.machine_time().trunc_subsecs(6) };
        loop {
            match remote.fetch_or_extrapolate().await {
                Some(now) => return now.trunc_subsecs(6),
                None => tokio::time::sleep(CLOCK_RETRY_INTERVAL).await,
            }
        }
    }

    /// Reads the machine's clock, to compare it with Postgres'. In a sandbox the service clock differs from both.
    pub fn read_machine(&self) -> ClockReading {
        ClockReading::new(self.machine_time())
    }

    fn machine_time(&self) -> DateTime<Utc> {
        Utc::now() + TimeDelta::seconds(self.error_seconds.load(Ordering::Relaxed))
    }
}

const CLOCK_TIMEOUT: Duration = Duration::from_secs(1);
const CLOCK_RETRY_INTERVAL: Duration = Duration::from_millis(200);

impl RemoteClock {
    /// Returns the time of the clock or, while that is down, of its last offset.
    async fn fetch_or_extrapolate(&self) -> Option<DateTime<Utc>> {
        match self.fetch_time().await {
            Ok(now) => {
                if self.is_down.swap(false, Ordering::Relaxed) {
                    tracing::info!(url = self.url, "the sandbox clock responds again");
                }
                *self.last_offset() = Some(now - Utc::now());
                Some(now)
            }
            Err(error) => {
                if !self.is_down.swap(true, Ordering::Relaxed) {
                    tracing::warn!(%error, url = self.url, "the sandbox clock does not respond");
                }
                self.last_offset().map(|offset| Utc::now() + offset)
            }
        }
    }

    fn last_offset(&self) -> MutexGuard<'_, Option<TimeDelta>> {
        self.last_offset.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch_time(&self) -> Result<DateTime<Utc>, reqwest::Error> {
        #[derive(serde::Deserialize)]
        struct Time {
            now: DateTime<Utc>,
        }
        let request = self.client.get(&self.url).timeout(CLOCK_TIMEOUT);
        Ok(request.send().await?.error_for_status()?.json::<Time>().await?.now)
    }
}
