//! `tidemark reindex`: makes every API process rebuild its search index.

use std::time::Duration;

use super::error::CommandError;
use crate::config::PostgresArgs;
use crate::store::postgres::pool;
use crate::store::search::changes;

const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Rebuild the search indexes
///
/// Every API process builds a new index beside the current one, and swaps when it is up to date. A process that is down
/// rebuilds when it starts. Waits for running processes; can be interrupted.
#[derive(Debug, clap::Args)]
pub(super) struct ReindexArgs {
    #[command(flatten)]
    postgres: PostgresArgs,
}

pub(super) async fn run(args: ReindexArgs) -> Result<(), CommandError> {
    let pg = pool::connect(&args.postgres)?;
    let generation = changes::request_rebuild(&pg).await?;
    let mut last_printed = None;
    loop {
        let (running, behind) = changes::count_followers(&pg, generation).await?;
        match (running, behind) {
            (0, _) => {
                eprintln!("no API process is running: each rebuilds its index when it starts");
                return Ok(());
            }
            (_, 0) => {
                eprintln!("all {running} search indexes are rebuilt");
                return Ok(());
            }
            _ if last_printed != Some(behind) => {
                eprintln!("{behind} of {running} search indexes remain to be rebuilt");
                last_printed = Some(behind);
            }
            _ => {}
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
