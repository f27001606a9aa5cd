//! Opens files, and detects their format and compression.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use super::compression::Compression;
use super::error::Error;
use super::parquet;

const BUFFER_BYTES: usize = 1 << 18;
/// Bytes of the shortest expected row.
const MIN_ROW_BYTES: u64 = 64;
/// How many times smaller compressed files usually are.
const COMPRESSION_RATIO: u64 = 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// How UTF-16 files start.
const UTF_16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];
/// How ZIP archives and spreadsheets (.xlsx, .xls) start.
const ARCHIVE_MARKS: [&[u8]; 2] = [b"PK\x03\x04", b"\xd0\xcf\x11\xe0"];

/// The size of all files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputSize {
    pub bytes: u64,
    /// An upper bound, unless rows are unusually short.
    pub rows: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    Csv,
    JsonLines,
}

pub enum InputFile {
    /// UTF-8 without a byte order mark.
    Text {
        format: TextFormat,
        text: Box<dyn BufRead>,
        is_compressed: bool,
    },
    Parquet,
}

/// Checks that every file can be opened and has a known format, and returns their size.
pub fn check_files(files: &[PathBuf]) -> Result<InputSize, Error> {
    let mut size = InputSize::default();
    for path in files {
        let file = open(path, &ProgressBar::hidden())?;
        let bytes = path.metadata().map_err(|error| Error::file(path, error))?.len();
        size.bytes += bytes;
        size.rows += match file {
            InputFile::Text { is_compressed: false, .. } => bytes / MIN_ROW_BYTES,
            InputFile::Text { is_compressed: true, .. } => bytes * COMPRESSION_RATIO / MIN_ROW_BYTES,
            InputFile::Parquet => parquet::count_rows(path)?,
        };
    }
    Ok(size)
}

/// Opens a file. Its format follows from its first bytes, else from its extension. `bar` counts its bytes while they are
/// read, except those of Parquet.
pub fn open(path: &Path, bar: &ProgressBar) -> Result<InputFile, Error> {
    let failed = |error| Error::file(path, error);
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Error::NotAFile(path.to_owned()));
    }
    let mut file = BufReader::with_capacity(BUFFER_BYTES, bar.wrap_read(file));
    let start = file.fill_buf().map_err(failed)?;
    if parquet::is_parquet(start) {
        return Ok(InputFile::Parquet);
    }
    let Some(compression) = Compression::detect(path, start) else {
        return open_text(path, path, Box::new(file), false);
    };
    if start.is_empty() {
        let error = compression.damaged(&io::ErrorKind::UnexpectedEof.into());
        return Err(Error::Line { path: path.to_owned(), after: 0, error });
    }
    let text = compression.decompress(file).map_err(failed)?;
    let text = BufReader::with_capacity(BUFFER_BYTES, text);
    let name = path.file_stem().map(Path::new).filter(|_| Compression::detect(path, b"").is_some());
    match open_text(path, name.unwrap_or(path), Box::new(text), true)? {
        InputFile::Parquet => Err(Error::Format(path.to_owned())),
        text => Ok(text),
    }
}

/// Detects the format of decompressed contents. `name` is the file's name without the extension of its compression.
fn open_text(
    path: &Path,
    name: &Path,
    mut text: Box<dyn BufRead>,
    is_compressed: bool,
) -> Result<InputFile, Error> {
    let start = text.fill_buf().map_err(|error| Error::Line { path: path.to_owned(), after: 0, error })?;
    let starts_with = |marks: &[&[u8]]| marks.iter().any(|mark| start.starts_with(mark));
    if starts_with(&UTF_16_MARKS) {
        return Err(Error::Utf16(path.to_owned()));
    }
    if starts_with(&ARCHIVE_MARKS) {
        return Err(Error::Archive(path.to_owned()));
    }
    let mark = if start.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
    let extension = name.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let format = match extension.to_ascii_lowercase().as_str() {
        "parquet" | "pq" => return Ok(InputFile::Parquet),
        "csv" | "tsv" => TextFormat::Csv,
        "jsonl" | "ndjson" => TextFormat::JsonLines,
        _ if start[mark..].trim_ascii_start().starts_with(b"{") => TextFormat::JsonLines,
        _ => return Err(Error::Format(path.to_owned())),
    };
    text.consume(mark);
    Ok(InputFile::Text { format, text, is_compressed })
}
