//! The process `tidemark track`: its options, its loops, and what they share.

use std::collections::HashMap;
use std::mem::Discriminant;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::pictures::{PictureArgs, PictureError, PictureOffers, Pictures};
use super::{breakouts, erasure, gauges, housekeeping, relay, webhooks};
use crate::app::Databases;
use crate::config::{StoreArgs, WebhookArgs};
use crate::model::platform::Platform;
use crate::platforms::source::SourceError;
use crate::platforms::webhooks::WebhookClient;
use crate::platforms::{SourceArgs, Sources};
use crate::shutdown::{DEFAULT_STOP_SECONDS, ShutdownArgs};
use crate::store::health;
use crate::store::migrate::{self, SchemaCheck};
use crate::store::postgres::clock::ClockSkew;
use crate::store::postgres::notifications;
use crate::store::postgres::pool::{self, DatabaseUrlError};
use crate::telemetry::{MetricsArgs, probes};

/// A kind of failure of a platform is logged once per interval.
const LOG_INTERVAL: Duration = Duration::from_secs(3600);

const DEFAULT_LEASE_SECONDS: u64 = 45;

#[derive(Debug, Clone, clap::Args)]
pub struct TrackArgs {
    #[command(flatten)]
    pub stores: StoreArgs,
    #[command(flatten)]
    pub sources: SourceArgs,
    #[command(flatten)]
    pub pictures: PictureArgs,
    #[command(flatten)]
    pub webhooks: WebhookArgs,
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// Accounts and videos that are read from each platform at the same time
    #[arg(long, env = "TIDEMARK_TRACK_CONCURRENCY", default_value_t = 8, value_name = "N")]
    pub concurrency: usize,
    /// Seconds after which other trackers take over a scrape whose lease is not renewed
    #[arg(long, env = "TIDEMARK_TRACK_LEASE_SECONDS", default_value_t = DEFAULT_LEASE_SECONDS, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(3..=600))]
    pub lease_seconds: u64,
    #[command(flatten)]
    pub shutdown: ShutdownArgs,
}

/// Why a tracker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Schema(#[from] migrate::Error),
    #[error("this machine's clock is {0}: synchronize both by NTP, then start the tracker again")]
    Clock(ClockSkew),
    #[error(transparent)]
    Database(#[from] DatabaseUrlError),
    #[error(transparent)]
    Pictures(#[from] PictureError),
    #[error("cannot create the HTTP client for webhooks: {0}")]
    Webhooks(String),
}

/// Runs a tracker until it is stopped. It finishes running scrapes, then the relay delivers what they committed.
pub async fn run(
    args: TrackArgs,
    databases: Databases,
    sources: Sources,
    stop: CancellationToken,
) -> Result<(), StartError> {
    let sources = Arc::new(sources);
    let schema = SchemaCheck::at_start(&databases.pg, &databases.clickhouse).await?;
    probes::set_readiness_check({
        let (pg, schema, stop) = (databases.pg.clone(), schema.clone(), stop.clone());
        move || check_readiness(pg.clone(), schema.clone(), stop.clone())
    });
    if !schema.wait(&databases.pg, &stop).await {
        return Ok(());
    }
    let mut tracker = Tracker::new(databases.clone(), sources.clone());
    tracker.require_right_clock().await?;
    let (offers, pictures) = Pictures::new(&args.pictures, &databases)?;
    tracker.pictures = offers;
    tracker.shutdown_grace = args.shutdown.grace();
    tracker.lease_duration = Duration::from_secs(args.lease_seconds);
    let receivers = WebhookClient::new(args.webhooks.webhook_allowed_hosts).map_err(StartError::Webhooks)?;
    let notified = pool::connect_for_notifications(&args.stores.postgres)?;
    let scrapes_finished = CancellationToken::new();
    let scrape = async {
        tracker.run(args.concurrency.max(1), stop.clone()).await;
        scrapes_finished.cancel();
    };
    let copy_pictures = async {
        if let Some(pictures) = pictures {
            // Boxed, because the future of the tracker has to fit on the stack.
            Box::pin(pictures.run(scrapes_finished.clone())).await;
        }
    };
    tokio::join!(
        notifications::listen(notified, stop.clone()),
        gauges::run_for_tracker(databases.clone(), sources, args.pictures.limit(), stop.clone()),
        scrape,
        copy_pictures,
        housekeeping::run(databases.clone(), stop.clone()),
        breakouts::run(databases.clone(), stop.clone()),
        webhooks::run(databases.clone(), receivers, args.shutdown.grace(), stop.clone()),
        erasure::run(databases.clone(), stop.clone()),
        relay::run(databases, scrapes_finished.clone()),
    );
    Ok(())
}

async fn check_readiness(pg: PgPool, schema: SchemaCheck, stop: CancellationToken) -> Result<(), String> {
    if stop.is_cancelled() {
        return Err("the process is stopping".to_owned());
    }
    health::check_postgres_with_timeout(&pg, &schema).await
}

/// A kind of failure, for throttling the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FailureKind {
    Source(Discriminant<SourceError>),
    Clock,
    Unrecorded,
    Panicked,
}

/// The key by which the log is throttled; without a platform, a failure concerns all.
type LogKey = (Option<Platform>, FailureKind);

/// The result of a comparison of this machine's clock with Postgres'.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockCheck {
    pub(super) at: Instant,
    pub(super) is_right: bool,
}

/// A tracker process. Cheap to clone.
#[derive(Clone)]
pub struct Tracker {
    pub databases: Databases,
    pub sources: Arc<Sources>,
    /// Identifies the process as the owner of leases.
    pub owner: Uuid,
    /// How long a lease lasts without renewal.
    pub lease_duration: Duration,
    /// How long scrapes may run during shutdown.
    pub shutdown_grace: Duration,
    /// Takes the pictures that scrapes saw.
    pub pictures: PictureOffers,
    pub(super) clock_check: Arc<Mutex<Option<ClockCheck>>>,
    last_logged: Arc<Mutex<HashMap<LogKey, Instant>>>,
}

impl Tracker {
    pub fn new(databases: Databases, sources: Arc<Sources>) -> Self {
        Tracker {
            databases,
            sources,
            owner: Uuid::now_v7(),
            lease_duration: Duration::from_secs(DEFAULT_LEASE_SECONDS),
            shutdown_grace: Duration::from_secs(DEFAULT_STOP_SECONDS),
            pictures: PictureOffers::default(),
            clock_check: Arc::default(),
            last_logged: Arc::default(),
        }
    }

    /// Whether this kind of failure was not logged within the last hour; if so, the caller logs it now.
    pub(super) fn should_log(&self, platform: impl Into<Option<Platform>>, kind: FailureKind) -> bool {
        let key = (platform.into(), kind);
        let mut last_logged = self.last_logged.lock();
        let now = Instant::now();
        let is_due = last_logged.get(&key).is_none_or(|at| now - *at >= LOG_INTERVAL);
        if is_due {
            last_logged.insert(key, now);
        }
        is_due
    }
}
