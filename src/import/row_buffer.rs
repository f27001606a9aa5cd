//! Rows between reading and writing: few in memory, many in a spill file, partitioned by account.

use std::io;

use super::batch::RowBatch;
use super::partitioned_spill::PartitionedSpill;
use super::row::Row;

/// Memory of the rows of a transaction: few round trips, yet little memory and short locks.
const BATCH_BYTES: usize = 3 << 20;
/// Rows per partition: about a transaction's, where each describes another video.
const PARTITION_ROWS: u64 = 3_000;

pub struct RowBuffer {
    /// The expected number of rows, at most.
    expected_rows: u64,
    memory: Vec<Row>,
    memory_bytes: usize,
    spill: Option<PartitionedSpill>,
}

impl RowBuffer {
    pub const fn new(expected_rows: u64) -> Self {
        RowBuffer { expected_rows, memory: Vec::new(), memory_bytes: 0, spill: None }
    }

    pub fn add(&mut self, row: Row) -> io::Result<()> {
        match &mut self.spill {
            Some(spill) => spill.add(&row),
            None if self.memory_bytes < BATCH_BYTES => {
                self.memory_bytes += size_of::<Row>() + row.text_bytes();
                self.memory.push(row);
                Ok(())
            }
            none => {
                let spill = none.insert(PartitionedSpill::new(self.expected_rows, PARTITION_ROWS)?);
                for buffered in std::mem::take(&mut self.memory) {
                    spill.add(&buffered)?;
                }
                spill.add(&row)
            }
        }
    }

    /// Passes the rows in batches to `consume`, until it returns false. The rows of an account are in one batch if they fit.
    pub fn drain(self, mut consume: impl FnMut(RowBatch) -> bool) -> io::Result<()> {
        let mut batch = RowBatch::default();
        for row in self.memory {
            batch.add(row);
        }
        if let Some(mut spill) = self.spill {
            for partition in 0..spill.partition_count() {
                let mut wants_more = spill.read(partition, |row| {
                    batch.add(row);
                    !has_batches(&batch, 2) || consume(std::mem::take(&mut batch))
                })?;
                if wants_more && has_batches(&batch, 1) {
                    wants_more = consume(std::mem::take(&mut batch));
                }
                if !wants_more {
                    return Ok(());
                }
            }
        }
        if !batch.is_empty() {
            consume(batch);
        }
        Ok(())
    }
}

/// Whether there are rows for so many transactions.
const fn has_batches(rows: &RowBatch, batches: usize) -> bool {
    rows.bytes() >= batches * BATCH_BYTES
}

#[cfg(test)]
mod tests {
    use super::super::row::VideoRow;
    use super::*;
    use crate::model::counters::Counters;
    use crate::model::identifier::VideoIds;
    use crate::model::observed::VideoFields;
    use crate::model::platform::Platform;

    #[test]
    fn long_texts_fill_memory_and_batches() {
        const ROWS: usize = 1_000;
        let mut rows = RowBuffer::new(ROWS as u64);
        for n in 0..ROWS {
            let description = Some("x".repeat(100 << 10));
            rows.add(Row::Video(VideoRow {
                platform: Platform::Tiktok,
                username: Some("ann".to_owned()),
                ids: VideoIds::new(Platform::Tiktok, Some(&n.to_string()), None),
                observed_at: None,
                id_time: None,
                is_active: None,
                fields: VideoFields { description, ..VideoFields::default() },
                counters: Counters::default(),
            }))
            .unwrap();
        }
        assert!(rows.spill.is_some() && rows.memory.is_empty());
        let mut batches = Vec::new();
        let consume = |batch: RowBatch| {
            batches.push(batch.len());
            true
        };
        rows.drain(consume).unwrap();
        assert_eq!((batches.len(), batches.iter().sum::<usize>()), (17, ROWS), "{batches:?}");
    }
}
