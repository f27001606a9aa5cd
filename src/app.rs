//! What every request and every worker stands on: the connected stores and the clock; and for requests, how the
//! API is reached and what the sources can read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use sqlx::PgPool;
use url::Url;

use crate::response_cache::Answers;
use crate::config::StoreArgs;
use crate::model::network::Network;
use crate::model::platform::Readable;
use crate::running::Running;
use crate::store::analytics::HistoryReader;
use crate::store::clickhouse::client;
use crate::store::migrate::SchemaCheck;
use crate::store::postgres::pool::{self, DatabaseUrlError};
use crate::store::search::SearchIndex;
use crate::tls;

/// What the handlers of the API stand on. Cheap to clone.
#[derive(Clone)]
pub struct App {
    pub pg: PgPool,
    /// Whether Postgres has the tables of this version.
    pub schema: SchemaCheck,
    pub history: HistoryReader,
    pub clock: Clock,
    pub search: SearchIndex,
    pub answers: Answers,
    pub readable: Readable,
    pub settings: Arc<Settings>,
    /// What requests are in hand, and whether more are taken.
    pub running: Running,
}

/// How the API is reached, and by whom.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The service's own address, without a path; without one, the request's host is taken.
    pub public_url: Option<String>,
    /// Origins whose pages may read answers; `*` for all.
    pub cors_origins: Vec<String>,
    /// Unknown keys that one address may try in a clock minute.
    pub auth_failure_limit: u32,
    /// Proxies whose word about the client is taken.
    pub trusted_proxies: Vec<Network>,
    pub rate_limit_store: RateLimitStore,
    /// Who is asked about short links in the platform's place.
    pub short_link_url: Option<Url>,
    /// Bytes that finished answers may take; none are kept with 0.
    pub answer_cache: u64,
    /// Questions that this process asks of ClickHouse at a time.
    pub analytics_concurrency: usize,
}

/// Bytes that finished answers may take unless the operator says otherwise.
pub const ANSWER_CACHE: u64 = 64 << 20;
/// Questions that are asked of ClickHouse at a time unless the operator says otherwise.
pub const ANALYTICS_CONCURRENCY: usize = 16;

/// Where requests are counted against a key's limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum RateLimitStore {
    /// In each API process for itself
    #[default]
    Memory,
    /// In Postgres, for all API processes together
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
            answer_cache: ANSWER_CACHE,
            analytics_concurrency: ANALYTICS_CONCURRENCY,
        }
    }
}

impl App {
    pub fn new(stores: Stores, search: SearchIndex, readable: Readable, settings: Settings) -> Self {
        let Stores { pg, clickhouse, clock } = stores;
        let history = HistoryReader::new(&clickhouse, settings.analytics_concurrency);
        let answers = Answers::new(settings.answer_cache);
        let (settings, running) = (Arc::new(settings), Running::default());
        App {
            pg,
            schema: SchemaCheck::default(),
            history,
            clock,
            search,
            answers,
            readable,
            settings,
            running,
        }
    }
}

/// The stores of the service, connected. Cheap to clone.
#[derive(Clone)]
pub struct Stores {
    pub pg: PgPool,
    pub clickhouse: clickhouse::Client,
    pub clock: Clock,
}

impl Stores {
    /// Prepares the connections. Nothing is asked of the stores yet, so a store that is down is no error here.
    pub fn connect(args: &StoreArgs) -> Result<Self, ConnectError> {
        Stores::over(pool::connect(&args.postgres)?, args)
    }

    /// Prepares the connections so that no request keeps one for longer than its own time.
    pub fn for_requests(args: &StoreArgs) -> Result<Self, ConnectError> {
        Stores::over(pool::for_requests(&args.postgres)?, args)
    }

    fn over(pg: PgPool, args: &StoreArgs) -> Result<Self, ConnectError> {
        let clickhouse = client::connect(&args.clickhouse);
        let clock = args.clock_url.clone().map_or(Ok(Clock::of_machine()), Clock::of_sandbox)?;
        Ok(Stores { pg, clickhouse, clock })
    }
}

/// Why connections cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Database(#[from] DatabaseUrlError),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error("an HTTP client cannot be made: {0}")]
    Http(#[from] reqwest::Error),
}

/// The time of tracking and analytics: the machine's, or a sandbox's, which can be moved.
#[derive(Clone)]
pub struct Clock {
    remote: Option<Arc<RemoteClock>>,
}

struct RemoteClock {
    url: String,
    client: reqwest::Client,
    /// How far the sandbox's clock was ahead when it last answered.
    ahead: Mutex<Option<TimeDelta>>,
    silent: AtomicBool,
}

impl Clock {
    /// Takes the time from this machine.
    pub const fn of_machine() -> Self {
        Clock { remote: None }
    }

    /// Takes the time from a sandbox, which is on this machine or beside it, never behind the proxy that the environment may
    /// name.
    pub fn of_sandbox(url: String) -> Result<Self, ConnectError> {
        let client = tls::client()?.no_proxy().build()?;
        let remote = RemoteClock { url, client, ahead: Mutex::new(None), silent: AtomicBool::new(false) };
        Ok(Clock { remote: Some(Arc::new(remote)) })
    }

    /// Whether a sandbox says what time it is.
    pub const fn is_a_sandboxs(&self) -> bool {
        self.remote.is_some()
    }

    /// The time now, to the microsecond, which is what every store keeps: of a finer one, one store would round the rest and
    /// another cut it off. A sandbox that does not answer leaves the last known distance in force; before its first answer
    /// nobody knows the time, so that is waited for.
    pub async fn now(&self) -> DateTime<Utc> {
        let Some(remote) = &self.remote else { return Utc::now().trunc_subsecs(6) };
        loop {
            let known = match remote.ask().await {
                Ok(now) => remote.heard(now),
                Err(error) => remote.missed(&error),
            };
            match known {
                Some(ahead) => return (Utc::now() + ahead).trunc_subsecs(6),
                None => tokio::time::sleep(ASKED_AGAIN).await,
            }
        }
    }
}

/// How long to wait before a clock that never answered is asked again.
const ASKED_AGAIN: Duration = Duration::from_millis(200);

impl RemoteClock {
    fn heard(&self, now: DateTime<Utc>) -> Option<TimeDelta> {
        if self.silent.swap(false, Ordering::Relaxed) {
            tracing::info!(url = self.url, "the sandbox's clock answers again");
        }
        let ahead = Some(now - Utc::now());
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = ahead;
        ahead
    }

    fn missed(&self, error: &reqwest::Error) -> Option<TimeDelta> {
        if !self.silent.swap(true, Ordering::Relaxed) {
            tracing::warn!(%error, url = self.url, "the sandbox's clock does not answer");
        }
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self) -> Result<DateTime<Utc>, reqwest::Error> {
        #[derive(serde::Deserialize)]
        struct Answer {
            now: DateTime<Utc>,
        }
        let request = self.client.get(&self.url).timeout(Duration::from_secs(1));
        Ok(request.send().await?.error_for_status()?.json::<Answer>().await?.now)
    }
}
