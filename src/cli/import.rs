//! `tidemark import`: loads the history of another tracker into an organization.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use uuid::Uuid;

use super::Failure;
use super::answer::AnswerArgs;
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::import;
use crate::worker::relay;

/// Load history from files into an organization
///
/// Reads CSV with a header, JSON Lines or Parquet, by column names: rows with external_id are of videos, rows without of
/// accounts. Ends when everything is visible in every endpoint. Running it again changes nothing.
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The organization that gets the history
    #[arg(long, value_name = "ID")]
    org: Uuid,
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Track the accounts that are new to the organization, instead of leaving them paused
    #[arg(long, env = "TIDEMARK_IMPORT_TRACK")]
    track: bool,
    /// Where refused rows are written; without, beside the first file, as FILE.refused.jsonl
    #[arg(long, env = "TIDEMARK_IMPORT_REPORT", value_name = "PATH")]
    report: Option<PathBuf>,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

const COLUMNS: [&str; 6] = ["rows_read", "accounts", "videos", "snapshots_written", "refused", "report_file"];

pub(super) async fn run(args: ImportArgs) -> Result<ExitCode, Failure> {
    let stores = Databases::connect(&args.stores)?;
    let options =
        import::Options { track: args.track, report: args.report, progress: std::io::stderr().is_terminal() };
    let database_url = args.stores.postgres.database_url.reveal();
    let work = import::load(&stores, args.org, args.files, &options);
    let summary = relay::run_during(&stores, database_url, work).await;
    let summary = summary?;
    args.answer.one(&summary, &COLUMNS)?;
    Ok(if summary.refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
