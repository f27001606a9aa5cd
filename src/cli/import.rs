//! `tidemark import`: loads history from files.

use std::path::PathBuf;
use std::process::ExitCode;

use uuid::Uuid;

use super::error::CommandError;
use super::output::{self, OutputArgs};
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::import;
use crate::worker::relay;

/// Load history from files into an organization
///
/// Reads CSV with a header, JSON Lines (both also as .gz or .zst) or Parquet. Rows with external_id are videos, others
/// accounts. Times are dates, dates with a time (2026-12-31 14:51:26+07:00; without a zone UTC), or Unix seconds or
/// milliseconds. Ends when all endpoints show the data. Repeating it changes nothing.
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// Organization to load into
    #[arg(long, value_name = "ID")]
    org: Uuid,
    /// Files to load
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Track new accounts instead of creating them paused
    #[arg(long, env = "TIDEMARK_IMPORT_TRACK")]
    track: bool,
    /// File for rejected rows; default: FILE.refused.jsonl beside the first file
    #[arg(long, env = "TIDEMARK_IMPORT_REPORT", value_name = "PATH")]
    report: Option<PathBuf>,
    /// Name of a column in the files, and the column that it is; several are separated by commas
    ///
    /// For example: --map "Post ID=external_id,views=view_count"
    #[arg(long, env = "TIDEMARK_IMPORT_MAP", value_name = "THEIRS=OURS", value_delimiter = ',')]
    map: Vec<import::ColumnMapping>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    stores: StoreArgs,
}

const COLUMNS: [&str; 6] = ["rows_read", "accounts", "videos", "snapshots_written", "refused", "report_file"];

pub(super) async fn run(args: ImportArgs) -> Result<ExitCode, CommandError> {
    let databases = Databases::connect(&args.stores)?;
    let options = import::ImportOptions {
        track: args.track,
        report: args.report.map_or(import::RejectionFile::BesideInput, import::RejectionFile::At),
        mappings: args.map,
        progress: output::shows_progress(),
        ..import::ImportOptions::default()
    };
    let task = import::load(&databases, args.org, args.files, &options);
    let summary = relay::run_during(&databases, task).await?;
    args.output.print(&summary, &COLUMNS)?;
    Ok(if summary.refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
