//! Opens files: containers and compressions down to the texts and workbooks inside.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use crate::budget::Budget;
use crate::compression::Compression;
use crate::error::{Error, zip_error};
use crate::text::Text;
use crate::{Note, ReadOptions, Sink, delimited, json, json_rows, workbook, zip_directory};

const BUFFER_BYTES: usize = 256 << 10;
const ZIP_MARK: &[u8] = b"PK\x03\x04";
/// How a ZIP archive without files starts.
const EMPTY_ZIP_MARK: &[u8] = b"PK\x05\x06";
const OLD_WORKBOOK_MARK: &[u8] = b"\xd0\xcf\x11\xe0";
/// Bytes by which containers are recognized.
const MARK_BYTES: usize = 8;

/// Reads all tables of a file. `name` tells apart files without any contents, nothing else.
pub fn read<S: Sink>(
    path: &Path,
    name: &str,
    options: &ReadOptions<'_>,
    sink: &mut S,
) -> Result<(), S::Error> {
    let opened = File::open(path).map_err(Error::Io)?;
    let budget = Budget::new(options.max_unpacked_bytes);
    let counted = Counted { inner: opened, on_bytes: options.on_bytes };
    let mut file = BufReader::with_capacity(BUFFER_BYTES, counted);
    let start = file.fill_buf().map_err(Error::Io)?;
    if start.starts_with(ZIP_MARK) || start.starts_with(EMPTY_ZIP_MARK) {
        return read_zip(&mut file.into_inner(), &budget, sink);
    }
    if start.starts_with(OLD_WORKBOOK_MARK) {
        return Err(Error::OldWorkbook.into());
    }
    let is_lines = is_json_lines_name(name);
    match Compression::detect(start) {
        None => match read_text(Box::new(file), None, is_lines, sink)? {
            Outcome::Read => Ok(()),
            Outcome::NoText => Err(Error::NoTable.into()),
        },
        Some(compression) => {
            let unpacked = compression.decompress(file).map_err(Error::Io)?;
            read_unpacked(Box::new(budget.meter(unpacked)), is_lines, sink)
        }
    }
}

enum Outcome {
    Read,
    NoText,
}

/// Reads what a compressed file contains.
fn read_unpacked<S: Sink>(
    mut stream: Box<dyn Read + '_>,
    is_lines: bool,
    sink: &mut S,
) -> Result<(), S::Error> {
    let start = read_mark(&mut stream).map_err(|error| Error::after(0, error))?;
    if is_archive(&start) || Compression::detect(&start).is_some() {
        return Err(Error::NestedArchive.into());
    }
    match read_text(Box::new(Cursor::new(start).chain(stream)), None, is_lines, sink)? {
        Outcome::Read => Ok(()),
        Outcome::NoText => Err(Error::NoTable.into()),
    }
}

fn read_text<S: Sink>(
    stream: Box<dyn Read + '_>,
    part: Option<&str>,
    is_lines: bool,
    sink: &mut S,
) -> Result<Outcome, S::Error> {
    let Some(text) = Text::open(stream).map_err(|error| Error::after(0, error))? else {
        return Ok(Outcome::NoText);
    };
    if is_lines || json::is_json(text.start()) {
        json_rows::read(text, part, is_lines, sink)?;
    } else {
        delimited::read(text, part, sink)?;
    }
    Ok(Outcome::Read)
}

/// Reads a workbook, or every table in an archive.
fn read_zip<S: Sink>(file: &mut (impl Read + Seek), budget: &Budget, sink: &mut S) -> Result<(), S::Error> {
    zip_directory::check(file)?;
    let mut archive = zip::ZipArchive::new(file).map_err(zip_error)?;
    if workbook::is_workbook(&archive) {
        return workbook::read(archive, None, budget, sink);
    }
    for index in 0..archive.len() {
        let Ok(mut member) = archive.by_index(index) else {
            // Encrypted, or compressed by a rare method.
            let name = archive.name_for_index(index).and_then(Result::ok);
            let name = display_name(name.as_deref().unwrap_or("?"));
            sink.note(Note::Left(&name));
            continue;
        };
        let name = display_name(member.name().as_deref().unwrap_or("?"));
        if member.is_dir() || is_hidden(&name) {
            continue;
        }
        let mut stream = budget.meter(&mut member);
        let start = read_mark(&mut stream).map_err(member_error)?;
        let is_lines = is_json_lines_name(&name);
        if start.starts_with(ZIP_MARK) {
            read_inner_workbook(start, stream, &name, budget, sink)?;
            continue;
        }
        let stream = Cursor::new(start.clone()).chain(stream);
        let outcome = match Compression::detect(&start) {
            Some(compression) => {
                let unpacked = compression.decompress(BufReader::new(stream)).map_err(Error::Io)?;
                let mut unpacked = budget.meter(unpacked);
                let inner = read_mark(&mut unpacked).map_err(member_error)?;
                if is_archive(&inner) || Compression::detect(&inner).is_some() {
                    Outcome::NoText
                } else {
                    read_text(Box::new(Cursor::new(inner).chain(unpacked)), Some(&name), is_lines, sink)?
                }
            }
            None => read_text(Box::new(stream), Some(&name), is_lines, sink)?,
        };
        if matches!(outcome, Outcome::NoText) {
            sink.note(Note::Left(&name));
        }
    }
    Ok(())
}

/// Reads a workbook inside an archive from a temporary file; other archives are left.
fn read_inner_workbook<S: Sink>(
    start: Vec<u8>,
    stream: impl Read,
    name: &str,
    budget: &Budget,
    sink: &mut S,
) -> Result<(), S::Error> {
    let mut copy = tempfile::tempfile().map_err(Error::Io)?;
    io::copy(&mut Cursor::new(start).chain(stream), &mut copy).map_err(member_error)?;
    copy.seek(SeekFrom::Start(0)).map_err(Error::Io)?;
    if zip_directory::check(&mut copy).is_ok()
        && let Ok(archive) = zip::ZipArchive::new(&mut copy)
        && workbook::is_workbook(&archive)
    {
        return workbook::read(archive, Some(name), budget, sink);
    }
    sink.note(Note::Left(name));
    Ok(())
}

fn read_mark(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(MARK_BYTES);
    stream.by_ref().take(MARK_BYTES as u64).read_to_end(&mut start)?;
    Ok(start)
}

fn is_archive(start: &[u8]) -> bool {
    [ZIP_MARK, EMPTY_ZIP_MARK, OLD_WORKBOOK_MARK].iter().any(|mark| start.starts_with(mark))
}

fn member_error(error: io::Error) -> Error {
    Error::after(0, error)
}

/// Files that operating systems add to archives.
fn is_hidden(name: &str) -> bool {
    name.split('/').any(|part| part == "__MACOSX" || part.starts_with("._") || part == ".DS_Store")
}

/// Names may be hostile: they are shown, and never used as paths.
fn display_name(name: &str) -> String {
    const MAX_CHARS: usize = 200;
    name.chars().take(MAX_CHARS).map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// Whether a file that may be empty, or begins with a damaged line, has an object per line.
fn is_json_lines_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name =
        [".gz", ".zst", ".xz"].iter().find_map(|extension| name.strip_suffix(extension)).unwrap_or(&name);
    name.ends_with(".jsonl") || name.ends_with(".ndjson")
}

/// Reports what is read of a file.
struct Counted<'a> {
    inner: File,
    on_bytes: &'a dyn Fn(u64),
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        (self.on_bytes)(read as u64);
        Ok(read)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.inner.seek(position)
    }
}
