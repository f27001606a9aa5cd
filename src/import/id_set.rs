//! A set of internal ids as bitmaps: ids are consecutive, so ten million of them take a megabyte or two.

use std::collections::BTreeMap;

const WORDS: i64 = 64;
const BITS: i64 = 64;

#[derive(Debug, Default)]
pub struct IdSet {
    blocks: BTreeMap<i64, [u64; WORDS as usize]>,
    len: u64,
}

impl IdSet {
    /// Returns the number of distinct ids.
    pub const fn len(&self) -> u64 {
        self.len
    }
}

impl Extend<i64> for IdSet {
    fn extend<T: IntoIterator<Item = i64>>(&mut self, ids: T) {
        for id in ids {
            let (index, bit) = (id.div_euclid(BITS), id.rem_euclid(BITS));
            let (block, index) = (index.div_euclid(WORDS), index.rem_euclid(WORDS));
            let word = &mut self.blocks.entry(block).or_insert([0; WORDS as usize])[index as usize];
            self.len += u64::from(*word & (1 << bit) == 0);
            *word |= 1 << bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_counted_once() {
        let mut ids = IdSet::default();
        ids.extend([0, 1, 63, 64, 4_095, 4_096, i64::MAX, -1]);
        ids.extend([4_096, 0, i64::MAX, 5]);
        assert_eq!(ids.len(), 9);
    }
}
