//! The files of an import as a stream of rows with their places: what kind each is, and the reading of CSV with a
//! header and of JSON Lines.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::column::{Column, RawRow, Value};
use super::{Error, parquet};

/// The longest row that is read, in bytes: far more than any row needs, and few enough that one without an end is
/// noticed long before memory is.
const LONGEST: usize = 128 << 10;
/// The shortest line that a row is expected to have, in bytes.
const SHORTEST: u64 = 64;
/// What begins a file of UTF-8 that some programs write.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A row as a file has it, or why its text is no row.
pub struct Line<'a> {
    pub number: u64,
    pub row: Result<RawRow<'a>, String>,
}

/// How much there is to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub bytes: u64,
    /// At least as many rows as there are, within reason.
    pub rows: u64,
}

/// Counts what has been read of a file, for the progress bar.
struct Counted<R> {
    inner: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Ends the reading of a record that has no end, as one after a quote that is never closed.
struct Bounded<R> {
    inner: R,
    /// Bytes read since the last record was complete.
    since: Rc<Cell<usize>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since.get() > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let read = self.inner.read(buffer)?;
        self.since.update(|since| since + read);
        Ok(read)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    JsonLines,
    Parquet,
}

/// Tells a file's format: by what it begins with where that is beyond doubt, else by its name.
fn format(path: &Path) -> Result<Format, Error> {
    let unreadable = |error| Error::File(path.to_owned(), error);
    let mut file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    let mut beginning = Vec::new();
    file.by_ref().take(512).read_to_end(&mut beginning).map_err(unreadable)?;
    if parquet::is_parquet(&beginning) {
        return Ok(Format::Parquet);
    }
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "csv" => Ok(Format::Csv),
        "jsonl" | "ndjson" => Ok(Format::JsonLines),
        "parquet" | "pq" => Ok(Format::Parquet),
        _ if without_mark(&beginning).trim_ascii_start().starts_with(b"{") => Ok(Format::JsonLines),
        _ => Err(Error::Format(path.to_owned())),
    }
}

fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Checks that every file can be opened and is of a known format, and says how much they hold together.
pub fn check(files: &[PathBuf]) -> Result<Amount, Error> {
    let mut amount = Amount::default();
    for path in files {
        let unreadable = |error| Error::File(path.clone(), error);
        let format = format(path)?;
        let bytes = path.metadata().map_err(unreadable)?.len();
        amount.bytes += bytes;
        amount.rows += match format {
            Format::Csv | Format::JsonLines => bytes / SHORTEST,
            Format::Parquet => parquet::count(path)?,
        };
    }
    Ok(amount)
}

/// Reads a file from its beginning, line by line, until `take` has had enough.
pub fn lines(
    path: &Path,
    bytes: &Arc<AtomicU64>,
    mut take: impl FnMut(Line<'_>) -> bool,
) -> Result<(), Error> {
    let format = format(path)?;
    if format == Format::Parquet {
        return parquet::rows(path, bytes, &mut take);
    }
    let file = File::open(path).map_err(|error| Error::File(path.to_owned(), error))?;
    let file = BufReader::with_capacity(1 << 18, Counted { inner: file, bytes: bytes.clone() });
    match format {
        Format::Csv => csv_lines(path, file, &mut take),
        _ => json_lines(path, file, &mut take),
    }
}

fn csv_lines(
    path: &Path,
    mut file: impl BufRead,
    take: &mut dyn FnMut(Line<'_>) -> bool,
) -> Result<(), Error> {
    let beginning = file.fill_buf().map_err(|error| Error::File(path.to_owned(), error))?;
    // The reader says where a record starts before it has passed over the second half of a line's end.
    let first_end = beginning.iter().position(|byte| *byte == b'\n');
    let behind = u64::from(first_end.is_some_and(|end| end > 0 && beginning[end - 1] == b'\r'));
    let since = Rc::new(Cell::new(0));
    let bounded = Bounded { inner: file, since: since.clone() };
    let mut reader = csv::ReaderBuilder::new().flexible(true).buffer_capacity(1 << 16).from_reader(bounded);
    let broken = |error, after: u64| match since.get() > LONGEST {
        true => Error::Endless { path: path.to_owned(), after, longest: LONGEST },
        false => Error::Csv(path.to_owned(), error),
    };
    let header = reader.byte_headers().map_err(|error| broken(error, 0))?.clone();
    let columns: Vec<Option<Column>> =
        header.iter().map(|name| Column::of_header(&String::from_utf8_lossy(name))).collect();
    if !columns.contains(&Some(Column::Platform)) {
        return Err(Error::Header(path.to_owned()));
    }
    let mut record = csv::ByteRecord::new();
    let mut number = 1;
    loop {
        since.set(0);
        match reader.read_byte_record(&mut record) {
            Ok(false) => return Ok(()),
            Ok(true) => {
                number = record.position().map_or(0, csv::Position::line) + behind;
                if !take(Line { number, row: csv_row(&columns, &record) }) {
                    return Ok(());
                }
            }
            Err(error) => return Err(broken(error, number)),
        }
    }
}

fn csv_row<'a>(columns: &[Option<Column>], record: &'a csv::ByteRecord) -> Result<RawRow<'a>, String> {
    if record.len() != columns.len() {
        return Err(format!("has {} fields where the header has {}", record.len(), columns.len()));
    }
    let mut row = RawRow::default();
    for (column, field) in columns.iter().zip(record.iter()) {
        if let Some(column) = column
            && !field.is_empty()
        {
            let text =
                std::str::from_utf8(field).map_err(|_| format!("{}: is not UTF-8", column.as_str()))?;
            row.set(*column, Value::text(text));
        }
    }
    Ok(row)
}

fn json_lines(
    path: &Path,
    mut file: impl BufRead,
    take: &mut dyn FnMut(Line<'_>) -> bool,
) -> Result<(), Error> {
    let unreadable = |error| Error::File(path.to_owned(), error);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let longest = LONGEST as u64;
        if file.by_ref().take(longest + 1).read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            break;
        }
        let text = if number == 1 { without_mark(&line) } else { &line };
        let row = if line.len() > LONGEST && !line.ends_with(b"\n") {
            file.skip_until(b'\n').map_err(unreadable)?;
            Err(format!("is longer than {LONGEST} bytes"))
        } else if text.trim_ascii().is_empty() {
            continue;
        } else {
            serde_json::from_slice(text).map_err(|error| format!("is no JSON object of a row: {error}"))
        };
        if !take(Line { number, row }) {
            break;
        }
    }
    Ok(())
}
