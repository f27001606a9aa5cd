//! The process `tidemark track`: all loops of a tracker.

use std::sync::Arc;

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::tracker::Tracker;
use super::{erasure, gauges, housekeeping, relay};
use crate::app::{ConnectError, Databases};
use crate::config::StoreArgs;
use crate::platforms::{ConfigError, RequestBudget, SourceArgs, Sources};
use crate::shutdown::ShutdownArgs;
use crate::store::health;
use crate::store::migrate::{self, SchemaCheck};
use crate::telemetry::{MetricsArgs, probes};

#[derive(Debug, Clone, clap::Args)]
pub struct TrackArgs {
    #[command(flatten)]
    pub stores: StoreArgs,
    #[command(flatten)]
    pub sources: SourceArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// Accounts and videos that are read from each platform at the same time
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

/// Runs a tracker until it is stopped. It finishes running scrapes, then the relay delivers what they committed.
pub async fn run(args: TrackArgs, stop: CancellationToken) -> Result<(), StartError> {
    let databases = Databases::connect(&args.stores)?;
    let budget = RequestBudget::Postgres(databases.pg.clone());
    let sources = Arc::new(Sources::from_args(&args.sources, &budget)?);
    let database_url = args.stores.postgres.database_url.reveal().to_owned();
    let schema = SchemaCheck::at_start(&databases.pg, &databases.clickhouse).await?;
    let checked = (databases.pg.clone(), schema.clone(), stop.clone());
    probes::set_readiness_check(move || {
        let (pg, schema, stop) = checked.clone();
        check_readiness(pg, schema, stop)
    });
    if !schema.wait(&databases.pg, &stop).await {
        return Ok(());
    }
    let mut tracker = Tracker::new(databases.clone(), sources.clone());
    tracker.shutdown_grace = args.shutdown.grace();
    let scrapes_finished = CancellationToken::new();
    let scrape = async {
        tracker.run(args.concurrency.max(1), stop.clone()).await;
        scrapes_finished.cancel();
    };
    tokio::join!(
        gauges::run_for_tracker(databases.clone(), sources, stop.clone()),
        scrape,
        housekeeping::run(databases.pg.clone(), stop.clone()),
        erasure::run(databases.clone(), database_url.clone(), stop.clone()),
        relay::run(databases, database_url, scrapes_finished.clone()),
    );
    Ok(())
}

async fn check_readiness(pg: PgPool, schema: SchemaCheck, stop: CancellationToken) -> Result<(), String> {
    if stop.is_cancelled() {
        return Err("the process is stopping".to_owned());
    }
    health::check_postgres_with_timeout(&pg, &schema).await
}
