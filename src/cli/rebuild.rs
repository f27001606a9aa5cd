//! `tidemark rebuild`: recomputes the rollup from the snapshots.

use uuid::Uuid;

use super::error::CommandError;
use super::output::{self, OutputArgs};
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::rollup::rebuild;
use crate::store::records::organizations;
use crate::worker::relay;

/// Recompute the rollup of one organization or all from the snapshots
///
/// Requests are served meanwhile, and correct numbers do not change. Works beside a running tracker, whose relay does it, and can
/// be interrupted and repeated. Ends when requests see the new numbers.
#[derive(Debug, clap::Args)]
pub(super) struct RebuildArgs {
    /// Organization; default: all
    #[arg(long, value_name = "ID")]
    org: Option<Uuid>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

pub(super) async fn run(args: RebuildArgs) -> Result<(), CommandError> {
    let databases = Databases::connect(&args.stores)?;
    let organizations = organizations::list_ids(&databases.pg, args.org).await?;
    let database_url = args.stores.postgres.database_url.reveal();
    let task = rebuild::rebuild(&databases, &organizations, output::shows_progress());
    let summary = relay::run_during(&databases, database_url, task).await;
    args.output.print(&summary?, &["organizations", "subjects"])
}
