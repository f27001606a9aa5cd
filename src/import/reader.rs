//! Detects the format of files, and reads CSV and JSON Lines as streams of rows.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use indicatif::ProgressBar;

use super::column::Column;
use super::error::Error;
use super::parquet;
use super::raw_row::{InputRow, RawRow, RawValue, RowSink};

/// Bytes of a row: more than any valid row has, yet little memory if a quote is left open.
const MAX_ROW_BYTES: usize = 128 << 10;
/// Bytes of the shortest expected row.
const MIN_ROW_BYTES: u64 = 64;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The size of all files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputSize {
    pub bytes: u64,
    /// An upper bound, unless rows are unusually short.
    pub rows: u64,
}

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputFormat {
    Csv,
    JsonLines,
    Parquet,
}

/// Detects a file's format by its first bytes, else by its extension.
fn detect_format(path: &Path) -> Result<InputFormat, Error> {
    let failed = |error| Error::file(path, error);
    let mut file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    let mut start = Vec::new();
    file.by_ref().take(512).read_to_end(&mut start).map_err(failed)?;
    if parquet::is_parquet(&start) {
        return Ok(InputFormat::Parquet);
    }
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "csv" => Ok(InputFormat::Csv),
        "jsonl" | "ndjson" => Ok(InputFormat::JsonLines),
        "parquet" | "pq" => Ok(InputFormat::Parquet),
        _ if without_byte_order_mark(&start).trim_ascii_start().starts_with(b"{") => {
            Ok(InputFormat::JsonLines)
        }
        _ => Err(Error::Format(path.to_owned())),
    }
}

fn without_byte_order_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Checks that every file can be opened and has a known format, and returns their size.
pub fn check_files(files: &[PathBuf]) -> Result<InputSize, Error> {
    let mut size = InputSize::default();
    for path in files {
        let failed = |error| Error::file(path, error);
        let format = detect_format(path)?;
        let bytes = path.metadata().map_err(failed)?.len();
        size.bytes += bytes;
        size.rows += match format {
            InputFormat::Csv | InputFormat::JsonLines => bytes / MIN_ROW_BYTES,
            InputFormat::Parquet => parquet::count_rows(path)?,
        };
    }
    Ok(size)
}

/// Passes each row of a file to `consume`.
pub fn read_rows(path: &Path, bar: &ProgressBar, consume: &mut RowSink<'_>) -> Result<(), Error> {
    let format = detect_format(path)?;
    if format == InputFormat::Parquet {
        return parquet::read_rows(path, bar, consume);
    }
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    let file = BufReader::with_capacity(1 << 18, bar.wrap_read(file));
    match format {
        InputFormat::Csv => read_csv(path, file, consume),
        _ => read_json_lines(path, file, consume),
    }
}

fn read_csv(path: &Path, mut file: impl BufRead, consume: &mut RowSink<'_>) -> Result<(), Error> {
    let start = file.fill_buf().map_err(|error| Error::file(path, error))?;
    // With CRLF, the reader's position of a record is before the line feed, so line numbers are one too low.
    let first_end = start.iter().position(|byte| *byte == b'\n');
    let line_offset = u64::from(first_end.is_some_and(|end| end > 0 && start[end - 1] == b'\r'));
    let record_bytes = Rc::new(Cell::new(0));
    let limited = RecordLimit { inner: file, record_bytes: record_bytes.clone() };
    let mut reader = csv::ReaderBuilder::new().flexible(true).buffer_capacity(1 << 16).from_reader(limited);
    let csv_error = |error, after: u64| match record_bytes.get() > MAX_ROW_BYTES {
        true => Error::RecordTooLong { path: path.to_owned(), after, max_bytes: MAX_ROW_BYTES },
        false => Error::Csv(path.to_owned(), error),
    };
    let header = reader.byte_headers().map_err(|error| csv_error(error, 0))?.clone();
    let columns: Vec<Option<Column>> =
        header.iter().map(|name| Column::from_header(&String::from_utf8_lossy(name))).collect();
    if !columns.contains(&Some(Column::PLATFORM)) {
        return Err(Error::Header(path.to_owned()));
    }
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

fn parse_csv_row<'a>(columns: &[Option<Column>], record: &'a csv::ByteRecord) -> Result<RawRow<'a>, String> {
    if record.len() != columns.len() {
        return Err(format!("has {} fields, but the header has {}", record.len(), columns.len()));
    }
    let mut row = RawRow::default();
    for (column, field) in columns.iter().zip(record.iter()) {
        if let Some(column) = column
            && !field.is_empty()
        {
            let text = std::str::from_utf8(field).map_err(|_| format!("{}: is not UTF-8", column.name()))?;
            row.set(*column, RawValue::text(text));
        }
    }
    Ok(row)
}

fn read_json_lines(path: &Path, mut file: impl BufRead, consume: &mut RowSink<'_>) -> Result<(), Error> {
    let failed = |error| Error::file(path, error);
    let mut text = Vec::new();
    for line in 1.. {
        text.clear();
        if file.by_ref().take(MAX_ROW_BYTES as u64 + 1).read_until(b'\n', &mut text).map_err(failed)? == 0 {
            break;
        }
        let json = if line == 1 { without_byte_order_mark(&text) } else { &text };
        let row = if text.len() > MAX_ROW_BYTES && !text.ends_with(b"\n") {
            file.skip_until(b'\n').map_err(failed)?;
            Err(format!("has more than {MAX_ROW_BYTES} bytes"))
        } else if json.trim_ascii().is_empty() {
            continue;
        } else {
            serde_json::from_slice(json).map_err(|error| format!("is not a JSON object: {error}"))
        };
        consume(InputRow { line, row })?;
    }
    Ok(())
}
