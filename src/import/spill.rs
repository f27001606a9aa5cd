//! Rows laid aside on disk, those of one account together: whatever order a file has, each account is then written
//! once, with all its rows, instead of again and again as the file comes back to it.
//!
//! The temporary file has no name, so that nothing of it outlives the process. Memory holds one block for each part.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use super::row::{AccountRow, Row, VideoRow};

/// Bytes of rows that are gathered before they are compressed and written.
const BLOCK: usize = 32 << 10;
/// The most parts that there are.
const MOST_PARTS: u64 = 512;

/// Rows being laid aside.
pub struct Spill {
    file: File,
    length: u64,
    parts: Vec<Part>,
}

#[derive(Default)]
struct Part {
    gathered: Vec<u8>,
    /// Where its blocks begin, and their lengths.
    blocks: Vec<(u64, usize)>,
}

fn damaged(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Spill {
    /// Makes the temporary file, for so many rows that each part has about `rows_a_part`.
    pub fn new(rows: u64, rows_a_part: u64) -> io::Result<Self> {
        let parts = rows.div_ceil(rows_a_part).clamp(1, MOST_PARTS);
        let parts = (0..parts).map(|_| Part::default()).collect();
        Ok(Spill { file: nameless()?, length: 0, parts })
    }

    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Lays a row aside.
    pub fn add(&mut self, row: &Row) -> io::Result<()> {
        let count = self.parts.len() as u64;
        let part = &mut self.parts[(place(row) % count) as usize];
        part.gathered = postcard::to_extend(row, std::mem::take(&mut part.gathered)).map_err(damaged)?;
        if part.gathered.len() >= BLOCK {
            part.write(&mut self.file, &mut self.length)?;
        }
        Ok(())
    }

    /// Hands out the rows of a part, until `take` has had enough.
    pub fn read(&mut self, part: usize, mut take: impl FnMut(Row) -> bool) -> io::Result<()> {
        let Part { gathered, blocks } = std::mem::take(&mut self.parts[part]);
        let mut compressed = Vec::new();
        let mut hand_out = |mut rows: &[u8]| -> io::Result<bool> {
            while !rows.is_empty() {
                let (row, rest) = postcard::take_from_bytes(rows).map_err(damaged)?;
                rows = rest;
                if !take(row) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        for (start, length) in blocks {
            compressed.resize(length, 0);
            self.file.read_exact_at(&mut compressed, start)?;
            let rows = lz4_flex::decompress_size_prepended(&compressed).map_err(damaged)?;
            if !hand_out(&rows)? {
                return Ok(());
            }
        }
        hand_out(&gathered)?;
        Ok(())
    }
}

impl Part {
    fn write(&mut self, file: &mut File, length: &mut u64) -> io::Result<()> {
        let compressed = lz4_flex::compress_prepend_size(&self.gathered);
        file.write_all(&compressed)?;
        self.blocks.push((*length, compressed.len()));
        *length += compressed.len() as u64;
        self.gathered.clear();
        Ok(())
    }
}

/// What decides the part: the account, or the video that is tracked on its own.
fn place(row: &Row) -> u64 {
    let mut hasher = DefaultHasher::new();
    match row {
        Row::Account(AccountRow { platform, username, .. })
        | Row::Video(VideoRow { platform, username: Some(username), .. }) => {
            (platform, username).hash(&mut hasher);
        }
        Row::Video(VideoRow { platform, username: None, external_id, .. }) => {
            (platform, external_id).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// A file in the folder for temporary files, without a name.
fn nameless() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("tidemark-import-{}", uuid::Uuid::now_v7()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::Counters;
    use crate::model::platform::Platform;

    #[test]
    fn every_row_comes_back_and_those_of_an_account_together() {
        let row = |n: u32| {
            Row::Video(VideoRow {
                platform: Platform::Tiktok,
                username: Some(format!("user{}", n % 100)),
                external_id: n.to_string(),
                observed_at: "2026-03-01T10:00:00.123456Z".parse().unwrap(),
                create_time: None,
                description: Some("a caption".repeat(3)),
                media_type: None,
                duration: Some(1.5),
                counters: Counters { view_count: Some(i64::from(n)), ..Counters::default() },
            })
        };
        let mut spill = Spill::new(20_000, 2_000).unwrap();
        assert_eq!(spill.parts(), 10);
        for n in 0..20_000 {
            spill.add(&row(n)).unwrap();
        }
        assert!(spill.length > 0, "the rows are on disk");
        let mut seen = vec![false; 20_000];
        let mut parts_of = vec![None; 100];
        for part in 0..spill.parts() {
            spill
                .read(part, |read| {
                    let Row::Video(video) = &read else { panic!() };
                    let n: u32 = video.external_id.parse().unwrap();
                    assert_eq!(read, row(n));
                    assert!(!std::mem::replace(&mut seen[n as usize], true));
                    assert_eq!(*parts_of[n as usize % 100].get_or_insert(part), part);
                    true
                })
                .unwrap();
        }
        assert!(seen.into_iter().all(|seen| seen));
    }
}
