use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::store;

/// Why an import stopped. What it has saved until then stays; running it again completes it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{0}: unknown format: expected CSV (.csv), JSON Lines (.jsonl, .ndjson), either also as .gz or .zst, or \
         Parquet (.parquet)"
    )]
    Format(PathBuf),
    #[error("{0}: is a spreadsheet or a ZIP archive: save it as \"CSV UTF-8\", or unpack it")]
    Archive(PathBuf),
    #[error("{0}: is UTF-16: save it as UTF-8, in a spreadsheet as \"CSV UTF-8\"")]
    Utf16(PathBuf),
    #[error("{0}: is not a regular file: name one, or write the contents to one first")]
    NotAFile(PathBuf),
    #[error("cannot read {0}: {1}")]
    File(PathBuf, io::Error),
    #[error("cannot read {path} after line {after}: {error}")]
    Line { path: PathBuf, after: u64, error: io::Error },
    #[error("{0}: {1}")]
    Parquet(PathBuf, ParquetError),
    #[error(
        "{path}: the record after line {after} has more than {max_bytes} bytes: check for an unclosed quote"
    )]
    RecordTooLong { path: PathBuf, after: u64, max_bytes: usize },
    #[error(
        "{0}: has no column `platform`: a file needs a header with column names; --map names those of other programs"
    )]
    Header(PathBuf),
    #[error("{0}: has two columns `{1}`: rename or remove one")]
    DuplicateColumn(PathBuf, &'static str),
    #[error("--map names `{0}` twice: map a column to one other")]
    MappedTwice(String),
    #[error("no file has the column `{0}` of --map: check its spelling")]
    MappedColumnMissing(String),
    #[error("the report {0} would overwrite an input file: choose another path with --report")]
    ReportIsInput(PathBuf),
    #[error("cannot write the report {0}: {1}")]
    Report(PathBuf, io::Error),
    #[error("cannot write temporary files (set TMPDIR to choose another folder): {0}")]
    TemporaryFile(io::Error),
    #[error("{0}")]
    Store(#[from] store::Error),
    #[error("the import was cancelled")]
    Cancelled,
    #[error("reading the files was interrupted")]
    Interrupted,
}

impl Error {
    pub(super) fn file(path: &Path, error: io::Error) -> Self {
        Error::File(path.to_owned(), error)
    }

    pub(super) fn parquet(path: &Path, error: ParquetError) -> Self {
        Error::Parquet(path.to_owned(), error)
    }
}
