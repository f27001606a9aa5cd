//! Checks the size of a ZIP archive's directory before it is loaded into memory.

use std::io::{Read, Seek, SeekFrom};

use crate::MAX_MEMBERS;
use crate::error::Error;

/// Bytes of the end record without its comment.
const END_BYTES: usize = 22;
const MAX_COMMENT_BYTES: usize = 65_535;
const END_MARK: &[u8] = b"PK\x05\x06";
const END_64_MARK: &[u8] = b"PK\x06\x06";
/// A field whose value is in the ZIP64 record.
const IN_END_64_16: u64 = 0xffff;
const IN_END_64_32: u64 = 0xffff_ffff;
const MAX_DIRECTORY_BYTES: u64 = 32 << 20;

/// Fails if the archive has too many files, by the records at its end.
pub(crate) fn check(file: &mut (impl Read + Seek)) -> Result<(), Error> {
    let length = file.seek(SeekFrom::End(0))?;
    let tail_bytes = length.min((END_BYTES + MAX_COMMENT_BYTES + 512) as u64);
    file.seek(SeekFrom::Start(length - tail_bytes))?;
    let mut tail = Vec::new();
    file.take(tail_bytes).read_to_end(&mut tail)?;
    file.seek(SeekFrom::Start(0))?;
    // Every record that a reader might believe.
    let records = |mark: &'static [u8]| {
        tail.windows(mark.len())
            .enumerate()
            .filter(move |(_, bytes)| *bytes == mark)
            .map(|(at, _)| &tail[at..])
    };
    let (mut has_end, mut has_end_64) = (false, false);
    for record in records(END_64_MARK) {
        if let (Some(files), Some(bytes)) = (number::<8>(record, 32), number::<8>(record, 40)) {
            has_end_64 = true;
            check_size(files, bytes)?;
        }
    }
    for record in records(END_MARK) {
        let (Some(files), Some(bytes)) = (number::<2>(record, 10), number::<4>(record, 12)) else { continue };
        has_end = true;
        if !has_end_64 || (files != IN_END_64_16 && bytes != IN_END_64_32) {
            check_size(files, bytes)?;
        }
    }
    if has_end { Ok(()) } else { Err(Error::Zip("it has no directory".to_owned())) }
}

fn check_size(files: u64, bytes: u64) -> Result<(), Error> {
    if files > MAX_MEMBERS || bytes > MAX_DIRECTORY_BYTES { Err(Error::TooManyMembers) } else { Ok(()) }
}

/// Reads a little-endian number.
fn number<const N: usize>(record: &[u8], offset: usize) -> Option<u64> {
    let bytes = record.get(offset..offset + N)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
