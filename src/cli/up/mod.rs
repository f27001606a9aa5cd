//! `tidemark up`: the whole service on one machine, from one command, with all its state in one folder.
//!
//! It is the parent of every other process and does none of their work itself.

mod connection;
mod demo;
mod home;
mod ports;
pub(super) mod postgres;
mod services;
mod supervisor;

use std::path::PathBuf;

use self::connection::Connection;
use self::demo::DemoArgs;
use self::home::Home;
use self::ports::Ports;
use self::postgres::Cluster;
use self::services::Plan;
use self::supervisor::Supervisor;
use super::Failure;
use super::clickhouse::default_libchdb;
use super::lifeline::StopRequest;
use crate::app::Databases;
use crate::store;

/// Start everything on this machine: stores, platforms, tracker and API
///
/// Runs Postgres (the system's programs), ClickHouse (built in), a sandbox that stands in for the social platforms,
/// the tracker and the API, until Ctrl-C. All state is in one folder; the next start finds it again.
#[derive(Debug, clap::Args)]
pub(super) struct UpArgs {
    /// The folder of all state: data, logs, keys
    #[arg(long, env = "TIDEMARK_DIR", default_value = ".tidemark", value_name = "DIR")]
    dir: PathBuf,
    /// The API's port on this machine; 0 takes a free one
    #[arg(long, env = "TIDEMARK_PORT", default_value_t = 8080, value_name = "PORT")]
    port: u16,
    /// Load a demo organization with a year of history at the first start
    #[arg(long, env = "TIDEMARK_DEMO")]
    demo: bool,
    #[command(flatten)]
    history: DemoArgs,
    /// Where libchdb.so is; by default where make libchdb puts it
    #[arg(long, env = "TIDEMARK_LIBCHDB", value_name = "FILE")]
    libchdb: Option<PathBuf>,
}

pub(super) async fn run(args: UpArgs) -> Result<(), Failure> {
    let mut stop = StopRequest::listen()?;
    let home = Home::take(&args.dir)?;
    Connection::remove(&home.dir)?;
    let supervisor = Supervisor::new(home.dir.join("logs"), home.lifeline());
    let result = tokio::select! {
        result = serve(&args, &home, &supervisor) => result,
        () = stop.received() => Ok(()),
    };
    supervisor.stop().await;
    // A part whose start was broken off is in nobody's hands any more, but ends by itself.
    home.wait_for_leftovers()?;
    result
}

/// Starts everything in its order and then keeps it running for as long as it is polled.
async fn serve(args: &UpArgs, home: &Home, supervisor: &Supervisor) -> Result<(), Failure> {
    home.wait_for_leftovers()?;
    if args.port != 0 {
        ports::bind(args.port).map_err(|error| {
            Failure::new(format!(
                "port {} cannot be used ({error}): stop what listens there, or choose another with --port (make demo DEMO_PORT=N)",
                args.port
            ))
        })?;
    }
    let mut plan = plan(args, home).await?;
    tokio::try_join!(
        supervisor.start(plan.postgres(), plan.postgres_is_ready()),
        supervisor.start(plan.clickhouse(), plan.clickhouse_is_ready()),
    )?;
    plan.learn_credentials()?;
    store::migrate::run(&plan.stores.postgres, &plan.stores.clickhouse).await?;
    supervisor.start(plan.sandbox(), plan.sandbox_is_ready()).await?;
    tokio::try_join!(
        supervisor.start(plan.tracker(), plan.tracker_is_ready()),
        supervisor.start(plan.api(), plan.api_is_ready()),
    )?;
    let population = plan.population();
    let demo = if args.demo {
        let stores = Databases::connect(&plan.stores)?;
        Some(demo::complete(&home.dir, &stores, &population, args.history).await?)
    } else {
        None
    };
    let tracked = if args.demo { args.history.demo_accounts } else { 0 };
    let connection = plan.connection(demo.as_ref(), population.after_first(tracked));
    connection.write(&home.dir, &plan.environment())?;
    eprint!("{}", connection.introduction(&home.dir));
    std::future::pending().await
}

/// Settles what every part has to know of the others.
async fn plan(args: &UpArgs, home: &Home) -> Result<Plan, Failure> {
    let libchdb = args.libchdb.clone().or_else(default_libchdb).unwrap_or_default();
    if !libchdb.is_file() {
        return Err(Failure::new(format!(
            "there is no libchdb, ClickHouse as a library, at {}: run make libchdb, or set TIDEMARK_LIBCHDB",
            libchdb.display()
        )));
    }
    let folder = home.dir.join("postgres");
    let cluster = tokio::task::spawn_blocking(move || Cluster::prepare(&folder)).await??;
    let mut ports = Ports::read(&home.dir);
    let chosen = [
        ports.choose("postgres")?,
        ports.choose("clickhouse")?,
        ports.choose("sandbox")?,
        if args.port == 0 { ports.choose("api")? } else { args.port },
    ];
    ports.settle()?;
    Ok(Plan::new(home.dir.clone(), cluster, libchdb, chosen))
}
