//! `tidemark import`: saves the history of another tracker as if Tidemark had observed it.
//!
//! All files are read first; rows of more than one batch go to a spill file, partitioned by account. Then the batches are
//! saved, each in a transaction. Every value has its time of observation, so the order of rows does not matter and
//! importing a file twice changes nothing.

mod batch;
mod column;
mod column_names;
mod compression;
mod error;
mod file_report;
mod id_set;
mod input_file;
mod loader;
mod monitor;
mod options;
mod parquet;
mod partitioned_spill;
mod raw_row;
mod reader;
mod report;
mod row;
mod row_buffer;
mod time;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tokio::sync::mpsc;
use uuid::Uuid;

use self::column_names::ColumnNames;
use self::input_file::InputSize;
use self::loader::Loader;
use self::report::RejectionReport;
use self::row::{ObservationTimes, Row};
use self::row_buffer::RowBuffer;
use crate::app::Databases;
use crate::store::outbox::visibility;
use crate::store::postgres::clock;
use crate::store::records::organizations;

pub use self::column_names::ColumnMapping;
pub use self::error::Error;
pub use self::file_report::{FileReport, Refusal};
pub use self::monitor::{Monitor, Progress};
pub use self::options::{
    DEFAULT_MAX_UPLOAD_BYTES, ImportOptions, RejectionFile, SourceFile, UNPACKED_RATIO,
};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportSummary {
    pub rows_read: u64,
    pub accounts: u64,
    pub videos: u64,
    pub snapshots_written: u64,
    /// Rejected rows.
    pub refused: u64,
    pub report_file: Option<PathBuf>,
    pub files: Vec<FileReport>,
}

/// Imports files of this machine and waits until everything is visible in all stores.
pub async fn load(
    databases: &Databases,
    organization: Uuid,
    files: Vec<PathBuf>,
    options: &ImportOptions,
) -> Result<ImportSummary, Error> {
    let files = files.into_iter().map(SourceFile::local).collect();
    load_files(databases, organization, files, options, Arc::default()).await
}

/// Imports files and waits until everything is visible in all stores. `monitor` shows the progress and cancels.
pub async fn load_files(
    databases: &Databases,
    organization: Uuid,
    sources: Vec<SourceFile>,
    options: &ImportOptions,
    monitor: Arc<Monitor>,
) -> Result<ImportSummary, Error> {
    let files: Vec<_> = sources.iter().map(|source| source.path.clone()).collect();
    clock::require_synchronized(&databases.pg, databases.clock.read_machine()).await?;
    let history_since = organizations::fetch_history_since(&databases.pg, organization).await?;
    let names = ColumnNames::new(&options.mappings)?;
    let size = input_file::check_files(&files)?;
    let empty_report = RejectionReport::new(report_path(options, &files), &files)?;
    let bar = progress_bar(options.progress, size.bytes);
    let now = databases.clock.now().await;
    let reading = {
        let (bar, times) = (bar.clone(), ObservationTimes { history_since, now });
        let monitor = monitor.clone();
        tokio::task::spawn_blocking(move || {
            read_files(&files, &names, size, times, empty_report, &bar, &monitor)
        })
    };
    let Input { rows, rows_read, report } = reading.await.map_err(|_| Error::Interrupted)??;

    show_rows(&bar, rows_read - report.rejected());
    let (sender, mut receiver) = mpsc::channel(1);
    let batching = tokio::task::spawn_blocking(move || {
        rows.drain(|batch| sender.blocking_send(batch).is_ok()).map_err(Error::TemporaryFile)
    });
    let mut loader = Loader::new(databases, organization, options.track, now);
    let batches = stream::poll_fn(|context| receiver.poll_recv(context));
    loader.save_all(batches, |batch| bar.inc(batch.len() as u64)).await?;
    batching.await.map_err(|_| Error::Interrupted)??;
    loader.finish().await?;
    bar.set_message("waiting until everything is visible");
    visibility::wait_for_all(&databases.pg, organization).await?;
    bar.finish_and_clear();
    let (refused, report_file) = report.finish()?;
    Ok(ImportSummary {
        rows_read,
        accounts: loader.accounts.len(),
        videos: loader.video_count(),
        snapshots_written: loader.snapshots,
        refused,
        report_file,
        files: Vec::new(),
    })
}

fn report_path(options: &ImportOptions, files: &[PathBuf]) -> PathBuf {
    match &options.report {
        RejectionFile::At(path) => path.clone(),
        RejectionFile::BesideInput | RejectionFile::None => {
            let mut name = files.first().map(|file| file.clone().into_os_string()).unwrap_or_default();
            name.push(".refused.jsonl");
            PathBuf::from(name)
        }
    }
}

/// The contents of all files.
struct Input {
    rows: RowBuffer,
    rows_read: u64,
    report: RejectionReport,
}

/// Reads all files. A damaged file fails the import before anything is saved.
fn read_files(
    files: &[PathBuf],
    names: &ColumnNames,
    size: InputSize,
    times: ObservationTimes,
    mut report: RejectionReport,
    bar: &ProgressBar,
    monitor: &Monitor,
) -> Result<Input, Error> {
    let (mut rows, mut rows_read) = (RowBuffer::new(size.rows), 0_u64);
    for path in files {
        reader::read_rows(path, names, bar, &mut |input| {
            if monitor.is_cancelled() {
                return Err(Error::Cancelled);
            }
            rows_read += 1;
            monitor.count_row();
            let row = input.row.and_then(|raw| Row::parse(raw, times).map_err(|invalid| invalid.to_string()));
            match row {
                Ok(row) => rows.add(row).map_err(Error::TemporaryFile),
                Err(reason) => report.add(path, input.line, &reason),
            }
        })?;
    }
    if rows_read > 0 {
        names.check_all_found()?;
    }
    Ok(Input { rows, rows_read, report })
}

/// Creates a bar that shows bytes while files are read.
fn progress_bar(is_shown: bool, bytes: u64) -> ProgressBar {
    if !is_shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(bytes);
    style(&bar, "{bar:40} {bytes}/{total_bytes} {elapsed} {msg}");
    bar.set_message("reading");
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Switches the bar from bytes to rows, while they are saved.
fn show_rows(bar: &ProgressBar, rows: u64) {
    style(bar, "{bar:40} {human_pos}/{human_len} rows {elapsed} {msg}");
    bar.set_length(rows);
    bar.set_position(0);
    bar.set_message("saving");
}

fn style(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}
