//! `tidemark import`: history from another tracker, written as the tracker itself would have written it.
//!
//! Rows are gathered into batches, each one unit of work. Because the last known value of every field carries its
//! time (`model::latest`) and a snapshot replaces its day only when it is later, the order of rows means nothing
//! and loading a file twice changes nothing.

mod batch;
mod read;
mod report;
mod row;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tokio::sync::mpsc;
use uuid::Uuid;

use self::batch::{Batch, Name};
use self::report::Report;
use self::row::{Row, VideoRow};
use crate::app::Stores;
use crate::model::latest::{Known, Last, learn};
use crate::model::platform::Platform;
use crate::store::{self, Write, applied, contending, imports};

/// Rows a unit of work holds: enough for few round trips, few enough to keep memory and locks short.
const BATCH_ROWS: usize = 20_000;
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
    #[error("there is no organization {0}: see `tidemark org list`")]
    NoOrganization(Uuid),
    #[error("{0}: the name must end in .csv, .jsonl or .ndjson")]
    Format(PathBuf),
    #[error("cannot read {0}: {1}")]
    File(PathBuf, std::io::Error),
    #[error("{0}: {1}")]
    Csv(PathBuf, csv::Error),
    #[error("{path}: the record after line {after} is longer than {longest} bytes: is a quote left open?")]
    Endless { path: PathBuf, after: u64, longest: usize },
    #[error("{0}: the first line must name the columns, `platform` among them")]
    Header(PathBuf),
    #[error("the report {0} would replace a file that is to be loaded: name another place with --report")]
    ReportIsInput(PathBuf),
    #[error("cannot write the report {0}: {1}")]
    Report(PathBuf, std::io::Error),
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error("the reading of the files was cut off")]
    Interrupted,
}

/// What the reading thread hands over.
enum Piece {
    Row(Box<Row>),
    Refused { file: usize, line: u64, reason: String },
}

/// Loads files into an organization and returns when all of it is visible everywhere.
pub async fn load(
    stores: &Stores,
    organization: Uuid,
    files: Vec<PathBuf>,
    options: &Options,
) -> Result<Summary, Error> {
    if !imports::organization_exists(&stores.pg, organization).await? {
        return Err(Error::NoOrganization(organization));
    }
    let length = read::check(&files)?;
    let mut report = Report::new(report_path(options, &files), &files)?;
    let bar = progress_bar(options.progress, length);
    let now = stores.clock.now().await;
    let bytes = Arc::new(AtomicU64::new(0));
    let (sender, mut pieces) = mpsc::channel(4 * 1024);
    let reader = {
        let (files, bytes) = (files.clone(), bytes.clone());
        tokio::task::spawn_blocking(move || read_files(&files, &bytes, now, &sender))
    };

    let mut load = Load::new(stores, organization, options.track, now);
    let mut received = Vec::with_capacity(1024);
    while pieces.recv_many(&mut received, 1024).await > 0 {
        for piece in received.drain(..) {
            load.rows_read += 1;
            match piece {
                Piece::Row(row) => load.add(*row),
                Piece::Refused { file, line, reason } => report.add(&files[file], line, &reason)?,
            }
        }
        bar.set_position(bytes.load(Ordering::Relaxed));
        if load.batch.len() >= BATCH_ROWS {
            load.write().await?;
        }
    }
    reader.await.map_err(|_| Error::Interrupted)??;
    load.write().await?;
    load.describe_accounts().await?;
    bar.set_message("waiting until everything is visible");
    applied::wait(&stores.pg, organization).await?;
    bar.finish_and_clear();
    let (refused, report_file) = report.finish()?;
    Ok(Summary {
        rows_read: load.rows_read,
        accounts: load.accounts.len() as u64,
        videos: load.videos.len() as u64,
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

fn progress_bar(shown: bool, length: u64) -> ProgressBar {
    if !shown {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Reads all files in the reading thread; stops when nobody listens any more.
fn read_files(
    files: &[PathBuf],
    bytes: &Arc<AtomicU64>,
    now: DateTime<Utc>,
    sender: &mpsc::Sender<Piece>,
) -> Result<(), Error> {
    for (file, path) in files.iter().enumerate() {
        read::lines(path, bytes, |line| {
            let row = line.row.and_then(|raw| Row::read(raw, now).map_err(|refused| refused.to_string()));
            let piece = match row {
                Ok(row) => Piece::Row(Box::new(row)),
                Err(reason) => Piece::Refused { file, line: line.number, reason },
            };
            sender.blocking_send(piece).is_ok()
        })?;
    }
    Ok(())
}

/// A load under way.
struct Load<'a> {
    stores: &'a Stores,
    organization: Uuid,
    active: bool,
    /// When the load began, by the service's clock.
    now: DateTime<Utc>,
    batch: Batch,
    rows_read: u64,
    snapshots: u64,
    accounts: HashSet<Uuid>,
    videos: HashSet<(Platform, String)>,
    /// What rows call the accounts' creators and categories; the latest observation decides, so this waits for
    /// the last row.
    creators: HashMap<Name, Last<String>>,
    categories: HashMap<Name, Last<String>>,
}

impl<'a> Load<'a> {
    fn new(stores: &'a Stores, organization: Uuid, active: bool, now: DateTime<Utc>) -> Self {
        Load {
            stores,
            organization,
            active,
            now,
            batch: Batch::default(),
            rows_read: 0,
            snapshots: 0,
            accounts: HashSet::new(),
            videos: HashSet::new(),
            creators: HashMap::new(),
            categories: HashMap::new(),
        }
    }

    fn add(&mut self, row: Row) {
        match &row {
            Row::Account(row) => {
                let named = [(&mut self.creators, &row.creator), (&mut self.categories, &row.category)];
                for (names, named) in named {
                    if named.is_some() {
                        let last = names.entry((row.platform, row.username.clone())).or_default();
                        learn(last, named.clone(), row.observed_at);
                    }
                }
            }
            Row::Video(VideoRow { platform, external_id, .. }) => {
                self.videos.insert((*platform, external_id.clone()));
            }
        }
        self.batch.add(row);
    }

    /// Writes the gathered rows.
    async fn write(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let (pg, batch) = (&self.stores.pg, &self.batch);
        let written = contending(|| batch.write(pg, self.organization, self.active, self.now)).await?;
        self.snapshots += written.snapshots;
        self.accounts.extend(written.accounts.iter().map(|account| account.id));
        self.batch = Batch::default();
        Ok(())
    }

    /// Links creators and sets categories, now that every row has been seen.
    async fn describe_accounts(&mut self) -> Result<(), Error> {
        let (pg, organization) = (&self.stores.pg, self.organization);
        let creators = named(std::mem::take(&mut self.creators));
        for links in creators.chunks(LINKS) {
            contending(|| async {
                let mut write = Write::begin(pg, organization).await?;
                imports::link_creators(&mut write, links).await?;
                write.commit().await
            })
            .await?;
        }
        let categories = named(std::mem::take(&mut self.categories));
        for categories in categories.chunks(LINKS) {
            contending(|| async {
                let mut write = Write::begin(pg, organization).await?;
                imports::categorise(&mut write, categories).await?;
                write.commit().await
            })
            .await?;
        }
        Ok(())
    }
}

fn named(names: HashMap<Name, Last<String>>) -> Vec<(Platform, String, Known<String>)> {
    let mut named: Vec<_> = names
        .into_iter()
        .filter_map(|((platform, username), last)| Some((platform, username, last?)))
        .collect();
    named.sort_unstable_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    named
}
