//! Rows on disk, partitioned by account, so that each account is written once whatever the order of the files.
//!
//! The temporary file is unlinked at once, so it does not outlive the process. Memory holds one block per partition.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use super::row::{AccountRow, Row, VideoRow};

/// Bytes of a partition that are buffered, then compressed and written.
const BLOCK_BYTES: usize = 8 << 10;
/// A buffer that holds a block and a row, of which most are shorter, does not grow.
const BUFFER_BYTES: usize = BLOCK_BYTES + (1 << 10);
const MAX_PARTITIONS: u64 = 2_048;

pub struct PartitionedSpill {
    file: File,
    length: u64,
    partitions: Vec<Partition>,
}

struct Partition {
    buffer: Vec<u8>,
    /// The offsets and lengths of its blocks.
    blocks: Vec<(u64, usize)>,
}

fn invalid_data(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl PartitionedSpill {
    /// Creates the temporary file, with partitions of about `partition_rows` each.
    pub fn new(expected_rows: u64, partition_rows: u64) -> io::Result<Self> {
        let count = expected_rows.div_ceil(partition_rows).clamp(1, MAX_PARTITIONS);
        let partition = || Partition { buffer: Vec::with_capacity(BUFFER_BYTES), blocks: Vec::new() };
        let partitions = (0..count).map(|_| partition()).collect();
        Ok(PartitionedSpill { file: tempfile::tempfile()?, length: 0, partitions })
    }

    pub fn partition_count(&self) -> usize {
        self.partitions.len()
    }

    pub fn add(&mut self, row: &Row) -> io::Result<()> {
        let count = self.partitions.len() as u64;
        let partition = &mut self.partitions[(partition_hash(row) % count) as usize];
        partition.buffer =
            postcard::to_extend(row, std::mem::take(&mut partition.buffer)).map_err(invalid_data)?;
        if partition.buffer.len() >= BLOCK_BYTES {
            partition.write(&mut self.file, &mut self.length)?;
        }
        Ok(())
    }

    /// Passes the rows of a partition to `consume`, until it returns false. Returns whether it wants more.
    pub fn read(&mut self, partition: usize, mut consume: impl FnMut(Row) -> bool) -> io::Result<bool> {
        let Partition { buffer, blocks } = &mut self.partitions[partition];
        let (buffer, blocks) = (std::mem::take(buffer), std::mem::take(blocks));
        let mut compressed = Vec::new();
        let mut consume_all = |mut rows: &[u8]| -> io::Result<bool> {
            while !rows.is_empty() {
                let (row, rest) = postcard::take_from_bytes(rows).map_err(invalid_data)?;
                rows = rest;
                if !consume(row) {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        for (start, length) in blocks {
            compressed.resize(length, 0);
            self.file.read_exact_at(&mut compressed, start)?;
            let rows = lz4_flex::decompress_size_prepended(&compressed).map_err(invalid_data)?;
            if !consume_all(&rows)? {
                return Ok(false);
            }
        }
        consume_all(&buffer)
    }
}

impl Partition {
    fn write(&mut self, file: &mut File, length: &mut u64) -> io::Result<()> {
        let compressed = lz4_flex::compress_prepend_size(&self.buffer);
        file.write_all(&compressed)?;
        self.blocks.push((*length, compressed.len()));
        *length += compressed.len() as u64;
        self.buffer.clear();
        // A long row has made it larger.
        self.buffer.shrink_to(BUFFER_BYTES);
        Ok(())
    }
}

/// Returns a hash of the account, or of the individually tracked video.
fn partition_hash(row: &Row) -> u64 {
    let mut hasher = DefaultHasher::new();
    match row {
        Row::Account(AccountRow { platform, username, .. })
        | Row::Video(VideoRow { platform, username: Some(username), .. }) => {
            (platform, username).hash(&mut hasher);
        }
        Row::Video(VideoRow { platform, username: None, ids, .. }) => {
            (platform, ids.key()).hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::counters::Counters;
    use crate::model::identifier::VideoIds;
    use crate::model::observed::VideoFields;
    use crate::model::platform::Platform;

    #[test]
    fn rows_of_an_account_share_a_partition() {
        let row = |n: u32| {
            Row::Video(VideoRow {
                is_active: Some(true),
                id_time: Some("2026-02-01T09:00:00.25Z".parse().unwrap()),
                platform: Platform::Tiktok,
                username: Some(format!("user{}", n % 100)),
                ids: VideoIds::new(Platform::Tiktok, Some(&n.to_string()), None),
                observed_at: Some("2026-03-01T10:00:00.123456Z".parse().unwrap()),
                fields: VideoFields {
                    create_time: Some("2026-02-01T09:00:00.5Z".parse().unwrap()),
                    description: Some("a caption".repeat(3)),
                    duration: Some(1.5),
                    ..VideoFields::default()
                },
                counters: Counters { view_count: Some(i64::from(n)), ..Counters::default() },
            })
        };
        let mut spill = PartitionedSpill::new(20_000, 2_000).unwrap();
        assert_eq!(spill.partition_count(), 10);
        for n in 0..20_000 {
            spill.add(&row(n)).unwrap();
        }
        assert!(spill.length > 0, "the rows are on disk");
        let mut seen = vec![false; 20_000];
        let mut partitions = vec![None; 100];
        for partition in 0..spill.partition_count() {
            spill
                .read(partition, |read| {
                    let Row::Video(video) = &read else { panic!() };
                    let n: u32 = video.ids.key().parse().unwrap();
                    assert_eq!(read, row(n));
                    assert!(!std::mem::replace(&mut seen[n as usize], true));
                    assert_eq!(*partitions[n as usize % 100].get_or_insert(partition), partition);
                    true
                })
                .unwrap();
        }
        assert!(seen.into_iter().all(|seen| seen));
    }
}
