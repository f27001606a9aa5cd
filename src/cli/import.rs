//! `tidemark import`: loads history from files.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde_json::Value;
use uuid::Uuid;

use super::error::CommandError;
use super::output::{self, OutputArgs};
use crate::app::Databases;
use crate::config::StoreArgs;
use crate::import::{self, FileReport, ImportOptions, ImportSummary, RejectionFile};
use crate::model::date_or_time::DateOrTime;
use crate::model::platform::Platform;
use crate::worker::relay;

/// Load history from files into an organization
///
/// Reads files of other tools, recognized by their columns (--formats lists them), and tables with Tidemark's columns:
/// CSV, JSON, Excel and Parquet, also in .zip, .gz, .zst and .xz. --dry-run shows what would be stored. Ends when all
/// endpoints show the data. Repeating it changes nothing.
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// Organization to load into
    #[arg(long, value_name = "ID", required_unless_present = "formats")]
    org: Option<Uuid>,
    /// Files to load
    #[arg(required_unless_present = "formats", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// List the formats that are recognized, with their columns
    #[arg(long)]
    formats: bool,
    /// Read everything, write nothing, and show what would be stored
    #[arg(long)]
    dry_run: bool,
    /// Platform of rows that do not name one
    #[arg(long, env = "TIDEMARK_IMPORT_PLATFORM")]
    platform: Option<Platform>,
    /// Account of rows that do not name one
    #[arg(long, env = "TIDEMARK_IMPORT_USERNAME", value_name = "NAME")]
    username: Option<String>,
    /// When rows without a time were observed; default: the file's time, for files that are as of their export
    #[arg(long, env = "TIDEMARK_IMPORT_OBSERVED_AT", value_name = "TIME", value_parser = parse_time)]
    observed_at: Option<DateTime<Utc>>,
    /// Zone of times without one, as Europe/Oslo
    #[arg(long, env = "TIDEMARK_IMPORT_TIME_ZONE", value_name = "ZONE", value_parser = parse_zone)]
    time_zone: Option<Tz>,
    /// Read 03/04/2026 as 3 April
    #[arg(long, env = "TIDEMARK_IMPORT_DAY_FIRST")]
    day_first: bool,
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
/// Refused rows that are printed of a file.
const MAX_PRINTED_REFUSALS: usize = 10;

fn parse_time(text: &str) -> Result<DateTime<Utc>, String> {
    DateOrTime::try_from(text.to_owned()).map(DateOrTime::first).map_err(str::to_owned)
}

fn parse_zone(text: &str) -> Result<Tz, String> {
    text.parse().map_err(|_| "must be the name of a zone, as Europe/Oslo or UTC".to_owned())
}

/// Whether the command line asks for the formats: these need no stores, whose options would otherwise be required.
pub(super) fn asks_for_formats(mut arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.nth(1).is_some_and(|command| command == "import")
        && arguments.any(|argument| argument == "--formats")
}

pub(super) fn print_formats() -> Result<ExitCode, CommandError> {
    output::print_lines(describe_formats().into_iter())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn run(args: ImportArgs) -> Result<ExitCode, CommandError> {
    if args.formats {
        return print_formats();
    }
    let databases = Databases::connect(&args.stores)?;
    let options = ImportOptions {
        track: args.track,
        dry_run: args.dry_run,
        platform: args.platform,
        username: args.username,
        observed_at: args.observed_at,
        time_zone: args.time_zone,
        day_first: args.day_first,
        report: args.report.map_or(RejectionFile::BesideInput, RejectionFile::At),
        mappings: args.map,
        progress: output::shows_progress(),
        ..ImportOptions::default()
    };
    let organization = args.org.unwrap_or_default();
    let task = import::load(&databases, organization, args.files, &options);
    let summary = if args.dry_run { task.await? } else { relay::run_during(&databases, task).await? };
    if !args.output.json {
        output::print_lines(describe_files(&summary).into_iter())?;
    }
    args.output.print(&summary, &COLUMNS)?;
    Ok(if summary.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Describes what was found in each file.
fn describe_files(summary: &ImportSummary) -> Vec<String> {
    let mut lines = Vec::new();
    for file in &summary.files {
        let format = file.format.as_deref().unwrap_or("unknown");
        match &file.error {
            Some(error) => lines.push(format!("{} ({format}): refused: {error}", file.file)),
            None => lines.push(format!("{} ({format}): {}", file.file, describe_rows(file))),
        }
        lines.extend(file.assumed.iter().map(|assumed| format!("  {assumed}")));
        let refusals = file.refusals.iter().take(MAX_PRINTED_REFUSALS);
        lines.extend(refusals.map(|refusal| format!("  line {}: {}", refusal.line, refusal.reason)));
        let more = file.refused.saturating_sub(MAX_PRINTED_REFUSALS as u64);
        if more > 0 {
            lines.push(format!("  and {more} other refused rows"));
        }
        for row in file.sample.iter().flatten() {
            lines.push(format!("  {}", describe_sample(row)));
        }
    }
    lines
}

fn describe_rows(file: &FileReport) -> String {
    let mut text = format!(
        "{} rows, {} accounts, {} videos, {} observations, {} refused",
        file.rows_read, file.accounts, file.videos, file.snapshots, file.refused
    );
    if let (Some(first), Some(last)) = (file.first_observed_at, file.last_observed_at) {
        text.push_str(&format!(", observed {} to {}", first.format("%F"), last.format("%F")));
    }
    text
}

/// Shows a row as `name=value` pairs.
fn describe_sample(row: &Value) -> String {
    let show = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields = row.as_object().into_iter().flatten();
    fields.map(|(name, value)| format!("{name}={}", show(value))).collect::<Vec<_>>().join(" ")
}

/// Lists the formats, each with the columns that are read.
fn describe_formats() -> Vec<String> {
    let mut lines = Vec::new();
    for format in import::formats() {
        lines.push(format!("{}: {}", format.name, format.tool));
        if let Some(reason) = format.refusal() {
            lines.push(format!("    refused: {reason}"));
        }
        for (ours, theirs) in format.names_by_column() {
            lines.push(format!("    {ours} = {}", theirs.join(", else ")));
        }
    }
    lines.push(format!("Days of TikTok Studio are read in: {}", import::languages().join(", ")));
    lines
}
