//! The API as a process: its options, its listener, and its end.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use salvo::Service;
use salvo::conn::tcp::TcpAcceptor;
use salvo::server::ServerHandle;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use crate::app::{
    ANALYTICS_CONCURRENCY, App, ConnectError, Databases, RESPONSE_CACHE_BYTES, RateLimitStore, Settings,
};
use crate::config::{SearchArgs, StoreArgs};
use crate::http::connections::{self, Limits};
use crate::model::network::{BadNetwork, Network};
use crate::platforms::{ConfigError, RequestBudget, SourceArgs, Sources};
use crate::running::{Running, StopArgs, StopRequest};
use crate::store::postgres::pool;
use crate::store::search::SearchIndex;
use crate::store::{health, migrate};
use crate::telemetry::{MetricsArgs, probes};
use crate::worker::{gauges, indexer};
use crate::{api, http, store};

/// Connections that may wait to be let in.
const WAITING: u32 = 4096;
/// How long a process waits for its first index before it is ready without: lists and analytics work meanwhile.
const INDEXING: Duration = Duration::from_secs(120);

/// `tidemark serve`: answers the API.
#[derive(Debug, Clone, clap::Args)]
pub struct ServeArgs {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, env = "TIDEMARK_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR")]
    pub listen: SocketAddr,
    /// The service's own address as clients see it, for links; without it, the address of each request
    #[arg(long, env = "TIDEMARK_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<String>,
    /// Origins whose web pages may read answers, separated by commas; * for all
    #[arg(
        long,
        env = "TIDEMARK_CORS_ORIGINS",
        default_value = "",
        hide_default_value = true,
        value_name = "LIST"
    )]
    pub cors_origins: String,
    /// Unknown API keys that one address, or one /64 of IPv6, may try in a minute
    #[arg(long, env = "TIDEMARK_AUTH_FAILURE_LIMIT", default_value_t = 60, value_name = "N")]
    pub auth_failure_limit: u32,
    /// Where requests are counted against a key's limit: several API processes share one count in Postgres
    #[arg(long, env = "TIDEMARK_RATE_LIMIT_STORE", value_enum, default_value_t, value_name = "STORE")]
    pub rate_limit_store: RateLimitStore,
    /// Proxies whose word about the client's address is taken, separated by commas: addresses or ranges
    #[arg(long, env = "TIDEMARK_TRUSTED_PROXIES", value_name = "ADDRS", value_parser = networks)]
    pub trusted_proxies: Option<Networks>,
    /// Connections of clients at a time; the quietest end before the last place is taken
    #[arg(long, env = "TIDEMARK_MAX_CONNECTIONS", default_value_t = Limits::default().most as u64, value_name = "N",
          value_parser = clap::value_parser!(u64).range(Limits::MOST))]
    pub max_connections: u64,
    /// How long a connection may go without a request, without a whole head of one, or without its client reading
    #[arg(long, env = "TIDEMARK_IDLE_TIMEOUT_SECONDS", default_value_t = Limits::default().quiet.as_secs(),
          value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(Limits::QUIET_SECONDS))]
    pub idle_timeout_seconds: u64,
    /// Bytes that finished answers of analytics may take in memory; 0 keeps none
    #[arg(long, env = "TIDEMARK_ANSWER_CACHE", default_value_t = RESPONSE_CACHE_BYTES, value_name = "BYTES")]
    pub answer_cache: u64,
    /// Questions of analytics that this process asks of ClickHouse at a time; an organization has half of them at most
    #[arg(long, env = "TIDEMARK_ANALYTICS_CONCURRENCY", default_value_t = ANALYTICS_CONCURRENCY, value_name = "N")]
    pub analytics_concurrency: usize,
    #[command(flatten)]
    pub stores: StoreArgs,
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub sources: SourceArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    #[command(flatten)]
    pub stop: StopArgs,
    /// Seconds, once the process is asked to stop, in which requests are still taken while /readyz says no, so that a balancer notices
    #[arg(long, env = "TIDEMARK_DRAIN_SECONDS", default_value_t = 0, value_name = "SECONDS", help_heading = "Shutdown",
          value_parser = clap::value_parser!(u64).range(..=600))]
    pub drain_seconds: u64,
}

/// Several ranges of addresses, given as one value.
pub type Networks = Box<[Network]>;

/// Why the API does not run.
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

/// Takes an origin, with or without the version segment that the paths have anyway.
///
/// An empty value counts as none, as container tools pass it.
fn public_url(text: &str) -> Result<String, String> {
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

fn networks(text: &str) -> Result<Networks, BadNetwork> {
    listed(text).map(str::parse).collect()
}

/// The entries of a list with commas.
fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}

impl ServeArgs {
    fn settings(&self) -> Result<Settings, ConfigError> {
        Ok(Settings {
            public_url: self.public_url.clone().filter(|url| !url.is_empty()),
            cors_origins: listed(&self.cors_origins).map(str::to_owned).collect(),
            auth_failure_limit: self.auth_failure_limit,
            trusted_proxies: self.trusted_proxies.iter().flatten().copied().collect(),
            rate_limit_store: self.rate_limit_store,
            short_link_url: self.sources.short_link_url()?,
            response_cache_bytes: self.answer_cache,
            analytics_concurrency: self.analytics_concurrency,
        })
    }

