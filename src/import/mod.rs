//! `tidemark import`: history from another tracker, written as the tracker itself would have written it.
//!
//! The files are read first, and where they are more than a batch their rows are laid aside by account; then batch after
//! batch is written, each one unit of work. Because the last known value of every field carries its
//! time (`model::latest`) and a snapshot replaces its day only when it is later, the order of rows means nothing
//! and loading a file twice changes nothing.

mod batch;
mod column;
mod numbers;
mod parquet;
mod progress;
mod read;
mod report;
mod row;
mod rows;
mod spill;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::parquet::errors::ParquetError;
use chrono::{DateTime, Utc};
use indicatif::ProgressBar;
use serde::Serialize;
use tokio::sync::mpsc;
use uuid::Uuid;

use self::batch::{Batch, Name};
use self::numbers::Numbers;
use self::progress::{progress_bar, show_rows};
use self::read::Amount;
use self::report::Report;
use self::row::{Row, Times};
use self::rows::Rows;
use crate::app::Databases;
use crate::model::latest::{LatestValue, Timestamped};
use crate::model::platform::Platform;
use crate::store::outbox::visibility;
use crate::store::records::imports;
use crate::store::records::organizations;
use crate::store::{self, Write, retry_on_conflict};

/// After how many rows the progress bar moves.
const SHOWN_EVERY: u64 = 4_096;
/// Accounts whose creators are linked in one unit of work.
const LINKS: usize = 1_000;

/// How a load is to be done.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Accounts that are not tracked yet are created active instead of paused.
    pub track: bool,
    /// Where refused rows are written; beside the first file by default.
    pub report: Option<PathBuf>,
    /// Whether to draw a progress bar on standard error.
    pub progress: bool,
}

/// What a load did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub rows_read: u64,
    pub accounts: u64,
    pub videos: u64,
    pub snapshots_written: u64,
    pub refused: u64,
    pub report_file: Option<PathBuf>,
}

/// Why a load stopped. What was loaded until then stays; running it again completes it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}: it is none of CSV (.csv), JSON Lines (.jsonl, .ndjson) and Parquet (.parquet)")]
    Format(PathBuf),
    #[error("cannot read {0}: {1}")]
    File(PathBuf, std::io::Error),
    #[error("{0}: {1}")]
    Csv(PathBuf, csv::Error),
    #[error("{0}: {1}")]
    Parquet(PathBuf, ParquetError),
    #[error("{path}: the record after line {after} is longer than {longest} bytes: is a quote left open?")]
    Endless { path: PathBuf, after: u64, longest: usize },
    #[error("{0}: it must name its columns (a CSV in its first line), `platform` among them")]
    Header(PathBuf),
    #[error("the report {0} would replace a file that is to be loaded: name another place with --report")]
    ReportIsInput(PathBuf),
    #[error("cannot write the report {0}: {1}")]
    Report(PathBuf, std::io::Error),
    #[error("cannot lay rows aside in the folder for temporary files (TMPDIR names another): {0}")]
    Temporary(std::io::Error),
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("the reading of the files was cut off")]
    Interrupted,
}

/// Loads files into an organization and returns when all of it is visible everywhere.
pub async fn load(
    stores: &Databases,
    organization: Uuid,
    files: Vec<PathBuf>,
    options: &Options,
) -> Result<Summary, Error> {
    let since = organizations::fetch_history_since(&stores.pg, organization).await?;
    let amount = read::check(&files)?;
    let report = Report::new(report_path(options, &files), &files)?;
    let bar = progress_bar(options.progress, amount.bytes);
    let now = stores.clock.now().await;
    let reading = {
        let (bar, times) = (bar.clone(), Times { since, now });
        tokio::task::spawn_blocking(move || gather(&files, amount, times, report, &bar))
    };
    let Gathered { rows, rows_read, report } = reading.await.map_err(|_| Error::Interrupted)??;

    show_rows(&bar, rows_read - report.refused());
    let (sender, mut batches) = mpsc::channel(1);
    let batching = tokio::task::spawn_blocking(move || {
        rows.batches(|batch| sender.blocking_send(batch).is_ok()).map_err(Error::Temporary)
    });
    let mut load = Load::new(stores, organization, options.track, now);
    while let Some(batch) = batches.recv().await {
        load.write(&batch).await?;
        bar.inc(batch.len() as u64);
    }
    batching.await.map_err(|_| Error::Interrupted)??;
    load.describe_accounts().await?;
    bar.set_message("waiting until everything is visible");
    visibility::wait_for_all(&stores.pg, organization).await?;
    bar.finish_and_clear();
    let (refused, report_file) = report.finish()?;
    Ok(Summary {
        rows_read,
        accounts: load.accounts.len(),
        videos: load.videos.len(),
        snapshots_written: load.snapshots,
        refused,
        report_file,
    })
}

