//! Opens files, and passes on their rows.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use table_file::ReadOptions;

use super::error::Error;
use super::options::{ImportOptions, SourceFile};
use super::parquet;
use super::row_sink::RowSink;

/// Bytes of the shortest expected row.
const MIN_ROW_BYTES: u64 = 64;
/// How many times smaller compressed files usually are.
const COMPRESSION_RATIO: u64 = 10;
/// How compressed files start: gzip, zstd, xz, ZIP.
const COMPRESSED_MARKS: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"PK"];
const MARK_BYTES: u64 = 8;

/// The size of all files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InputSize {
    pub bytes: u64,
    /// An upper bound, unless rows are unusually short.
    pub rows: u64,
}

/// Checks that every file can be opened, and returns their size.
pub fn check_files(sources: &[SourceFile]) -> Result<InputSize, Error> {
    let mut size = InputSize::default();
    for source in sources {
        let path = &source.path;
        let failed = |error| Error::file(path, error);
        let start = read_start(path)?;
        let bytes = path.metadata().map_err(failed)?.len();
        size.bytes += bytes;
        let is_compressed = COMPRESSED_MARKS.iter().any(|mark| start.starts_with(mark));
        size.rows += match is_compressed {
            _ if parquet::is_parquet(&start) => parquet::count_rows(path).unwrap_or_default(),
            true => bytes * COMPRESSION_RATIO / MIN_ROW_BYTES,
            false => bytes / MIN_ROW_BYTES,
        };
    }
    Ok(size)
}

fn read_start(path: &PathBuf) -> Result<Vec<u8>, Error> {
    let failed = |error| Error::file(path, error);
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Error::NotAFile(path.clone()));
    }
    let mut start = Vec::new();
    file.take(MARK_BYTES).read_to_end(&mut start).map_err(failed)?;
    Ok(start)
}

/// Passes the rows of a file on. `on_bytes` counts what is read.
pub fn read_tables(
    source: &SourceFile,
    options: &ImportOptions,
    on_bytes: &dyn Fn(u64),
    sink: &mut impl RowSink,
) -> Result<(), Error> {
    let start = read_start(&source.path)?;
    if parquet::is_parquet(&start) {
        return parquet::read_rows(&source.path, on_bytes, sink);
    }
    let read_options = ReadOptions { max_unpacked_bytes: options.max_unpacked_bytes, on_bytes };
    table_file::read(&source.path, &source.name, &read_options, sink)
}
