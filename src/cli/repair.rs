//! `tidemark repair`: resets times ahead of now, which a tracker with a wrong clock wrote.

use uuid::Uuid;

use super::error::CommandError;
use super::output::OutputArgs;
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::rollup::repair;
use crate::store::records::organizations;
use crate::worker::relay;

/// Reset times ahead of now, which a tracker with a wrong clock wrote
///
/// By Postgres' clock. Accounts and videos keep their latest values and become due. Snapshots of later days are deleted, also
/// imported ones. Works beside a running tracker, and can be interrupted and repeated.
#[derive(Debug, clap::Args)]
pub(super) struct RepairArgs {
    /// Organization; default: all
    #[arg(long, value_name = "ID")]
    org: Option<Uuid>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

pub(super) async fn run(args: RepairArgs) -> Result<(), CommandError> {
    let databases = Databases::connect(&args.stores)?;
    if let Some(organization) = args.org {
        organizations::require(&databases.pg, organization).await?;
    }
    let organizations = organizations::list_ids(&databases.pg, args.org).await?;
    let database_url = args.stores.postgres.database_url.reveal();
    let task = repair::repair(&databases, &organizations);
    let summary = relay::run_during(&databases, database_url, task).await;
    args.output.print(&summary?, &["accounts", "videos", "targets", "snapshots", "subjects"])
}
