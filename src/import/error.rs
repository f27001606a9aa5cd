use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

use crate::store;

/// Why an import stopped. What it has saved until then stays; running it again completes it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}: is not a regular file: name one, or write the contents to one first")]
    NotAFile(PathBuf),
    #[error("cannot read {0}: {1}")]
    File(PathBuf, io::Error),
    /// Concerns a file of which nothing has been collected.
    #[error("{0}")]
    Table(#[from] table_file::Error),
    #[error("cannot read {0}: {1}")]
    Damaged(String, table_file::Error),
    #[error("the survey of a table is complete")]
    SurveyEnded,
    #[error("{0}: {1}")]
    Parquet(PathBuf, ParquetError),
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
