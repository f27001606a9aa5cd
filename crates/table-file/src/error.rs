use std::io;

use crate::{MAX_COLUMNS, MAX_DEPTH, MAX_MEMBERS, MAX_SHARED_STRING_BYTES};

/// Why a file cannot be read. What was read before may have been passed on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("after line {after}: {error}")]
    Line { after: u64, error: io::Error },
    #[error("the record after line {after} has more than {max_bytes} bytes: check for an unclosed quote")]
    RecordTooLong { after: u64, max_bytes: usize },
    #[error("line {line}: {reason}")]
    Json { line: u64, reason: String },
    #[error("unpacks to more than {0} bytes: unpack it, and load its files by themselves")]
    UnpacksTooLarge(u64),
    #[error("has more than {MAX_COLUMNS} columns: remove those that are not needed")]
    TooManyColumns,
    #[error("has more than {MAX_MEMBERS} files: split it")]
    TooManyMembers,
    #[error("is an archive in an archive: unpack it, and load its files by themselves")]
    NestedArchive,
    #[error("is an old Excel workbook (.xls): save it as .xlsx or as \"CSV UTF-8\"")]
    OldWorkbook,
    #[error("is no table: expected CSV, JSON, Excel (.xlsx) or Parquet, also in .zip, .gz, .zst or .xz")]
    NoTable,
    #[error("the Excel workbook is damaged: save it again ({0})")]
    Workbook(String),
    #[error(
        "the Excel workbook has over {} MiB of different texts: save it as \"CSV UTF-8\"",
        MAX_SHARED_STRING_BYTES >> 20
    )]
    SharedStringsTooLarge,
    #[error("the Excel workbook is nested deeper than {MAX_DEPTH} levels: save it again")]
    XmlTooDeep,
    #[error("the Excel workbook declares a document type, which no spreadsheet does: save it again")]
    XmlDoctype,
    #[error("the Excel workbook has a text of over 1 MiB: shorten it")]
    XmlTextTooLong,
    #[error("the ZIP archive is damaged or cut off: copy the file again ({0})")]
    Zip(String),
}

/// Unpacked more than allowed; inside an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("unpacks to more than {0} bytes")]
pub(crate) struct BudgetExceeded(pub u64);

impl Error {
    /// Returns the error of a stream after a line.
    pub(crate) fn after(after: u64, error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<BudgetExceeded>()) {
            Some(BudgetExceeded(limit)) => Error::UnpacksTooLarge(*limit),
            None => Error::Line { after, error },
        }
    }
}

pub(crate) fn zip_error(error: zip::result::ZipError) -> Error {
    Error::Zip(error.to_string())
}
