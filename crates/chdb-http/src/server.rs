//! The server: opens the engine, accepts connections, and shuts down gracefully.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};

use crate::credentials::{Credentials, CredentialsError};
use crate::engine::{Engine, EngineError};
use crate::handler::Handler;
use crate::logins::{LoginAccess, LoginRights};
use crate::permits::{Permits, readonly_permits};
use crate::session::Sessions;

/// How long in-flight requests may take at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
const SESSION_EXPIRY_INTERVAL: Duration = Duration::from_secs(5);
/// Pause after a failed `accept`, as when the process is out of file descriptors.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, clap::Args)]
pub struct ServerOptions {
    /// Data directory; passwords are in its credentials.json
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Address to listen on; port 0 takes a free one, which the ready line names
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8123")]
    pub listen: SocketAddr,
    /// Path of libchdb.so; default: where the dynamic linker finds it
    #[arg(long, value_name = "PATH", env = "LIBCHDB")]
    pub libchdb: Option<PathBuf>,
    /// Memory limit in bytes; default: half of the machine's
    #[arg(long, value_name = "BYTES")]
    pub max_memory: Option<u64>,
    /// Concurrent statements; more wait for up to a minute. The read-only user has up to an eighth in addition
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=400))]
    pub max_queries: u16,
    /// Size limit of a request body in bytes, compressed and decompressed
    #[arg(long, value_name = "BYTES", default_value_t = 2 << 30)]
    pub max_body: usize,
    /// Allow a non-loopback address; passwords then cross the network unencrypted
    #[arg(long)]
    pub allow_remote: bool,
    /// Name of the user with all rights, when credentials.json is created
    #[arg(skip = "default")]
    pub user: String,
    /// Name of the user that only reads, when credentials.json is created
    #[arg(skip = "readonly")]
    pub readonly_user: String,
    /// What users of one tenant read; nothing: there are none
    #[arg(skip)]
    pub logins: Option<LoginRights>,
    /// `X-ClickHouse-Server-Display-Name`
    #[arg(skip = "chdb-http")]
    pub display_name: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error("cannot create the data directory {}: {}", .0.display(), .1)]
    DataDirectory(PathBuf, io::Error),
    #[error("the address {0} is in use by another process")]
    AddressInUse(SocketAddr),
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    #[error("{0} can be reached from other machines")]
    RemoteAddress(SocketAddr),
    #[error("the server cannot be set up: {0}")]
    Setup(io::Error),
    /// The engine cannot be closed: end the process without exit handlers.
    #[error("statements are still running after {} s", SHUTDOWN_GRACE.as_secs())]
    StatementsRunning,
}

/// An open engine with a listening socket.
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    handler: Arc<Handler>,
}

impl Server {
    /// Opens the engine and listens. Connections wait until [`serve`](Self::serve) runs.
    pub(crate) async fn open(options: ServerOptions) -> Result<Self, ServerError> {
        if !options.listen.ip().is_loopback() && !options.allow_remote {
            return Err(ServerError::RemoteAddress(options.listen));
        }
        let failed = |error| ServerError::DataDirectory(options.data.clone(), error);
        std::fs::create_dir_all(&options.data).map_err(failed)?;
        let data = options.data.canonicalize().map_err(failed)?;
        // Listen first: it fails faster than opening the engine.
        let listener = TcpListener::bind(options.listen).await.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => ServerError::AddressInUse(options.listen),
            _ => ServerError::Listen(options.listen, error),
        })?;
        let address = listener.local_addr().map_err(ServerError::Setup)?;
        let (engine_data, libchdb) = (data.clone(), options.libchdb);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let readonly_queries = readonly_permits(options.max_queries, cores);
        let logins = options.logins.map(LoginAccess::new).transpose()?;
        let open = move || {
            let memory = options.max_memory;
            Engine::open(libchdb.as_deref(), &engine_data, memory, readonly_queries, cores, logins)
        };
        let engine = spawn_blocking(open).await??;
        let credentials = Credentials::read_or_create(&data, &options.user, &options.readonly_user)?;
        let handler = Handler {
            engine: Arc::new(engine),
            credentials,
            sessions: Sessions::default(),
            permits: Permits::new(options.max_queries, readonly_queries),
            max_body: options.max_body,
            display_name: options.display_name,
        };
        Ok(Self { listener, address, handler: Arc::new(handler) })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves requests until `shutdown`, then waits for in-flight requests, cancels reads and closes the engine.
    pub(crate) async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), ServerError> {
        let Self { listener, handler, .. } = self;
        let connections = accept(listener, &handler, shutdown).await;
        let killing = Arc::clone(&handler.engine);
        let kill = spawn_blocking(move || killing.kill_reads());
        let drain = async { (kill.await, connections.shutdown().await) };
        if tokio::time::timeout(SHUTDOWN_GRACE, drain).await.is_err() {
            tracing::warn!("requests were still in flight at shutdown");
        }
        handler.sessions.clear();
        if tokio::time::timeout(SHUTDOWN_GRACE, handler.permits.wait_idle()).await.is_err() {
            return Err(ServerError::StatementsRunning);
        }
        let engine = Arc::clone(&handler.engine);
        spawn_blocking(move || engine.close()).await
    }
}

/// Accepts connections until `shutdown`; returns those that are open.
async fn accept(
    listener: TcpListener,
    handler: &Arc<Handler>,
    shutdown: impl Future<Output = ()>,
) -> GracefulShutdown {
    // Without pipeline_flush, which buffers a response that the client does not read.
    let mut server = http1::Builder::new();
    // The timer closes connections that send no complete head within 30 s.
    server.timer(TokioTimer::new());
    let connections = GracefulShutdown::new();
    let mut session_expiry = tokio::time::interval(SESSION_EXPIRY_INTERVAL);
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => return connections,
            _ = session_expiry.tick() => handler.sessions.expire(),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => handle_connection(stream, handler, &server, &connections),
                Err(_) => tokio::time::sleep(ACCEPT_RETRY_PAUSE).await,
            }
        }
    }
}

fn handle_connection(
    stream: TcpStream,
    handler: &Arc<Handler>,
    server: &http1::Builder,
    connections: &GracefulShutdown,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot disable Nagle's algorithm");
    }
    let handler = Arc::clone(handler);
    let service = service_fn(move |request| {
        let handler = Arc::clone(&handler);
        async move { Ok::<_, Infallible>(handler.respond(request).await) }
    });
    let connection = connections.watch(server.serve_connection(TokioIo::new(stream), service));
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection failed");
        }
    });
}

async fn spawn_blocking<T: Send + 'static>(
    task: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServerError> {
    tokio::task::spawn_blocking(task).await.map_err(|error| ServerError::Setup(error.into()))
}
