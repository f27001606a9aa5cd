//! `tidemark export`: writes what an organization has as files that an import reads back.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use uuid::Uuid;

use super::Failure;
use super::answer::AnswerArgs;
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::export;
use crate::worker::relay;

/// Write an organization's history as files
///
/// Makes accounts and videos files, which `tidemark import` reads back to the same numbers in another organization or
/// installation. Files of these names are replaced once the new ones are whole.
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// The organization whose history is written
    #[arg(long, value_name = "ID")]
    org: Uuid,
    /// The files' format
    #[arg(long, env = "TIDEMARK_EXPORT_FORMAT", default_value = "csv")]
    format: export::Format,
    /// The folder that gets the files; it is made when it is missing
    #[arg(long, env = "TIDEMARK_EXPORT_OUTPUT", value_name = "DIR", default_value = ".")]
    output: PathBuf,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

const COLUMNS: [&str; 6] = ["accounts", "videos", "account_rows", "video_rows", "left_out", "files"];

pub(super) async fn run(args: ExportArgs) -> Result<ExitCode, Failure> {
    let stores = Databases::connect(&args.stores)?;
    let options = export::Options {
        format: args.format,
        output: args.output,
        progress: std::io::stderr().is_terminal(),
    };
    let database_url = args.stores.postgres.database_url.reveal();
    let work = export::write(&stores, args.org, &options);
    let summary = relay::run_during(&stores, database_url, work).await;
    let summary = summary?;
    args.answer.one(&summary, &COLUMNS)?;
    if summary.left_out == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "{} accounts and videos are left out: videos whose platform id is not known yet, and accounts whose username \
         another tracked account has now",
        summary.left_out
    );
    Ok(ExitCode::FAILURE)
}
