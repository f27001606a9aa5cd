//! The rows of an import between reading and writing: a batch in memory where they are few, laid aside by account where
//! they are many.

use std::io;

use super::batch::Batch;
use super::row::Row;
use super::spill::Spill;

/// Rows a unit of work holds: enough for few round trips, few enough to keep memory and locks short.
const BATCH_ROWS: usize = 20_000;

pub struct Rows {
    /// How many are expected at most.
    expected: u64,
    few: Vec<Row>,
    many: Option<Spill>,
}

impl Rows {
    pub const fn new(expected: u64) -> Self {
        Rows { expected, few: Vec::new(), many: None }
    }

    pub fn add(&mut self, row: Row) -> io::Result<()> {
        match &mut self.many {
            Some(spill) => spill.add(&row),
            None if self.few.len() < BATCH_ROWS => {
                self.few.push(row);
                Ok(())
            }
            none => {
                let spill = none.insert(Spill::new(self.expected, BATCH_ROWS as u64)?);
                for row in std::mem::take(&mut self.few) {
                    spill.add(&row)?;
                }
                spill.add(&row)
            }
        }
    }

    /// Hands out the rows in batches, those of an account in one where they fit, until `take` has had enough.
    pub fn batches(self, mut take: impl FnMut(Batch) -> bool) -> io::Result<()> {
        let mut batch = Batch::default();
        for row in self.few {
            batch.add(row);
        }
        if let Some(mut spill) = self.many {
            for part in 0..spill.parts() {
                let mut wanted = true;
                spill.read(part, |row| {
                    batch.add(row);
                    if batch.len() >= 2 * BATCH_ROWS {
                        wanted = take(std::mem::take(&mut batch));
                    }
                    wanted
                })?;
                if wanted && batch.len() >= BATCH_ROWS {
                    wanted = take(std::mem::take(&mut batch));
                }
                if !wanted {
                    return Ok(());
                }
            }
        }
        if !batch.is_empty() {
            take(batch);
        }
        Ok(())
    }
}
