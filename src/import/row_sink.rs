//! What receives the rows of tables.

use table_file::Sink;

use super::error::Error;
use super::layout::Layout;
use super::raw_row::RawRow;

/// Receives the rows of tables, also of those that have types of their own.
pub trait RowSink: Sink<Error = Error> {
    fn raw_row(&mut self, line: u64, raw: Result<RawRow<'_>, String>) -> Result<(), Error>;

    /// Returns the columns of the table that is read; `None` if its rows are not wanted.
    fn columns(&self) -> Option<&Layout>;
}
