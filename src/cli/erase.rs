//! `tidemark erase`: purges deleted and expired data now instead of within a day.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;
use uuid::Uuid;

use super::error::CommandError;
use super::output::OutputArgs;
use crate::app::Databases;
use crate::config::{MediaArgs, StoreArgs};
use crate::media::MediaFolder;
use crate::store::records::organizations;
use crate::worker::erasure::{self, ErasedRows};
use crate::worker::{pictures, relay};

/// Physically remove deleted and expired data now
///
/// A running tracker does this twice a day, and deletes pictures of deleted records four times. Daily totals of expired
/// history are recomputed first and removed by the next run: run it twice. Search indexes contain deleted texts for up to
/// half a day more, unless rebuilt (tidemark reindex).
#[derive(Debug, clap::Args)]
pub(super) struct EraseArgs {
    /// Organization; default: all
    #[arg(long, value_name = "ID")]
    org: Option<Uuid>,
    #[command(flatten)]
    media: MediaArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

#[derive(Serialize)]
struct Erased {
    #[serde(flatten)]
    rows: ErasedRows,
    /// Copies of pictures that nothing referred to.
    pictures: u64,
}

/// How long to wait for another process that erases.
const LOCK_TIMEOUT: Duration = Duration::from_secs(900);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(super) async fn run(args: EraseArgs) -> Result<(), CommandError> {
    let databases = Databases::connect(&args.stores)?;
    if let Some(organization) = args.org {
        organizations::require(&databases.pg, organization).await?;
    }
    let rows = relay::run_during(&databases, erase(&databases, args.org)).await?;
    let pictures = match args.media.folder() {
        Some(folder) => pictures::erase_unreferenced(&databases.pg, MediaFolder::new(folder)).await?,
        None => 0,
    };
    args.output.print(&Erased { rows, pictures }, &["outbox_rows", "history_rows", "pictures"])
}

async fn erase(databases: &Databases, organization: Option<Uuid>) -> Result<ErasedRows, CommandError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        if let Some(erased) = erasure::run_once(databases, organization).await? {
            return Ok(erased);
        }
        if Instant::now() >= deadline {
            return Err(CommandError::new("another process has been erasing for 15 minutes: retry later"));
        }
        tokio::time::sleep(LOCK_POLL_INTERVAL).await;
    }
}
