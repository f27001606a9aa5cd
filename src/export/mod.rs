//! `tidemark export`: an organization's history as files, from which `tidemark import` reproduces the same numbers.
//!
//! Every video has a row that describes it, without counters, and one per snapshot. An account is described in the row of
//! its latest snapshot. Memory holds one page of records, and the ids of all videos of a group of accounts.

mod error;
mod exporter;
mod history_file;

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use uuid::Uuid;

use self::exporter::{AccountRow, Exporter, VideoRow};
use self::history_file::HistoryFile;
use crate::app::Databases;
use crate::model::file_row::{Columns, FileColumns};
use crate::store::outbox::visibility;
use crate::store::records::{exports, organizations};

pub use self::error::Error;
pub use self::exporter::ExportSummary;
pub use self::history_file::ExportFormat;

#[derive(Debug, Clone)]
pub struct ExportOptions {
    pub format: ExportFormat,
    /// The folder for the files.
    pub output: PathBuf,
    /// Whether to show a progress bar on standard error.
    pub progress: bool,
}

/// Writes the files. Changes that are committed meanwhile may be missing. If it fails, earlier files stay as they are.
pub async fn write_files(
    databases: &Databases,
    organization: Uuid,
    options: &ExportOptions,
) -> Result<ExportSummary, Error> {
    organizations::require(&databases.pg, organization).await?;
    std::fs::create_dir_all(&options.output).map_err(|error| Error::file(&options.output, error))?;
    let create = |name: &str, columns: Columns| {
        let path = options.output.join(name).with_extension(options.format.extension());
        HistoryFile::create(path, options.format, columns)
    };
    let (accounts, videos) =
        (create("accounts", AccountRow::columns())?, create("videos", VideoRow::columns())?);
    let bar = progress_bar(options.progress, exports::count_videos(&databases.pg, organization).await?);
    bar.set_message("waiting until all commits are in the history");
    visibility::wait_for_history(&databases.pg, organization).await?;
    bar.set_message("");
    let mut exporter = Exporter::new(databases, organization, accounts, videos, bar);
    exporter.write_accounts().await?;
    exporter.write_lone_creators().await?;
    exporter.write_individual_videos().await?;
    exporter.finish()
}

fn progress_bar(is_shown: bool, videos: i64) -> ProgressBar {
    if !is_shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(videos.max(0).cast_unsigned());
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {human_pos}/{human_len} videos {elapsed} {msg}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
