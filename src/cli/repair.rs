//! `tidemark repair`: resets times ahead of now, which a tracker with a wrong clock wrote.

use super::args::HistoryArgs;
use super::error::CommandError;
use crate::app::Databases;
use crate::rollup::repair;
use crate::store::records::organizations;
use crate::worker::relay;

pub(super) async fn run(args: HistoryArgs) -> Result<(), CommandError> {
    let databases = Databases::connect(&args.stores)?;
    let organizations = organizations::list_ids(&databases.pg, args.org).await?;
    let task = repair::repair(&databases, &organizations);
    let summary = relay::run_during(&databases, task).await?;
    args.output.print(&summary, &["accounts", "videos", "targets", "snapshots", "subjects"])
}
