//! `tidemark verify`: compares the rollup with the facts, and ClickHouse's records with Postgres, and says every
//! difference.

use std::io::IsTerminal;
use std::process::ExitCode;

use uuid::Uuid;

use super::Failure;
use super::answer::{self, AnswerArgs};
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::rollup::verify;

/// Compare the rollup of an organization with the facts, and say every difference
///
/// Adds all snapshots up again, in another way than the rollup was computed, and compares ClickHouse's accounts and
/// videos with Postgres. Prints nothing when all agrees; each difference is a line, and the exit status 1. Changes
/// nothing; `tidemark rebuild` mends what it finds.
#[derive(Debug, clap::Args)]
pub(super) struct VerifyArgs {
    /// The organization
    #[arg(long, value_name = "ID")]
    org: Uuid,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

pub(super) async fn run(args: VerifyArgs) -> Result<ExitCode, Failure> {
    let stores = Databases::connect(&args.stores)?;
    let report = verify::verify(&stores, args.org, std::io::stderr().is_terminal()).await?;
    if args.answer.json {
        args.answer.one(&report, &[])?;
    } else {
        answer::lines(report.differences.iter().map(|difference| difference.text.as_str()))?;
    }
    Ok(if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
