//! The API as a process: its options, its listener, and its end.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use salvo::conn::tcp::TcpAcceptor;
use salvo::{Server, Service};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use crate::app::{App, Settings, Stores};
use crate::config::{SearchArgs, StoreArgs};
use crate::model::network::Network;
use crate::model::platform::{Platform, Readable};
use crate::{api, http};

/// How long requests may take to end once the process is told to.
const FAREWELL: Duration = Duration::from_secs(20);

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
    #[arg(long, env = "TIDEMARK_CORS_ORIGINS", value_delimiter = ',', value_name = "ORIGINS")]
    pub cors_origins: Vec<String>,
    /// Unknown API keys that one address may try in a minute
    #[arg(long, env = "TIDEMARK_AUTH_FAILURE_LIMIT", default_value_t = 60, value_name = "N")]
    pub auth_failure_limit: u32,
    /// Proxies whose word about the client's address is taken, separated by commas: addresses or ranges
    #[arg(long, env = "TIDEMARK_TRUSTED_PROXIES", value_delimiter = ',', value_name = "ADDRS")]
    pub trusted_proxies: Vec<Network>,
    #[command(flatten)]
    pub stores: StoreArgs,
    #[command(flatten)]
    pub search: SearchArgs,
}

/// Why the API does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {address}: {reason}; choose another address with --listen or TIDEMARK_LISTEN")]
    Listen { address: SocketAddr, reason: io::Error },
    #[error("cannot use the database URL: {0}")]
    Database(#[from] sqlx::Error),
    #[error("cannot run: {0}")]
    Io(#[from] io::Error),
}

/// Takes an origin, with or without the version segment that the paths have anyway.
fn public_url(text: &str) -> Result<String, String> {
    let url = url::Url::parse(text).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("expected an http or https URL".to_owned());
    }
    let text = text.trim_end_matches('/');
    Ok(text.strip_suffix("/v2").unwrap_or(text).to_owned())
}

impl ServeArgs {
    fn settings(&self) -> Settings {
        Settings {
            public_url: self.public_url.clone(),
            cors_origins: self.cors_origins.iter().map(|origin| origin.trim().to_owned()).collect(),
            auth_failure_limit: self.auth_failure_limit,
            trusted_proxies: self.trusted_proxies.clone(),
        }
    }
}

/// The whole API over connected stores.
pub fn service(app: &App) -> Service {
    http::service(api::routes(), app)
}

/// Serves until the process is told to stop. Prints where, as one line of JSON, once it listens.
pub async fn serve(args: ServeArgs) -> Result<(), ServeError> {
    let stores = Stores::connect(&args.stores)?;
    let app = App::new(stores, Readable::new(Platform::ALL), args.settings());
    let listener = listen(args.listen)?;
    let address = listener.local_addr()?;
    let acceptor = TcpAcceptor::try_from(tokio::net::TcpListener::from_std(listener)?)?;
    let server = Server::new(acceptor);
    let handle = server.handle();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: no new connections, open requests end");
        handle.stop_graceful(FAREWELL);
    });
    tracing::info!(%address, "listening");
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{}", json!({ "event": "ready", "url": format!("http://{address}/v2") }))?;
    stdout.flush()?;
    drop(stdout);
    server.serve(service(&app)).await;
    Ok(())
}

fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let failed = |reason| ServeError::Listen { address, reason };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}
