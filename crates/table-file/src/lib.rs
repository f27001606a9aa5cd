//! Reads the rows of tables in files that other programs wrote: CSV in any shape, JSON, Excel workbooks, plain, compressed or
//! in ZIP archives, as UTF-8, UTF-16 or Windows-1252.
//!
//! Contents decide, never names. Everything is streamed: memory depends on the longest row, not on the file. Files are
//! untrusted, and every limit ends in an error.

mod budget;
mod compression;
mod container;
mod delimited;
mod error;
mod header;
mod json;
mod json_rows;
mod text;
mod value;
mod workbook;
mod wrapped;
mod xml_check;
mod zip_directory;

pub use container::read;
pub use error::Error;
pub use value::{Cells, Value};

/// Bytes of a row in a text file.
pub const MAX_ROW_BYTES: usize = 128 << 10;
/// Columns of a table, which is also Excel's limit.
pub const MAX_COLUMNS: usize = 16_384;
/// Files in a ZIP archive.
pub const MAX_MEMBERS: u64 = 65_535;
/// Levels of nesting in JSON and XML.
pub const MAX_DEPTH: usize = 64;
/// Bytes of all texts in a JSON row.
pub const MAX_JSON_ROW_BYTES: usize = 4 << 20;
/// Bytes of the shared strings of a workbook, which are in memory.
pub const MAX_SHARED_STRING_BYTES: u64 = 64 << 20;
/// Lines among which the header is sought.
pub const MAX_TITLE_LINES: usize = 20;

/// How to read a file.
pub struct ReadOptions<'a> {
    /// Bytes that a compressed file may unpack to.
    pub max_unpacked_bytes: u64,
    /// Called with the number of bytes that were read.
    pub on_bytes: &'a dyn Fn(u64),
}

/// The columns of a table, and its first rows.
#[derive(Debug)]
pub struct Table<'t> {
    /// The file in an archive, or the sheet of a workbook.
    pub part: Option<&'t str>,
    pub columns: &'t [String],
    /// Whether later rows can have no other columns.
    pub has_all_columns: bool,
    /// The first rows as text. Those of JSON are empty.
    pub sample: &'t [Vec<String>],
}

/// What to do with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Read,
    /// These are no columns: try the next line.
    NoHeader,
    /// Go on with the next table.
    Leave,
}

/// What was found besides rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note<'n> {
    /// The text is not UTF-8 and was read as Windows-1252.
    Windows1252,
    /// Lines were quoted as a whole.
    WrappedLines,
    /// A file of an archive, or a sheet of a workbook, is no table.
    Left(&'n str),
}

/// Receives the tables of a file.
pub trait Sink {
    type Error: From<Error>;

    /// Decides by the columns. Called for each line that may be the header.
    fn table(&mut self, table: &Table<'_>) -> Result<Decision, Self::Error>;

    /// Adds a column to the current table: objects may have different fields.
    fn column(&mut self, name: &str);

    /// Receives a row with its line, or why the line is no row.
    fn row(&mut self, line: u64, cells: Result<Cells<'_>, String>) -> Result<(), Self::Error>;

    /// Ends the current table.
    fn end(&mut self) -> Result<(), Self::Error>;

    /// No line was accepted as the header.
    fn unknown(&mut self, table: &Table<'_>) -> Result<(), Self::Error>;

    fn note(&mut self, note: Note<'_>);
}
