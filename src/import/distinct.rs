//! Counts different things by their hashes, in eight bytes each.

use std::hash::{BuildHasher, Hash, RandomState};

#[derive(Debug, Default)]
pub struct DistinctCount {
    hasher: RandomState,
    /// Sorted, without duplicates.
    known: Vec<u64>,
    recent: Vec<u64>,
}

const MIN_RECENT: usize = 4_096;

impl DistinctCount {
    pub fn add(&mut self, thing: impl Hash) {
        let hash = self.hasher.hash_one(thing);
        if self.recent.last() == Some(&hash) {
            return;
        }
        self.recent.push(hash);
        if self.recent.len() >= MIN_RECENT.max(self.known.len() / 2) {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.known.append(&mut self.recent);
        self.known.sort_unstable();
        self.known.dedup();
    }

    pub fn finish(mut self) -> u64 {
        self.merge();
        self.known.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_things_count_once() {
        let mut count = DistinctCount::default();
        for n in 0..100_000_u32 {
            count.add(n % 12_345);
            count.add("same");
        }
        assert_eq!(count.finish(), 12_346);
    }
}
