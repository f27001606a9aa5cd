//! The options of an import.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::mapping::ColumnMapping;
use crate::model::platform::Platform;

/// How much an archive may unpack to, as a multiple of the limit of an upload.
pub const UNPACKED_RATIO: u64 = 16;
/// Bytes of an uploaded file, unless configured.
pub const DEFAULT_MAX_UPLOAD_BYTES: u64 = 256 << 20;

/// Options of a run. Values that files contain take precedence over `platform`, `username` and `observed_at`.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// Whether new accounts are created active instead of paused.
    pub track: bool,
    /// Whether to read everything and write nothing.
    pub dry_run: bool,
    /// The platform of rows that do not name one.
    pub platform: Option<Platform>,
    /// The account of rows that do not name one.
    pub username: Option<String>,
    /// When rows without a time of observation were observed.
    pub observed_at: Option<DateTime<Utc>>,
    /// The zone of times without one.
    pub time_zone: Option<Tz>,
    /// Whether `03/04/2026` is 3 April.
    pub day_first: bool,
    /// Foreign names of columns.
    pub mappings: Vec<ColumnMapping>,
    /// Whether rows of accounts beyond the organization's cap are refused.
    pub enforces_account_cap: bool,
    /// Bytes that a compressed file may unpack to.
    pub max_unpacked_bytes: u64,
    pub report: RejectionFile,
    /// Whether to show a progress bar on standard error.
    pub progress: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        ImportOptions {
            track: false,
            dry_run: false,
            platform: None,
            username: None,
            observed_at: None,
            time_zone: None,
            day_first: false,
            mappings: Vec::new(),
            enforces_account_cap: false,
            max_unpacked_bytes: UNPACKED_RATIO * DEFAULT_MAX_UPLOAD_BYTES,
            report: RejectionFile::default(),
            progress: false,
        }
    }
}

/// The file that gets every rejected row, besides the first ones in the summary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RejectionFile {
    /// Next to the first file.
    #[default]
    BesideInput,
    At(PathBuf),
    None,
}

/// A file and what is known of it besides its contents.
#[derive(Debug, Clone)]
pub struct SourceFile {
    pub path: PathBuf,
    /// What reports call it; formats are never recognized by it.
    pub name: String,
    /// When it was written: the time of observation of formats that are "as of the export".
    pub modified_at: Option<DateTime<Utc>>,
}

impl SourceFile {
    /// Describes a file on this machine.
    pub fn local(path: PathBuf) -> Self {
        let modified = path.metadata().and_then(|metadata| metadata.modified());
        SourceFile { name: path.display().to_string(), modified_at: modified.ok().map(Into::into), path }
    }
}
