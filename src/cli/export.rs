//! `tidemark export`: writes an organization's history to files that `tidemark import` reads.

use std::path::PathBuf;
use std::process::ExitCode;

use uuid::Uuid;

use super::error::CommandError;
use super::output::{self, OutputArgs};
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::export;
use crate::worker::relay;

/// Write an organization's history to files
///
/// Writes a file of accounts and one of videos, which `tidemark import` loads to the same numbers elsewhere. Existing files
/// are replaced once the new ones are complete.
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// Organization to export
    #[arg(long, value_name = "ID")]
    org: Uuid,
    /// File format
    #[arg(long, env = "TIDEMARK_EXPORT_FORMAT", default_value = "csv")]
    format: export::ExportFormat,
    /// Output folder; created if missing
    #[arg(long, env = "TIDEMARK_EXPORT_OUTPUT", value_name = "DIR", default_value = ".")]
    output: PathBuf,
    #[command(flatten)]
    print: OutputArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

const COLUMNS: [&str; 6] = ["accounts", "videos", "account_rows", "video_rows", "left_out", "files"];

pub(super) async fn run(args: ExportArgs) -> Result<ExitCode, CommandError> {
    let databases = Databases::connect(&args.stores)?;
    let options = export::ExportOptions {
        format: args.format,
        output: args.output,
        progress: output::shows_progress(),
    };
    let task = export::write_files(&databases, args.org, &options);
    let summary = relay::run_during(&databases, task).await?;
    args.print.print(&summary, &COLUMNS)?;
    if summary.left_out == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "{} accounts and videos are left out: videos without a platform id yet, and accounts whose username another \
         tracked account has now",
        summary.left_out
    );
    Ok(ExitCode::FAILURE)
}
