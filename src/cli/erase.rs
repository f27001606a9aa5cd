//! `tidemark erase`: purges deleted and expired data now instead of within a day.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::error::CommandError;
use super::output::OutputArgs;
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::store::records::organizations;
use crate::worker::erasure::{self, ErasedRows};
use crate::worker::relay;

/// Physically remove deleted and expired data now
///
/// A running tracker does this twice a day. Daily totals of expired history are recomputed first and removed by the next
/// run: run it twice. Search indexes contain deleted texts for up to half a day more, unless rebuilt (tidemark reindex).
#[derive(Debug, clap::Args)]
pub(super) struct EraseArgs {
    /// Organization; default: all
    #[arg(long, value_name = "ID")]
    org: Option<Uuid>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

/// How long to wait for another process that erases.
const LOCK_TIMEOUT: Duration = Duration::from_secs(900);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(super) async fn run(args: EraseArgs) -> Result<(), CommandError> {
    let databases = Databases::connect(&args.stores)?;
    if let Some(organization) = args.org {
        organizations::require(&databases.pg, organization).await?;
    }
    let database_url = args.stores.postgres.database_url.reveal();
    let erased =
        relay::run_during(&databases, database_url, erase(&databases, database_url, args.org)).await?;
    args.output.print(&erased, &["outbox_rows", "history_rows"])
}

async fn erase(
    databases: &Databases,
    database_url: &str,
    organization: Option<Uuid>,
) -> Result<ErasedRows, CommandError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        if let Some(erased) = erasure::run_once(databases, database_url, organization).await? {
            return Ok(erased);
        }
        if Instant::now() >= deadline {
            return Err(CommandError::new("another process has been erasing for 15 minutes: retry later"));
        }
        tokio::time::sleep(LOCK_POLL_INTERVAL).await;
    }
}
