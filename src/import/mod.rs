//! `tidemark import`: saves the history in files of other tools as if Tidemark had observed it.
//!
//! All files are read first; rows of more than one batch go to a spill file, partitioned by account. Then the batches are
//! saved, each in a transaction. Every value has its time of observation, so the order of rows does not matter and
//! importing a file twice changes nothing.

mod admission;
mod batch;
mod clock;
mod column;
mod count;
mod distinct;
mod error;
mod file_import;
mod file_reader;
mod file_report;
mod formats;
mod id_set;
mod identity;
mod insights;
mod layout;
mod loader;
mod mapping;
mod monitor;
mod month_names;
mod new_records;
mod notes;
mod options;
mod parquet;
mod partitioned_spill;
mod raw_row;
mod report;
mod rounded_ids;
mod row;
mod row_buffer;
mod row_parser;
mod row_reader;
mod row_sink;
mod row_values;
mod sample;
mod survey_reader;
mod table_rules;
mod time;
mod zone;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tokio::sync::mpsc;
use uuid::Uuid;

use self::admission::Admission;
use self::file_import::{Shared, read_file};
use self::file_reader::InputSize;
use self::loader::Loader;
use self::new_records::NewRecords;
use self::report::RejectionReport;
use self::row_buffer::RowBuffer;
use self::row_reader::ObservationTimes;
use self::table_rules::TableRules;
use crate::app::Databases;
use crate::store::outbox::visibility;
use crate::store::postgres::clock as postgres_clock;
use crate::store::records::organizations;

pub use self::error::Error;
pub use self::file_report::{FileReport, Refusal};
pub use self::formats::{Format, all as formats};
pub use self::mapping::ColumnMapping;
pub use self::monitor::{Monitor, Progress};
pub use self::month_names::languages;
pub use self::options::{DEFAULT_MAX_UPLOAD_BYTES, ImportOptions, RejectionFile, SourceFile, UNPACKED_RATIO};

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ImportSummary {
    pub dry_run: bool,
    pub rows_read: u64,
    pub accounts: u64,
    pub videos: u64,
    pub snapshots_written: u64,
    /// Rejected rows.
    pub refused: u64,
    pub report_file: Option<PathBuf>,
    pub files: Vec<FileReport>,
}

impl ImportSummary {
    /// Whether nothing was refused, neither rows nor whole files.
    pub fn is_complete(&self) -> bool {
        self.refused == 0 && self.files.iter().all(|file| file.error.is_none())
    }
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
    mapping::check(&options.mappings)?;
    if !options.dry_run {
        postgres_clock::require_synchronized(&databases.pg, databases.clock.read_machine()).await?;
    }
    let pg = &databases.pg;
    let history_since = organizations::fetch_history_since(pg, organization).await?;
    let size = file_reader::check_files(&sources)?;
    let report = RejectionReport::new(report_path(options, &sources), &sources)?;
    let admission = match options.enforces_account_cap {
        true => Admission::fetch(pg, organization).await?,
        false => Admission::default(),
    };
    let now = databases.clock.now().await;
    let bar = progress_bar(options.progress, size.bytes);
    let reading = {
        let reader = Reader { options: options.clone(), bar: bar.clone(), monitor: monitor.clone(), size };
        let times = ObservationTimes { history_since, now };
        tokio::task::spawn_blocking(move || reader.read(&sources, times, report, admission))
    };
    let Input { rows, new_records, files, rejections } = reading.await.map_err(|_| Error::Interrupted)??;
    let rows_read = files.iter().map(|file| file.rows_read).sum();
    let mut summary =
        ImportSummary { rows_read, dry_run: options.dry_run, files, ..ImportSummary::default() };
    if options.dry_run {
        bar.finish_and_clear();
        summary.accounts = summary.files.iter().map(|file| file.accounts).sum();
        summary.videos = summary.files.iter().map(|file| file.videos).sum();
        summary.refused = rejections.rejected();
        return Ok(summary);
    }
    show_rows(&bar, rows_read - rejections.rejected());
    let mut loader = Loader::new(databases, organization, new_records);
    save(&mut loader, rows, &bar, &monitor).await?;
    bar.set_message("waiting until everything is visible");
    visibility::wait_for_all(pg, organization).await?;
    bar.finish_and_clear();
    (summary.refused, summary.report_file) = rejections.finish()?;
    summary.accounts = loader.accounts.len();
    summary.videos = loader.video_count();
    summary.snapshots_written = loader.snapshots;
    Ok(summary)
}

/// Saves all rows in batches.
async fn save(
    loader: &mut Loader<'_>,
    rows: RowBuffer,
    bar: &ProgressBar,
    monitor: &Monitor,
) -> Result<(), Error> {
    let (sender, mut receiver) = mpsc::channel(1);
    let batching = tokio::task::spawn_blocking(move || {
        rows.drain(|batch| sender.blocking_send(batch).is_ok()).map_err(Error::TemporaryFile)
    });
    let batches = stream::poll_fn(|context| receiver.poll_recv(context));
    let saved = loader
        .save_all(batches, |batch, saved| {
            bar.inc(batch.len() as u64);
            monitor.count_saved(batch.len() as u64, saved.snapshots);
            if monitor.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
        })
        .await;
    receiver.close();
    let batched = batching.await.map_err(|_| Error::Interrupted)?;
    // What is saved stays, with its creators.
    loader.finish().await?;
    saved.and(batched)
}

fn report_path(options: &ImportOptions, sources: &[SourceFile]) -> Option<PathBuf> {
    match &options.report {
        _ if options.dry_run => None,
        RejectionFile::None => None,
        RejectionFile::At(path) => Some(path.clone()),
        RejectionFile::BesideInput => {
            let mut name = sources.first()?.path.clone().into_os_string();
            name.push(".refused.jsonl");
            Some(PathBuf::from(name))
        }
    }
}

/// The contents of all files.
struct Input {
    rows: RowBuffer,
    new_records: NewRecords,
    files: Vec<FileReport>,
    rejections: RejectionReport,
}

/// Reads all files of an import.
struct Reader {
    options: ImportOptions,
    bar: ProgressBar,
    monitor: Arc<Monitor>,
    size: InputSize,
}

impl Reader {
    /// Reads all files before anything is saved. A file that is damaged after its first rows fails the import.
    fn read(
        &self,
        sources: &[SourceFile],
        times: ObservationTimes,
        mut rejections: RejectionReport,
        mut admission: Admission,
    ) -> Result<Input, Error> {
        let (mut rows, mut files) = (RowBuffer::new(self.size.rows), Vec::with_capacity(sources.len()));
        let mut new_records = NewRecords::new(self.options.track, times.now);
        let mut found_mappings = BTreeSet::new();
        for source in sources {
            let shared = Shared {
                rows: &mut rows,
                new_records: &mut new_records,
                rejections: &mut rejections,
                admission: &mut admission,
                monitor: &self.monitor,
                found_mappings: &mut found_mappings,
            };
            let rules = TableRules { options: &self.options, source, times };
            files.push(read_file(rules, &|bytes| self.bar.inc(bytes), shared)?);
        }
        let has_rows = files.iter().any(|file| file.rows_read > 0);
        let missing = self.options.mappings.iter().find(|mapping| !found_mappings.contains(&mapping.theirs));
        match missing.filter(|_| has_rows) {
            Some(missing) => Err(Error::MappedColumnMissing(missing.theirs.clone())),
            None => Ok(Input { rows, new_records, files, rejections }),
        }
    }
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