fn report_path(options: &Options, files: &[PathBuf]) -> PathBuf {
    options.report.clone().unwrap_or_else(|| {
        let mut name = files.first().map(|file| file.clone().into_os_string()).unwrap_or_default();
        name.push(".refused.jsonl");
        PathBuf::from(name)
    })
}

/// What the files say.
struct Gathered {
    rows: Rows,
    rows_read: u64,
    report: Report,
}

/// Reads all files. One that is broken ends the load before anything of it is written.
fn gather(
    files: &[PathBuf],
    amount: Amount,
    times: Times,
    mut report: Report,
    bar: &ProgressBar,
) -> Result<Gathered, Error> {
    let bytes = Arc::new(AtomicU64::new(0));
    let (mut rows, mut rows_read) = (Rows::new(amount.rows), 0_u64);
    for path in files {
        let mut failed = None;
        read::lines(path, &bytes, |line| {
            rows_read += 1;
            if rows_read.is_multiple_of(SHOWN_EVERY) {
                bar.set_position(bytes.load(Ordering::Relaxed));
            }
            let row = line.row.and_then(|raw| Row::read(raw, times).map_err(|refused| refused.to_string()));
            let taken = match row {
                Ok(row) => rows.add(row).map_err(Error::Temporary),
                Err(reason) => report.add(path, line.number, &reason),
            };
            failed = taken.err();
            failed.is_none()
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
    }
    Ok(Gathered { rows, rows_read, report })
}

/// A load under way.
struct Load<'a> {
    stores: &'a Databases,
    organization: Uuid,
    active: bool,
    /// When the load began, by the service's clock.
    now: DateTime<Utc>,
    snapshots: u64,
    accounts: Numbers,
    videos: Numbers,
    /// What rows call the accounts' creators and categories; the latest observation decides, so this waits for
    /// the last row.
    creators: HashMap<Name, LatestValue<String>>,
    categories: HashMap<Name, LatestValue<String>>,
}

impl<'a> Load<'a> {
    fn new(stores: &'a Databases, organization: Uuid, active: bool, now: DateTime<Utc>) -> Self {
        Load {
            stores,
            organization,
            active,
            now,
            snapshots: 0,
            accounts: Numbers::default(),
            videos: Numbers::default(),
            creators: HashMap::new(),
            categories: HashMap::new(),
        }
    }

    /// Writes gathered rows.
    async fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        let pg = &self.stores.pg;
        let written = retry_on_conflict(|| batch.write(pg, self.organization, self.active, self.now)).await?;
        self.snapshots += written.snapshots;
        self.accounts.extend(written.accounts);
        self.videos.extend(written.videos);
        for (names, last) in
            [(&mut self.creators, &batch.creators), (&mut self.categories, &batch.categories)]
        {
            for (name, known) in last {
                names.entry(name.clone()).or_default().merge(known.clone());
            }
        }
        Ok(())
    }

    /// Links creators and sets categories, now that every row has been seen.
    async fn describe_accounts(&mut self) -> Result<(), Error> {
        let (pg, organization) = (&self.stores.pg, self.organization);
        let creators = named(std::mem::take(&mut self.creators));
        for links in creators.chunks(LINKS) {
            retry_on_conflict(|| async {
                let mut write = Write::begin(pg, organization).await?;
                imports::link_creators(&mut write, links).await?;
                write.commit().await
            })
            .await?;
        }
        let categories = named(std::mem::take(&mut self.categories));
        for categories in categories.chunks(LINKS) {
            retry_on_conflict(|| async {
                let mut write = Write::begin(pg, organization).await?;
                imports::set_categories(&mut write, categories).await?;
                write.commit().await
            })
            .await?;
        }
        Ok(())
    }
}

fn named(names: HashMap<Name, LatestValue<String>>) -> Vec<(Platform, String, Timestamped<String>)> {
    let mut named: Vec<_> = names
        .into_iter()
        .filter_map(|((platform, username), last)| Some((platform, username, last.into_timestamped()?)))
        .collect();
    named.sort_unstable_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    named
}