    /// What connections may take, as far as the process may open files for them.
    fn limits(&self) -> Limits {
        Limits {
            most: connections::places(self.max_connections as usize),
            quiet: Duration::from_secs(self.idle_timeout_seconds),
        }
    }
}

/// The whole API over connected stores.
pub fn service(app: &App) -> Service {
    http::service(api::routes(), app)
}

/// Serves until the process is told to stop. Prints where, as one line of JSON, once it listens.
pub async fn serve(args: ServeArgs) -> Result<(), ServeError> {
    let stores = Databases::for_requests(&args.stores)?;
    let following =
        Databases { pg: pool::connect_for_search_follower(&args.stores.postgres)?, ..stores.clone() };
    let budget = RequestBudget::Postgres(stores.pg.clone());
    let readable = Sources::from_args(&args.sources, &budget)?.readable();
    let schema = migrate::SchemaCheck::at_start(&stores.pg, &stores.clickhouse).await?;
    let listener = listen(args.listen)?;
    let limits = args.limits();
    let search = open_search(args.search.search_index.clone()).await?;
    let app = App::new(stores.clone(), search.clone(), readable, args.settings()?);
    let app = App { schema: schema.clone(), ..app };
    let address = listener.local_addr()?;
    let acceptor = TcpAcceptor::try_from(listener)?;
    let server = connections::server(acceptor, limits);
    let handle = server.handle();
    let stop = CancellationToken::new();
    tokio::spawn(gauges::run_for_api(stores, app.history.clone(), search.clone(), stop.clone()));
    let stopping = stop.clone();
    let follower = tokio::spawn(async move {
        if schema.wait(&following.pg, &stopping).await {
            indexer::run(following, search, stopping).await;
        }
    });
    let drain = Duration::from_secs(args.drain_seconds);
    let ending = end(app.running.clone(), handle, drain, args.stop.bound());
    tokio::spawn(StopRequest::listen()?.obey(ending));
    let (asked, began) = (app.clone(), Instant::now());
    probes::set_readiness_check(move || ready(asked.clone(), began));
    tracing::info!(%address, "listening");
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", json!({ "event": "ready", "url": format!("http://{address}/v2") }))?;
    stdout.flush()?;
    drop(stdout);
    server.serve(service(&app)).await;
    stop.cancel();
    if follower.await.is_err() {
        tracing::warn!("the follower of the search index did not end by itself");
    }
    Ok(())
}

/// Takes leave of who asks: readiness first, then everything new is refused, and once what is in hand is finished, or the
/// bound is reached, the listener goes.
async fn end(running: Running, handle: ServerHandle, drain: Duration, bound: Duration) {
    running.leave();
    if !drain.is_zero() {
        tracing::info!(seconds = drain.as_secs(), "stopping: requests are still taken, readiness says no");
        tokio::time::sleep(drain).await;
    }
    tracing::info!("stopping: new requests are refused, those in hand are finished");
    running.close();
    let began = Instant::now();
    if tokio::time::timeout(bound, running.finished()).await.is_err() {
        tracing::warn!("requests were still in hand at the end");
    }
    // What is finished may still be on its way to its client.
    handle.stop_graceful(bound.saturating_sub(began.elapsed()));
}

/// Why the process should get no requests now, if there is a reason.
async fn ready(app: App, began: Instant) -> Result<(), String> {
    if app.running.is_leaving() {
        return Err("the process is stopping".to_owned());
    }
    health::check_postgres_with_timeout(&app.pg, &app.schema).await?;
    if app.search.lag().is_none() && began.elapsed() < INDEXING {
        return Err("the search index is being built".to_owned());
    }
    Ok(())
}

/// Opens the index on a thread that may block.
async fn open_search(folder: PathBuf) -> Result<SearchIndex, ServeError> {
    let name = folder.display().to_string();
    let opened =
        tokio::task::spawn_blocking(move || SearchIndex::open(&folder)).await.map_err(io::Error::other)?;
    opened.map_err(|reason| ServeError::Search { folder: name, reason })
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listening = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // An address that a process before this one has just left can be used again.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(WAITING)
    };
    listening().map_err(|reason| ServeError::Listen { address, reason })
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
    fn options_are_read_and_empty_ones_count_as_none() {
        let args =
            parse(&["--public-url", "https://api.example/v2/", "--cors-origins", "https://a, *,"]).unwrap();
        let settings = args.settings().unwrap();
        assert_eq!(settings.public_url.as_deref(), Some("https://api.example"));
        assert_eq!(settings.cors_origins, ["https://a", "*"]);
        let args = parse(&["--public-url", "", "--cors-origins", "", "--trusted-proxies", ""]).unwrap();
        let settings = args.settings().unwrap();
        assert_eq!((settings.public_url, settings.cors_origins.len()), (None, 0));
        assert!(settings.trusted_proxies.is_empty());
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
    async fn an_address_in_use_is_told_in_one_sentence() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let told = listen(address).unwrap_err().to_string();
        assert!(
            told.starts_with(&format!("cannot listen on {address}: ")) && told.contains("--listen"),
            "{told}"
        );
    }
}
