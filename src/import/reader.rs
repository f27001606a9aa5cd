//! Reads the rows of files as streams.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::rc::Rc;

use indicatif::ProgressBar;

use super::column::Column;
use super::column_names::ColumnNames;
use super::error::Error;
use super::input_file::{self, InputFile, TextFormat};
use super::parquet;
use super::raw_row::{InputRow, MAX_ROW_BYTES, RawRow, RawValue, RowSink};

/// Separators of CSV fields; spreadsheets of some countries write semicolons.
const SEPARATORS: [u8; 3] = [b'\t', b';', b','];
/// How ClickHouse and MySQL write an unknown value in CSV.
const CSV_NULL: &[u8] = b"\\N";

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

/// Passes each row of a file to `consume`.
pub fn read_rows(
    path: &Path,
    names: &ColumnNames,
    bar: &ProgressBar,
    consume: &mut RowSink<'_>,
) -> Result<(), Error> {
    match input_file::open(path, bar)? {
        InputFile::Text { format: TextFormat::Csv, text, .. } => read_csv(path, text, names, consume),
        InputFile::Text { format: TextFormat::JsonLines, text, .. } => {
            read_json_lines(path, text, names, consume)
        }
        InputFile::Parquet => parquet::read_rows(path, names, bar, consume),
    }
}

fn read_csv(
    path: &Path,
    mut file: Box<dyn BufRead>,
    names: &ColumnNames,
    consume: &mut RowSink<'_>,
) -> Result<(), Error> {
    let start = file.fill_buf().map_err(|error| Error::file(path, error))?;
    let header_end = start.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(start.len());
    let (first_line, rest) = start.split_at(header_end);
    // With CRLF, the reader's position of a record is before the line feed, so line numbers are one too low.
    let line_offset = u64::from(rest.starts_with(b"\r\n"));
    let separator = find_separator(first_line);
    let record_bytes = Rc::new(Cell::new(0));
    let limited = RecordLimit { inner: file, record_bytes: record_bytes.clone() };
    let mut builder = csv::ReaderBuilder::new();
    builder.flexible(true).delimiter(separator).buffer_capacity(1 << 16);
    let mut reader = builder.from_reader(limited);
    let csv_error = |error: csv::Error, after: u64| match record_bytes.get() > MAX_ROW_BYTES {
        true => Error::RecordTooLong { path: path.to_owned(), after, max_bytes: MAX_ROW_BYTES },
        false => Error::Line { path: path.to_owned(), after, error: error.into() },
    };
    let header = reader.byte_headers().map_err(|error| csv_error(error, 0))?;
    let header: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
    let columns = names.find_all(path, header.iter().map(AsRef::as_ref))?;
    let mut record = csv::ByteRecord::new();
    let mut line = 1;
    loop {
        record_bytes.set(0);
        match reader.read_byte_record(&mut record) {
            Ok(false) => return Ok(()),
            Ok(true) => {
                line = record.position().map_or(0, csv::Position::line) + line_offset;
                consume(InputRow { line, row: parse_csv_row(&columns, &record) })?;
            }
            Err(error) => return Err(csv_error(error, line)),
        }
    }
}

/// Returns the most frequent separator of the header; commas if there is none.
fn find_separator(header: &[u8]) -> u8 {
    let unquoted = || header.split(|byte| *byte == b'"').step_by(2).flatten();
    let count = |separator: &u8| unquoted().filter(|byte| *byte == separator).count();
    SEPARATORS.into_iter().max_by_key(count).unwrap_or(b',')
}

fn parse_csv_row<'a>(columns: &[Option<Column>], record: &'a csv::ByteRecord) -> Result<RawRow<'a>, String> {
    if record.len() != columns.len() {
        let (fields, expected) = (record.len(), columns.len());
        return Err(format!(
            "has {fields} fields, but the header has {expected}: quote fields that contain the separator"
        ));
    }
    let mut row = RawRow::default();
    for (column, field) in columns.iter().zip(record.iter()) {
        if let Some(column) = column
            && !field.is_empty()
            && field != CSV_NULL
        {
            let text = std::str::from_utf8(field)
                .map_err(|_| format!("{}: is not UTF-8: save the file as UTF-8", column.name()))?;
            row.set(*column, RawValue::text(text));
        }
    }
    Ok(row)
}

fn read_json_lines(
    path: &Path,
    mut file: Box<dyn BufRead>,
    names: &ColumnNames,
    consume: &mut RowSink<'_>,
) -> Result<(), Error> {
    let mut text = Vec::new();
    for line in 1.. {
        let failed = |error| Error::Line { path: path.to_owned(), after: line - 1, error };
        text.clear();
        if file.by_ref().take(MAX_ROW_BYTES as u64 + 1).read_until(b'\n', &mut text).map_err(failed)? == 0 {
            break;
        }
        let row = if text.len() > MAX_ROW_BYTES && !text.ends_with(b"\n") {
            file.skip_until(b'\n').map_err(failed)?;
            Err(format!("has more than {MAX_ROW_BYTES} bytes: write one object per line"))
        } else if text.trim_ascii().is_empty() {
            continue;
        } else {
            RawRow::from_json(&text, names).map_err(|error| format!("is not a JSON object: {error}"))
        };
        consume(InputRow { line, row })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_frequent_separator_of_the_header_is_found() {
        for (header, separator) in [
            ("platform", b','),
            ("platform,username", b','),
            ("platform;username;views, total", b';'),
            ("platform,username,\"a;b;c;d\"", b','),
            ("platform\tusername", b'\t'),
        ] {
            assert_eq!(find_separator(header.as_bytes()), separator, "{header}");
        }
    }
}
