//! `tidemark up`: the complete service on one machine, as children of one process, with all state in one folder.

mod connection;
mod demo;
mod home;
mod ports;
mod postgres;
pub(super) mod run_postgres;
mod services;
mod supervisor;

use std::path::PathBuf;

use self::connection::ConnectionInfo;
use self::demo::DemoArgs;
use self::home::Home;
use self::ports::Ports;
use self::postgres::PostgresCluster;
use self::services::{Services, sandbox_population};
use self::supervisor::Supervisor;
use super::clickhouse::default_libchdb;
use super::error::CommandError;
use crate::app::Databases;
use crate::shutdown::ShutdownSignal;
use crate::store;

/// Run everything on this machine: databases, platforms, tracker and API
///
/// Runs Postgres (the system's binaries), embedded ClickHouse, a sandbox that imitates the platforms, the tracker and the
/// API, until Ctrl-C. All state is in one folder and stays there.
#[derive(Debug, clap::Args)]
pub(super) struct UpArgs {
    /// Folder of all state: data, logs, keys
    #[arg(long, env = "TIDEMARK_DIR", default_value = ".tidemark", value_name = "DIR")]
    dir: PathBuf,
    /// Port of the API; 0 takes a free one
    #[arg(long, env = "TIDEMARK_PORT", default_value_t = 8080, value_name = "PORT")]
    port: u16,
    /// Create a demo organization with a year of history at the first start
    #[arg(long, env = "TIDEMARK_DEMO")]
    demo: bool,
    #[command(flatten)]
    history: DemoArgs,
    /// Path of libchdb.so; default: where make libchdb installs it
    #[arg(long, env = "TIDEMARK_LIBCHDB", value_name = "FILE")]
    libchdb: Option<PathBuf>,
}

pub(super) async fn run(args: UpArgs) -> Result<(), CommandError> {
    let mut shutdown = ShutdownSignal::listen()?;
    let home = Home::lock(&args.dir)?;
    ConnectionInfo::remove(&home.dir)?;
    let supervisor = Supervisor::new(home.dir.join("logs"), home.children_lock());
    let result = tokio::select! {
        result = start(&args, &home, &supervisor) => result,
        () = shutdown.recv() => Ok(()),
    };
    supervisor.stop().await;
    // A child whose start was interrupted is not supervised, but exits with this process.
    home.wait_for_children()?;
    result
}

/// Starts all children in order, then waits forever. Each is supervised as soon as it is ready.
async fn start(args: &UpArgs, home: &Home, supervisor: &Supervisor) -> Result<(), CommandError> {
    home.wait_for_children()?;
    if args.port != 0 {
        ports::bind(args.port).map_err(|error| {
            CommandError::new(format!(
                "port {} cannot be used ({error}): choose another with --port (make demo DEMO_PORT=N)",
                args.port
            ))
        })?;
    }
    let mut services = prepare(args, home).await?;
    tokio::try_join!(
        supervisor.start(services.postgres(), services.postgres_ready()),
        supervisor.start(services.clickhouse(), services.clickhouse_ready()),
    )?;
    services.read_clickhouse_credentials()?;
    store::migrate::run(&services.stores.postgres, &services.stores.clickhouse).await?;
    let clock_start = args.demo.then(|| args.history.clock_start());
    supervisor.start(services.sandbox(clock_start), services.sandbox_ready()).await?;
    tokio::try_join!(
        supervisor.start(services.tracker(), services.tracker_ready()),
        supervisor.start(services.api(), services.api_ready()),
    )?;
    let population = sandbox_population();
    let demo = if args.demo {
        let databases = Databases::connect(&services.stores)?;
        Some(demo::complete(&home.dir, &databases, &services.sandbox_url, &population, args.history).await?)
    } else {
        None
    };
    let tracked = if args.demo { args.history.demo_accounts } else { 0 };
    let connection = services.connection_info(demo.as_ref(), population.after_first(tracked));
    connection.write(&home.dir, &services.environment())?;
    eprint!("{}", connection.ready_message(&home.dir));
    std::future::pending().await
}

/// Prepares Postgres and chooses the ports.
async fn prepare(args: &UpArgs, home: &Home) -> Result<Services, CommandError> {
    let libchdb = args.libchdb.clone().or_else(default_libchdb).unwrap_or_default();
    if !libchdb.is_file() {
        return Err(CommandError::new(format!(
            "libchdb is not at {}: run make libchdb, or set TIDEMARK_LIBCHDB",
            libchdb.display()
        )));
    }
    let folder = home.dir.join("postgres");
    let cluster = tokio::task::spawn_blocking(move || PostgresCluster::prepare(&folder)).await??;
    let mut ports = Ports::read(&home.dir);
    let chosen = [
        ports.choose("postgres")?,
        ports.choose("clickhouse")?,
        ports.choose("sandbox")?,
        if args.port == 0 { ports.choose("api")? } else { args.port },
    ];
    ports.save()?;
    Ok(Services::new(home.dir.clone(), cluster, libchdb, chosen))
}
