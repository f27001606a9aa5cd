//! `tidemark rebuild`: has the rollup written anew from the facts, while everything is served.

use std::io::IsTerminal;

use uuid::Uuid;

use super::Failure;
use super::answer::AnswerArgs;
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::rollup::rebuild;
use crate::store::records::organizations;
use crate::worker::relay;

/// Write the rollup of an organization, or of all, anew from the facts
///
/// Requests are answered meanwhile, and what was right stays so. Works beside a running tracker, whose relay does it, and
/// may be interrupted and repeated at will. Ends when the rebuilt numbers are what requests see.
#[derive(Debug, clap::Args)]
pub(super) struct RebuildArgs {
    /// The organization; without, all of them, one after the other
    #[arg(long, value_name = "ID")]
    org: Option<Uuid>,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

pub(super) async fn run(args: RebuildArgs) -> Result<(), Failure> {
    let stores = Databases::connect(&args.stores)?;
    let organizations = match args.org {
        Some(organization) => vec![organization],
        None => organizations::list(&stores.pg).await?.iter().map(|organization| organization.id).collect(),
    };
    let database_url = args.stores.postgres.database_url.reveal();
    let work = rebuild::rebuild(&stores, &organizations, std::io::stderr().is_terminal());
    let summary = relay::run_during(&stores, database_url, work).await;
    args.answer.one(&summary?, &["organizations", "subjects"])
}
