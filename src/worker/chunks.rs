//! Chunks of items that one statement can process.

use crate::store::Error;

/// The chunks that are left.
pub(super) struct Chunks<'a, T>(Vec<&'a [T]>);

impl<'a, T> Chunks<'a, T> {
    pub(super) fn new(items: &'a [T], max_chunk: usize) -> Self {
        Chunks(items.chunks(max_chunk).rev().collect())
    }

    pub(super) fn pop(&mut self) -> Option<&'a [T]> {
        self.0.pop()
    }

    /// Returns the result for a chunk. If it exceeded ClickHouse's limits for a statement, its halves are tried instead.
    pub(super) fn retry_halved(&mut self, chunk: &'a [T], result: Result<(), Error>) -> Result<(), Error> {
        match result {
            Err(error) if error.exceeds_query_limit() && chunk.len() > 1 => {
                let (first, second) = chunk.split_at(chunk.len() / 2);
                self.0.extend([second, first]);
                Ok(())
            }
            result => result,
        }
    }
}
