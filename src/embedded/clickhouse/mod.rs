//! `tidemark clickhouse`: ClickHouse as a library behind ClickHouse's own HTTP interface, for one machine without containers.
//! This file owns the options, the life of the process and its end; the rest of the service speaks to it over HTTP only.

mod access;
mod auth;
mod cancel;
mod engine;
mod ffi;
mod frames;
mod http;
mod query;
mod reply;
mod request;
mod session;
mod spawn;
mod statement;
mod streaming;
mod told;

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, oneshot};

pub use auth::{Credentials, CredentialsError, credentials};
pub use engine::EngineError;
pub use spawn::{SpawnError, SpawnOptions, Spawned};

/// How long requests under way may still take when the process ends.
const GRACE: Duration = Duration::from_secs(10);
/// How often unused sessions are looked for.
const SESSION_ROUND: Duration = Duration::from_secs(5);

/// Options of `tidemark clickhouse`.
#[derive(Clone, Debug, clap::Args)]
pub struct ClickhouseArgs {
    /// Folder of the data and of credentials.json, made at the first start.
    #[arg(
        long,
        value_name = "DIR",
        env = "TIDEMARK_CLICKHOUSE_DATA",
        default_value = ".tidemark/clickhouse"
    )]
    pub data: PathBuf,

    /// Address to listen at; port 0 takes a free one, and the ready line tells which.
    #[arg(long, value_name = "ADDR", env = "TIDEMARK_CLICKHOUSE_LISTEN", default_value = "127.0.0.1:8123")]
    pub listen: SocketAddr,

    /// Path of libchdb.so; by default where `make libchdb` puts it in the cache folder.
    #[arg(long, value_name = "PATH", env = "TIDEMARK_LIBCHDB")]
    pub libchdb: Option<PathBuf>,

    /// End when standard input ends, as it does when the process that holds its other end is gone.
    #[arg(long, env = "TIDEMARK_CLICKHOUSE_EXIT_WITH_STDIN")]
    pub exit_with_stdin: bool,

    /// Most memory the engine takes, in bytes; by default half of the machine's.
    #[arg(long, value_name = "BYTES", env = "TIDEMARK_CLICKHOUSE_MAX_MEMORY")]
    pub max_memory: Option<u64>,

    /// Most statements that run at a time; more wait for their turn.
    #[arg(long, value_name = "N", env = "TIDEMARK_CLICKHOUSE_MAX_QUERIES", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=400))]
    pub max_queries: u16,

    /// Longest body of a request, in bytes, as it arrives and as it is unpacked.
    #[arg(long, value_name = "BYTES", env = "TIDEMARK_CLICKHOUSE_MAX_BODY", default_value_t = 2 << 30)]
    pub max_body: usize,

    /// Allow an address that other machines reach; passwords then cross the network unencrypted.
    #[arg(long, env = "TIDEMARK_CLICKHOUSE_ALLOW_REMOTE")]
    pub allow_remote: bool,
}

/// Why `tidemark clickhouse` does not run.
#[derive(Debug, thiserror::Error)]
pub enum ClickhouseError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    #[error("the data folder {} cannot be made: {}; choose another with --data", .0.display(), .1)]
    Folder(PathBuf, std::io::Error),
    #[error(
        "the address {0} is in use by another process: stop that process, or choose another address with --listen"
    )]
    InUse(SocketAddr),
    #[error("cannot listen at {0}: {1}; choose another address with --listen")]
    Listen(SocketAddr, std::io::Error),
    #[error("{0} can be reached from other machines: listen at a loopback address, or add --allow-remote")]
    Remote(SocketAddr),
    #[error(
        "neither HOME nor XDG_CACHE_HOME is set: say where libchdb is with --libchdb or TIDEMARK_LIBCHDB"
    )]
    NoCache,
    #[error("the process cannot be set up: {0}")]
    Setup(std::io::Error),
}

/// Where libchdb is unless it is said: the place to which `make libchdb` brings it.
pub fn default_libchdb() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("tidemark").join(engine::LIBRARY).join("libchdb.so"))
}

