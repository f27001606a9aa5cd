//! `tidemark rebuild`: recomputes the rollup from the snapshots.

use super::args::HistoryArgs;
use super::error::CommandError;
use super::output;
use crate::app::Databases;
use crate::rollup::rebuild;
use crate::store::records::organizations;
use crate::worker::relay;

pub(super) async fn run(args: HistoryArgs) -> Result<(), CommandError> {
    let databases = Databases::connect(&args.stores)?;
    let organizations = organizations::list_ids(&databases.pg, args.org).await?;
    let task = rebuild::rebuild(&databases, &organizations, output::shows_progress());
    let summary = relay::run_during(&databases, task).await?;
    args.output.print(&summary, &["organizations", "subjects"])
}
