//! The API process: options, listener, readiness and shutdown.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use ipnet::IpNet;
use salvo::Service;
use salvo::conn::tcp::TcpAcceptor;
use salvo::server::ServerHandle;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::{App, ConnectError, Databases, RateLimitStore, Settings, UploadFolder, UploadLimits};
use crate::config::{MediaArgs, SearchArgs, StoreArgs, WebhookArgs};
use crate::http::connections::{self, ConnectionLimits};
use crate::model::network::{InvalidNetwork, parse_network};
use crate::platforms::{ConfigError, RequestBudget, SourceArgs, Sources};
use crate::shutdown::{ShutdownArgs, ShutdownSignal};
use crate::store::clickhouse::client;
use crate::store::postgres::{notifications, pool};
use crate::store::search::SearchIndex;
use crate::store::{health, migrate};
use crate::telemetry::{MetricsArgs, probes};
use crate::worker::uploads::{self, DEFAULT_MAX_UPLOAD_BYTES};
use crate::worker::{event_reader, gauges, indexer, pictures, rollup_follower};
use crate::{api, http, store};

const LISTEN_BACKLOG: u32 = 4096;
/// After this time the process is ready even without a search index: lists and analytics work.
const INDEX_BUILD_TIMEOUT: Duration = Duration::from_secs(120);

/// `tidemark serve`
#[derive(Debug, Clone, clap::Args)]
pub struct ServeArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, env = "TIDEMARK_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// Base URL of the API as clients see it, for links; default: the address of each request
    #[arg(long, env = "TIDEMARK_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub public_url: Option<String>,
    /// Allowed CORS origins, comma-separated; * allows all
    #[arg(
        long,
        env = "TIDEMARK_CORS_ORIGINS",
        default_value = "",
        hide_default_value = true,
        value_name = "LIST"
    )]
    pub cors_origins: String,
    /// Unknown API keys per minute that one IPv4 address or IPv6 /64 may try
    #[arg(long, env = "TIDEMARK_AUTH_FAILURE_LIMIT", default_value_t = Settings::default().auth_failure_limit,
          value_name = "N")]
    pub auth_failure_limit: u32,
    /// Where rate limits are counted; several API processes share one count in Postgres
    #[arg(long, env = "TIDEMARK_RATE_LIMIT_STORE", value_enum, default_value_t, value_name = "STORE")]
    pub rate_limit_store: RateLimitStore,
    /// Proxies whose Forwarded headers are trusted: addresses or CIDR ranges, comma-separated
    #[arg(long, env = "TIDEMARK_TRUSTED_PROXIES", value_name = "ADDRS", value_parser = parse_networks)]
    pub trusted_proxies: Option<Networks>,
    /// Client connections; near the limit, the longest idle are closed
    #[arg(long, env = "TIDEMARK_MAX_CONNECTIONS", default_value_t = ConnectionLimits::default().max_connections as u64, value_name = "N",
          value_parser = clap::value_parser!(u64).range(ConnectionLimits::CONNECTIONS))]
    pub max_connections: u64,
    /// Seconds without a request, a complete request head or a read by the client before a connection is closed
    #[arg(long, env = "TIDEMARK_IDLE_TIMEOUT_SECONDS", default_value_t = ConnectionLimits::default().idle_timeout.as_secs(),
          value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(ConnectionLimits::IDLE_TIMEOUT_SECONDS))]
    pub idle_timeout_seconds: u64,
    /// Bytes of a file that is imported over HTTP; such files are in the folder of the search index until they are loaded
    #[arg(long, env = "TIDEMARK_IMPORT_MAX_BYTES", default_value_t = DEFAULT_MAX_UPLOAD_BYTES, value_name = "BYTES")]
    pub import_max_bytes: u64,
    /// Memory for cached analytics responses in bytes; 0 disables the cache
    #[arg(long = "answer-cache", env = "TIDEMARK_ANSWER_CACHE", default_value_t = Settings::default().response_cache_bytes,
          value_name = "BYTES")]
    pub response_cache_bytes: u64,
    /// Memory for rollups of recently used organizations in bytes, some 40 for each account and day; 0 disables it
    #[arg(long = "rollup-cache", env = "TIDEMARK_ROLLUP_CACHE", default_value_t = Settings::default().rollup_cache_bytes,
          value_name = "BYTES")]
    pub rollup_cache_bytes: u64,
    /// Concurrent analytics queries; one organization gets at most half
    #[arg(long, env = "TIDEMARK_ANALYTICS_CONCURRENCY", default_value_t = Settings::default().analytics_concurrency,
          value_name = "N")]
    pub analytics_concurrency: usize,
    /// Seconds after a successful scrape in which a refresh is refused
    #[arg(long, env = "TIDEMARK_REFRESH_FLOOR_SECONDS", default_value_t = Settings::default().refresh_floor.num_seconds(),
          value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(0..=2_592_000))]
    pub refresh_floor_seconds: i64,
    #[command(flatten)]
    pub media: MediaArgs,
    #[command(flatten)]
    pub webhooks: WebhookArgs,
    #[command(flatten)]
    pub stores: StoreArgs,
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub sources: SourceArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    #[command(flatten)]
    pub shutdown: ShutdownArgs,
    /// Seconds after a stop signal in which /readyz fails but requests are accepted, so that load balancers notice
    #[arg(long, env = "TIDEMARK_DRAIN_SECONDS", default_value_t = 0, value_name = "SECONDS", help_heading = "Shutdown",
          value_parser = clap::value_parser!(u64).range(..=600))]
    pub drain_seconds: u64,
}