/// Runs the embedded ClickHouse until a signal or the end of standard input ends it.
pub async fn run(args: ClickhouseArgs) -> Result<(), ClickhouseError> {
    if !args.listen.ip().is_loopback() && !args.allow_remote {
        return Err(ClickhouseError::Remote(args.listen));
    }
    let library = args.libchdb.clone().or_else(default_libchdb).ok_or(ClickhouseError::NoCache)?;
    let data = absolute(&args.data)?;
    // the address first: it fails fast, and connections wait until the engine is open
    let listener = TcpListener::bind(args.listen).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => ClickhouseError::InUse(args.listen),
        _ => ClickhouseError::Listen(args.listen, error),
    })?;
    let address = listener.local_addr().map_err(ClickhouseError::Setup)?;
    let limits = engine::Limits { memory: args.max_memory };
    let opened = {
        let data = data.clone();
        tokio::task::spawn_blocking(move || engine::Engine::open(&library, &data, limits)).await
    };
    let engine = Arc::new(opened.map_err(|error| ClickhouseError::Setup(error.into()))??);
    let credentials = auth::ensure(&data)?;
    let ending = ending(args.exit_with_stdin).map_err(ClickhouseError::Setup)?;

    let front = Arc::new(http::Front {
        engine: Arc::clone(&engine),
        credentials,
        sessions: session::Sessions::default(),
        places: Arc::new(Semaphore::new(usize::from(args.max_queries))),
        max_body: args.max_body,
    });
    let mut out = std::io::stdout().lock();
    let ready = serde_json::json!({ "event": "ready", "url": format!("http://{address}") });
    // a reader that is gone already makes no difference: its end of the pipe ends the process
    if writeln!(out, "{ready}").and_then(|()| out.flush()).is_err() {
        tracing::warn!("nobody reads the ready line");
    }
    drop(out);

    serve(listener, &front, ending).await;
    front.sessions.clear();
    let places = front.places.acquire_many(u32::from(args.max_queries));
    let all_ended = tokio::time::timeout(GRACE, places).await.is_ok();
    if !all_ended {
        tracing::warn!("statements were still running at the end");
        ffi::exit_now(0);
    }
    tokio::task::spawn_blocking(move || engine.close())
        .await
        .map_err(|error| ClickhouseError::Setup(error.into()))?;
    Ok(())
}

/// Answers requests until `ending`, then lets those under way finish.
async fn serve(listener: TcpListener, front: &Arc<http::Front>, ending: oneshot::Receiver<()>) {
    // without pipeline_flush, which would take a body as fast as it comes and hold what the client has not read
    let mut server = hyper::server::conn::http1::Builder::new();
    // with a clock, by which a connection ends that sends no whole head within half a minute
    server.timer(TokioTimer::new());
    let graceful = GracefulShutdown::new();
    let mut round = tokio::time::interval(SESSION_ROUND);
    tokio::pin!(ending);
    loop {
        tokio::select! {
            _ = &mut ending => break,
            _ = round.tick() => front.sessions.expire(),
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else {
                    // out of descriptors, or a client that left at once: others go on
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection keeps its delay");
                }
                let front = Arc::clone(front);
                let service = service_fn(move |request| {
                    let front = Arc::clone(&front);
                    async move { Ok::<_, std::convert::Infallible>(front.answer(request).await) }
                });
                let connection = graceful.watch(server.serve_connection(TokioIo::new(stream), service));
                tokio::spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "a connection ended early");
                    }
                });
            }
        }
    }
    drop(listener);
    let engine = Arc::clone(&front.engine);
    let kill = tokio::task::spawn_blocking(move || engine.kill_reads());
    if tokio::time::timeout(GRACE, async { (kill.await, graceful.shutdown().await) }).await.is_err() {
        tracing::warn!("requests were still under way at the end");
    }
}

/// Ends when the process is to end: at SIGTERM, SIGINT, or the end of standard input.
fn ending(with_stdin: bool) -> std::io::Result<oneshot::Receiver<()>> {
    let (sender, receiver) = oneshot::channel();
    // installed after the engine's first connection, which clears handlers
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let (stdin_ended, mut stdin) = tokio::sync::mpsc::channel::<()>(1);
    if with_stdin {
        std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            let mut input = std::io::stdin().lock();
            let mut dump = [0; 256];
            while !matches!(input.read(&mut dump), Ok(0) | Err(_)) {}
            drop(stdin_ended);
        })?;
    } else {
        std::mem::forget(stdin_ended);
    }
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = stdin.recv() => {}
        }
        drop(sender);
    });
    Ok(receiver)
}

fn absolute(data: &std::path::Path) -> Result<PathBuf, ClickhouseError> {
    let folder = |error| ClickhouseError::Folder(data.to_owned(), error);
    std::fs::create_dir_all(data).map_err(folder)?;
    data.canonicalize().map_err(folder)
}
