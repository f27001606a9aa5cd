//! `tidemark erase`: takes what was deleted, and history that is older than is kept, out of the files of Postgres and
//! ClickHouse now, instead of within a day.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::Failure;
use super::answer::AnswerArgs;
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::store::records::organizations;
use crate::worker::erasure::{self, ErasedRows};
use crate::worker::relay;

/// Take what was deleted, and history that is older than is kept, out of the files of Postgres and ClickHouse now
///
/// A running tracker does so twice a day; this is for whoever cannot wait. Daily sums of older history go with what is erased
/// next, once the tracker has computed them again: run it twice. Search indexes keep what was deleted for up to
/// half a day more, unless they are made anew (tidemark reindex).
#[derive(Debug, clap::Args)]
pub(super) struct EraseArgs {
    /// What one organization deleted; without, what all of them did
    #[arg(long, value_name = "ID")]
    org: Option<Uuid>,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

/// How long another process is waited for that erases.
const PATIENCE: Duration = Duration::from_secs(900);
/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(200);

pub(super) async fn run(args: EraseArgs) -> Result<(), Failure> {
    let stores = Databases::connect(&args.stores)?;
    if let Some(organization) = args.org {
        organizations::require(&stores.pg, organization).await?;
    }
    let database_url = args.stores.postgres.database_url.reveal();
    let erased = relay::run_during(&stores, database_url, erase(&stores, database_url, args.org)).await?;
    args.answer.one(&erased, &["outbox_rows", "history_rows"])
}

async fn erase(
    stores: &Databases,
    database_url: &str,
    organization: Option<Uuid>,
) -> Result<ErasedRows, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(erased) = erasure::run_once(stores, database_url, organization).await? {
            return Ok(erased);
        }
        if Instant::now() >= deadline {
            return Err(Failure::new(
                "another process has been erasing for a quarter of an hour: try again later",
            ));
        }
        tokio::time::sleep(LOOK).await;
    }
}
