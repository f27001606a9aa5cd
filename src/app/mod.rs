//! Shared application state: the connected databases, the clock, and for requests the API's settings.

mod batch_queue;
mod clock;
mod event_streams;
mod in_flight_keys;
mod open_transfers;
mod upload_folder;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chrono::TimeDelta;
use ipnet::IpNet;
use sqlx::PgPool;
use url::Url;
use uuid::Uuid;

pub use batch_queue::BatchQueue;
pub use clock::Clock;
pub use event_streams::{EventStream, EventStreams, Feed, Following, MIN_CHANGE_INTERVAL, StreamedEvent};
pub use in_flight_keys::{InFlightKey, InFlightKeys};
pub use open_transfers::{OpenTransfers, TransferGuard};
pub use upload_folder::{IncomingFile, ReceiveError, UploadFolder, UploadLimits};

use crate::config::StoreArgs;
use crate::media::MediaReader;
use crate::model::network::AllowedHosts;
use crate::model::readable::{KnownSource, ReadablePlatforms};
use crate::response_cache::{CachedResponse, ResponseCache, VersionedCache};
use crate::shutdown::InFlightRequests;
use crate::store::analytics::HistoryReader;
use crate::store::analytics::collections::Member;
use crate::store::analytics::rollup_cache::RollupCache;
use crate::store::clickhouse::client;
use crate::store::fair_limiter::FairLimiter;
use crate::store::migrate::SchemaCheck;
use crate::store::postgres::pool::{self, DatabaseUrlError};
use crate::store::search::SearchIndex;
use crate::store::{self, Write};
use crate::telemetry::labels::POSTGRES_POOL;
use crate::tls;

/// The state that API handlers share. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub pg: PgPool,
    /// Permits to read records; each allows the use of one connection.
    pub reads: FairLimiter,
    /// Permits to write records; each allows the use of one connection.
    pub writes: FairLimiter,
    /// Whether Postgres rejected a write, and was not found to accept writes since.
    pub rejects_writes: Arc<AtomicBool>,
    /// Whether Postgres has the migrations of this version.
    pub schema: SchemaCheck,
    pub history: HistoryReader,
    pub clock: Clock,
    pub search: SearchIndex,
    pub responses: ResponseCache,
    /// Posts of collections.
    pub members: VersionedCache<Vec<Member>>,
    pub exports: OpenTransfers,
    /// The files of imports, if the process takes any.
    pub uploads: Option<UploadFolder>,
    /// Files that are being received.
    pub incoming: OpenTransfers,
    pub event_streams: EventStreams,
    pub batches: BatchQueue,
    pub idempotency_keys: InFlightKeys,
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
    /// Hosts of webhooks that may have private addresses and http.
    pub webhook_allowed_hosts: AllowedHosts,
    /// Memory of responses that clients have not read.
    pub max_unread_bytes: usize,
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
            webhook_allowed_hosts: AllowedHosts::default(),
            max_unread_bytes: 64 << 20,
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
        let responses = ResponseCache::new(settings.response_cache_bytes, CachedResponse::bytes);
        let members = VersionedCache::new(settings.response_cache_bytes / 2, |members: &Vec<Member>| {
            size_of_val(members.as_slice())
        });
        App {
            reads: FairLimiter::new(read_permits(&pg), POSTGRES_POOL),
            writes: FairLimiter::new(max_connections(&pg), POSTGRES_POOL),
            pg,
            rejects_writes: Arc::default(),
            schema: SchemaCheck::default(),
            history,
            clock,
            search,
            responses,
            members,
            exports: OpenTransfers::default(),
            uploads: None,
            incoming: OpenTransfers::default(),
            event_streams: EventStreams::default(),
            batches: BatchQueue::default(),
            idempotency_keys: InFlightKeys::default(),
            media: settings.media_dir.clone().map(MediaReader::new),
            readable,
            sources: Arc::default(),
            settings: Arc::new(settings),
            in_flight: InFlightRequests::default(),
        }
    }

    /// Begins a write of an organization, which may use half of the connections for that.
    pub async fn begin_write(&self, organization: Uuid) -> Result<Write, store::Error> {
        let permit = self.writes.acquire(organization).await?;
        Write::begin_with_permit(&self.pg, permit, organization).await
    }
}

fn max_connections(pg: &PgPool) -> usize {
    pg.options().get_max_connections() as usize
}

/// The connections that reads may use at a time: a quarter is left to writes and authentication.
fn read_permits(pg: &PgPool) -> usize {
    let connections = max_connections(pg);
    connections - connections.div_ceil(4)
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
