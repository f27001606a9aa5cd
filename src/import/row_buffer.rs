//! Rows between reading and writing: few in memory, many in a spill file, partitioned by account.

use std::io;

use super::batch::RowBatch;
use super::partitioned_spill::PartitionedSpill;
use super::row::Row;

/// Rows per transaction: few round trips, yet little memory and short locks.
const BATCH_ROWS: usize = 20_000;

pub struct RowBuffer {
    /// The expected number of rows, at most.
    expected_rows: u64,
    memory: Vec<Row>,
    spill: Option<PartitionedSpill>,
}

impl RowBuffer {
    pub const fn new(expected_rows: u64) -> Self {
        RowBuffer { expected_rows, memory: Vec::new(), spill: None }
    }

    pub fn add(&mut self, row: Row) -> io::Result<()> {
        match &mut self.spill {
            Some(spill) => spill.add(&row),
            None if self.memory.len() < BATCH_ROWS => {
                self.memory.push(row);
                Ok(())
            }
            none => {
                let spill = none.insert(PartitionedSpill::new(self.expected_rows, BATCH_ROWS as u64)?);
                for row in std::mem::take(&mut self.memory) {
                    spill.add(&row)?;
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
                    batch.len() < 2 * BATCH_ROWS || consume(std::mem::take(&mut batch))
                })?;
                if wants_more && batch.len() >= BATCH_ROWS {
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
