//! The loops that keep the stores current: tracking, the relay to ClickHouse, housekeeping, erasure, the search follower.
//!
//! `tidemark track` runs the first four; each API process follows search for itself.

pub mod budget;
pub mod erasure;
pub mod gauges;
pub mod housekeeping;
pub mod indexer;
mod mapping;
pub mod relay;
pub mod retention;
mod schedule;
mod scheduler;
pub mod scrape;
mod telemetry;
pub mod tracker;

use std::sync::Arc;
use std::time::Duration;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::app::{ConnectError, Databases};
use crate::config::StoreArgs;
use crate::platforms::{ConfigError, RequestBudget, SourceArgs, Sources};
use crate::shutdown::ShutdownArgs;
use crate::store::migrate::{self, SchemaCheck};
use crate::store::{Error, health};
use crate::telemetry::{MetricsArgs, probes};

use self::tracker::Tracker;

/// How long Postgres may take for what is small.
const BRIEF: Duration = Duration::from_secs(10);
/// How long it may take for very many rows, or while others are in the way.
const LONG: Duration = Duration::from_secs(300);

/// Waits for Postgres no longer than it may take.
async fn within<T>(limit: Duration, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    match tokio::time::timeout(limit, work).await {
        Ok(done) => done,
        Err(_) => Err(Error::Postgres(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))),
    }
}

/// How `tidemark track` works.
#[derive(Debug, Clone, clap::Args)]
pub struct TrackArgs {
    #[command(flatten)]
    pub stores: StoreArgs,
    #[command(flatten)]
    pub sources: SourceArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// How many accounts and videos are read from each platform at the same time
    #[arg(long, env = "TIDEMARK_TRACK_CONCURRENCY", default_value_t = 8, value_name = "N")]
    pub concurrency: usize,
    #[command(flatten)]
    pub shutdown: ShutdownArgs,
}

/// Why a tracker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Sources(#[from] ConfigError),
    #[error(transparent)]
    Schema(#[from] migrate::Error),
}

/// Tracks and relays until told to stop. Scrapes in hand are finished first, then what they committed is relayed.
pub async fn run(args: TrackArgs, stop: CancellationToken) -> Result<(), StartError> {
    let stores = Databases::connect(&args.stores)?;
    let sources = Arc::new(Sources::from_args(&args.sources, &RequestBudget::Postgres(stores.pg.clone()))?);
    let database_url = args.stores.postgres.database_url.reveal().to_owned();
    let schema = SchemaCheck::at_start(&stores.pg, &stores.clickhouse).await?;
    let looked = (stores.pg.clone(), schema.clone(), stop.clone());
    probes::set_readiness_check(move || {
        let (pg, schema, stop) = looked.clone();
        ready(pg, schema, stop)
    });
    if !schema.wait(&stores.pg, &stop).await {
        return Ok(());
    }
    let mut tracker = Tracker::new(stores.clone(), sources.clone());
    tracker.shutdown_grace = args.shutdown.grace();
    let tracked = CancellationToken::new();
    let track = async {
        tracker.run(args.concurrency.max(1), stop.clone()).await;
        tracked.cancel();
    };
    tokio::join!(
        gauges::run_for_tracker(stores.clone(), sources, stop.clone()),
        track,
        housekeeping::run(stores.pg.clone(), stop.clone()),
        erasure::run(stores.clone(), database_url.clone(), stop.clone()),
        relay::run(stores, database_url, tracked.clone()),
    );
    Ok(())
}

/// Why the process cannot work now, if there is a reason.
async fn ready(pg: PgPool, schema: SchemaCheck, stop: CancellationToken) -> Result<(), String> {
    if stop.is_cancelled() {
        return Err("the process is stopping".to_owned());
    }
    health::check_postgres_with_timeout(&pg, &schema).await
}