/// Address ranges, given as one comma-separated value.
pub type Networks = Box<[IpNet]>;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {reason}; choose another address with --listen or TIDEMARK_LISTEN")]
    Listen { address: SocketAddr, reason: io::Error },
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Database(#[from] pool::DatabaseUrlError),
    #[error(transparent)]
    Schema(#[from] migrate::Error),
    #[error(transparent)]
    Sources(#[from] ConfigError),
    #[error("cannot open the search index in {folder}: {reason}; choose another folder with --search-index")]
    Search { folder: String, reason: store::Error },
    #[error("cannot run: {0}")]
    Io(#[from] io::Error),
}

/// Parses an origin, with or without `/v2`. Container tools pass an empty value for none.
fn parse_public_url(text: &str) -> Result<String, String> {
    let text = text.trim().trim_end_matches('/');
    if text.is_empty() {
        return Ok(String::new());
    }
    let url = url::Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("expected an http or https URL".to_owned());
    }
    Ok(text.strip_suffix("/v2").unwrap_or(text).to_owned())
}

fn parse_networks(text: &str) -> Result<Networks, InvalidNetwork> {
    split_list(text).map(parse_network).collect()
}

fn split_list(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

impl ServeArgs {
    fn settings(&self) -> Result<Settings, ConfigError> {
        Ok(Settings {
            public_url: self.public_url.clone().filter(|url| !url.is_empty()),
            cors_origins: split_list(&self.cors_origins).map(str::to_owned).collect(),
            auth_failure_limit: self.auth_failure_limit,
            trusted_proxies: self.trusted_proxies.iter().flatten().copied().collect(),
            rate_limit_store: self.rate_limit_store,
            short_link_url: self.sources.short_link_url()?,
            response_cache_bytes: self.response_cache_bytes,
            rollup_cache_bytes: self.rollup_cache_bytes,
            analytics_concurrency: self.analytics_concurrency,
            refresh_floor: TimeDelta::seconds(self.refresh_floor_seconds),
            media_dir: self.media.folder(),
            webhook_allowed_hosts: self.webhooks.webhook_allowed_hosts.clone(),
            ..Settings::default()
        })
    }

    /// The connection limits, reduced to what the open file limit allows.
    fn connection_limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            max_connections: connections::raise_file_limit(self.max_connections as usize),
            idle_timeout: Duration::from_secs(self.idle_timeout_seconds),
        }
    }
}

/// The complete API.
pub fn service(app: &App) -> Service {
    http::service(api::routes(), api::DeprecationHeaders, app)
}

/// Serves until a stop signal. Prints its URL as one line of JSON when it listens.
pub async fn serve(args: ServeArgs) -> Result<(), ServeError> {
    let databases = Databases::connect_for_requests(&args.stores)?;
    let indexer_databases =
        Databases { pg: pool::connect_for_search_follower(&args.stores.postgres)?, ..databases.clone() };
    let budget = RequestBudget::Postgres(databases.pg.clone());
    let sources = Sources::from_args(&args.sources, &budget)?;
    let schema = migrate::SchemaCheck::at_start(&databases.pg, &databases.clickhouse).await?;
    if schema.has_passed() {
        pool::open_connections(&databases.pg).await;
    }
    let listener = listen(args.listen)?;
    let limits = args.connection_limits();
    let search = open_search(args.search.search_index.clone()).await?;
    let app = App::new(databases.clone(), search.clone(), sources.readable(), args.settings()?);
    let uploads = open_uploads(&args).await;
    let app = App { schema: schema.clone(), sources: sources.known().into(), uploads, ..app };
    let address = listener.local_addr()?;
    let acceptor = TcpAcceptor::try_from(listener)?;
    let server = connections::build_server(acceptor, limits);
    let handle = server.handle();
    let stop = CancellationToken::new();
    let (history, streams) = (app.history.clone(), app.event_streams.clone());
    let notified = pool::connect_for_notifications(&args.stores.postgres)?;
    tokio::spawn(notifications::listen(notified, stop.clone()));
    tokio::spawn(gauges::run_for_api(databases, history, search.clone(), streams, stop.clone()));
    tokio::spawn(rollup_follower::run(app.pg.clone(), app.history.clone(), stop.clone()));
    tokio::spawn(event_reader::run(app.pg.clone(), app.event_streams.clone(), stop.clone()));
    if let Some(media) = app.media.clone() {
        tokio::spawn(pictures::run_for_api(app.pg.clone(), media, stop.clone()));
    }
    let importer = start_importer(&app, &args, &stop)?;
    let stopping = stop.clone();
    let indexer = tokio::spawn(async move {
        if schema.wait(&indexer_databases.pg, &stopping).await {
            indexer::run(indexer_databases, search, stopping).await;
        }
    });
    let drain = Duration::from_secs(args.drain_seconds);
    let shutdown = shut_down(app.clone(), handle, drain, args.shutdown.grace());
    tokio::spawn(ShutdownSignal::listen()?.run_on_signal(shutdown));
    let (state, started) = (app.clone(), Instant::now());
    probes::set_readiness_check(move || check_readiness(state.clone(), started));
    tracing::info!(%address, "listening");
    writeln!(io::stdout(), "{}", json!({ "event": "ready", "url": format!("http://{address}/v2") }))?;
    io::stdout().flush()?;
    server.serve(service(&app)).await;
    stop.cancel();
    if indexer.await.is_err() {
        tracing::warn!("the search indexer panicked");
    }
    if importer.await.is_err() {
        tracing::warn!("the importer panicked");
    }
    Ok(())
}

/// Opens the folder of uploads. Without one, the process takes no files.
async fn open_uploads(args: &ServeArgs) -> Option<UploadFolder> {
    let path = args.search.search_index.join("uploads");
    let limits = UploadLimits::new(args.import_max_bytes);
    let opened = tokio::task::spawn_blocking(move || UploadFolder::open(path, limits)).await;
    match opened.map_err(io::Error::other).flatten() {
        Ok(folder) => {
            // Imports spill there, too: the system's folder may be in memory. Fails if the process has chosen one before.
            let _ = tempfile::env::override_temp_dir(folder.path());
            Some(folder)
        }
        Err(error) => {
            tracing::error!(%error, "cannot use the folder of uploads: imports over HTTP are unavailable");
            None
        }
    }
}

/// Starts to load uploaded files, once the schema is that of this version.
fn start_importer(
    app: &App,
    args: &ServeArgs,
    stop: &CancellationToken,
) -> Result<JoinHandle<()>, ServeError> {
    let pg = pool::connect_for_imports(&args.stores.postgres)?;
    let clickhouse = client::connect(&args.stores.clickhouse);
    let databases = Databases { pg, clickhouse, clock: app.clock.clone() };
    let (schema, folder, stop) = (app.schema.clone(), app.uploads.clone(), stop.clone());
    Ok(tokio::spawn(async move {
        if let Some(folder) = folder
            && schema.wait(&databases.pg, &stop).await
        {
            uploads::run(databases, folder, stop).await;
        }
    }))
}

/// Fails readiness for `drain`, then rejects new requests and ends streams, and stops the listener when in-flight requests have
/// finished or after `grace`.
async fn shut_down(app: App, handle: ServerHandle, drain: Duration, grace: Duration) {
    let in_flight = app.in_flight;
    in_flight.drain();
    if !drain.is_zero() {
        tracing::info!(seconds = drain.as_secs(), "draining: not ready, still accepting requests");
        tokio::time::sleep(drain).await;
    }
    tracing::info!("stopping: finishing in-flight requests, rejecting new ones");
    in_flight.close();
    app.event_streams.close();
    let started = Instant::now();
    if tokio::time::timeout(grace, in_flight.wait_until_idle()).await.is_err() {
        tracing::warn!("requests were still in flight at shutdown");
    }
    // The last responses may not be sent yet.
    handle.stop_graceful(grace.saturating_sub(started.elapsed()));
}

/// Fails with the reason why the process should get no requests.
async fn check_readiness(app: App, started: Instant) -> Result<(), String> {
    if app.in_flight.is_draining() {
        return Err("the process is stopping".to_owned());
    }
    health::check_postgres_with_timeout(&app.pg, &app.schema).await?;
    if app.search.lag().is_none() && started.elapsed() < INDEX_BUILD_TIMEOUT {
        return Err("the search index is being built".to_owned());
    }
    Ok(())
}

async fn open_search(folder: PathBuf) -> Result<SearchIndex, ServeError> {
    let name = folder.display().to_string();
    let opened =
        tokio::task::spawn_blocking(move || SearchIndex::open(&folder)).await.map_err(io::Error::other)?;
    opened.map_err(|reason| ServeError::Search { folder: name, reason })
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // The previous process may have just released the address.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(LISTEN_BACKLOG)
    };
    listen().map_err(|reason| ServeError::Listen { address, reason })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Options {
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn parse(options: &[&str]) -> Result<ServeArgs, clap::Error> {
        let fixed = ["serve", "--database-url", "postgres://localhost/x"];
        Options::try_parse_from(fixed.iter().chain(options)).map(|options| options.serve)
    }

    #[test]
    fn empty_options_count_as_unset() {
        let args =
            parse(&["--public-url", "https://api.example/v2/", "--cors-origins", "https://a, *,"]).unwrap();
        let settings = args.settings().unwrap();
        assert_eq!(settings.public_url.as_deref(), Some("https://api.example"));
        assert_eq!(settings.cors_origins, ["https://a", "*"]);
        let unset = parse(&["--public-url", "", "--cors-origins", "", "--trusted-proxies", ""])
            .unwrap()
            .settings()
            .unwrap();
        assert_eq!((unset.public_url, unset.cors_origins.len()), (None, 0));
        assert!(unset.trusted_proxies.is_empty());
        let proxies =
            parse(&["--trusted-proxies", "10.0.0.0/8, ::1"]).unwrap().settings().unwrap().trusted_proxies;
        assert_eq!(proxies.len(), 2);
        for wrong in [
            ["--public-url", "ftp://x"],
            ["--public-url", "x"],
            ["--trusted-proxies", "10.0.0.0/40"],
            ["--max-connections", "1"],
            ["--idle-timeout-seconds", "5"],
        ] {
            assert!(parse(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn address_in_use_is_one_sentence() {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        let error = listen(address).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot listen on {address}: ")) && error.contains("--listen"),
            "{error}"
        );
    }
}
