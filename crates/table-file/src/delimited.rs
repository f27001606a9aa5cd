//! Reads delimited text.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use crate::error::Error;
use crate::header::{self, Found, Layout};
use crate::text::Text;
use crate::wrapped::Unwrapped;
use crate::{Cells, MAX_ROW_BYTES, Note, Sink};

const BUFFER_BYTES: usize = 64 << 10;

/// Fails when a record is too long, because a quote is never closed.
struct RecordLimit<R> {
    inner: R,
    /// Bytes read since the last complete record.
    record_bytes: Rc<Cell<usize>>,
}

impl<R: Read> Read for RecordLimit<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.record_bytes.get() > MAX_ROW_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let read = self.inner.read(buffer)?;
        self.record_bytes.update(|bytes| bytes + read);
        Ok(read)
    }
}

/// Reads the table of a text. Rows of separators alone are skipped.
pub(crate) fn read<S: Sink>(mut text: Text<'_>, part: Option<&str>, sink: &mut S) -> Result<(), S::Error> {
    let is_whole = text.is_whole();
    let Found::Table(layout) = header::find(text.start(), is_whole, part, sink)? else { return Ok(()) };
    // With CRLF, the reader's position of a record is before the line feed, so line numbers are one too low.
    let line_end = text.start()[layout.offset..].iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    let has_crlf = line_end.is_some_and(|end| text.start()[layout.offset + end..].starts_with(b"\r\n"));
    text.skip(layout.offset);
    let windows_1252 = text.windows_1252_flag();
    let lines = layout.lines_before + u64::from(has_crlf && !layout.is_wrapped);
    if layout.is_wrapped {
        sink.note(Note::WrappedLines);
        let unwrapped = Unwrapped::new(BufReader::with_capacity(BUFFER_BYTES, text));
        read_records(unwrapped, layout, lines, sink)?;
    } else {
        read_records(text, layout, lines, sink)?;
    }
    if windows_1252.get() {
        sink.note(Note::Windows1252);
    }
    sink.end()
}

fn read_records<S: Sink>(
    text: impl Read,
    layout: Layout,
    line_offset: u64,
    sink: &mut S,
) -> Result<(), S::Error> {
    let record_bytes = Rc::new(Cell::new(0));
    let limited = RecordLimit { inner: text, record_bytes: record_bytes.clone() };
    let mut builder = csv::ReaderBuilder::new();
    builder.has_headers(false).flexible(true).delimiter(layout.separator).buffer_capacity(BUFFER_BYTES);
    let mut reader = builder.from_reader(limited);
    let mut record = csv::ByteRecord::new();
    let mut line = layout.lines_before;
    let mut is_header = true;
    let mut columns = 0;
    loop {
        record_bytes.set(0);
        match reader.read_byte_record(&mut record) {
            Ok(false) => return Ok(()),
            Ok(true) => {
                line = record.position().map_or(0, csv::Position::line) + line_offset;
                if std::mem::take(&mut is_header) {
                    columns = record.len();
                    line = layout.lines_before + 1;
                } else if record.iter().any(|field| !field.trim_ascii().is_empty()) {
                    sink.row(line, check_length(&mut record, columns).map(|()| Cells::Fields(&record)))?;
                }
            }
            Err(_) if record_bytes.get() > MAX_ROW_BYTES => {
                return Err(Error::RecordTooLong { after: line, max_bytes: MAX_ROW_BYTES }.into());
            }
            Err(error) => {
                let error = match error.into_kind() {
                    csv::ErrorKind::Io(error) => error,
                    kind => io::Error::other(format!("{kind:?}")),
                };
                return Err(Error::after(line, error).into());
            }
        }
    }
}

/// Checks the number of fields. Spreadsheets write empty ones beyond the header.
fn check_length(record: &mut csv::ByteRecord, columns: usize) -> Result<(), String> {
    let fields = record.len();
    if fields == columns {
        return Ok(());
    }
    if fields > columns && record.iter().skip(columns).all(<[u8]>::is_empty) {
        record.truncate(columns);
        return Ok(());
    }
    Err(format!("has {fields} fields, but the header has {columns}: quote fields that contain the separator"))
}
