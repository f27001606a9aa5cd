//! `tidemark reindex`: has every API process make its search index anew.

use std::time::Duration;

use super::Failure;
use crate::config::PostgresArgs;
use crate::store::postgres::pool;
use crate::store::search::changes;

/// How often the API processes are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Make the search indexes anew
///
/// Every API process builds another index beside the one in use and takes it once it is complete and current; searches
/// go on meanwhile. One that does not run does so when it starts. Waits for those that run; it may be interrupted.
#[derive(Debug, clap::Args)]
pub(super) struct ReindexArgs {
    #[command(flatten)]
    postgres: PostgresArgs,
}

pub(super) async fn run(args: ReindexArgs) -> Result<(), Failure> {
    let pg = pool::connect(&args.postgres)?;
    let generation = changes::request_rebuild(&pg).await?;
    let mut told = None;
    loop {
        let (living, behind) = changes::count_followers(&pg, generation).await?;
        match (living, behind) {
            (0, _) => {
                eprintln!("no API process runs: each makes its search index anew when it starts");
                return Ok(());
            }
            (_, 0) => {
                eprintln!("all {living} search indexes in use are made anew");
                return Ok(());
            }
            _ if told != Some(behind) => {
                eprintln!("{behind} of {living} search indexes in use are to be made anew");
                told = Some(behind);
            }
            _ => {}
        }
        tokio::time::sleep(LOOK).await;
    }
}
