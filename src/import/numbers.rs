//! A set of the internal ids that the stores give one after the other: a bit for each, so that ten million of them are
//! a megabyte or two.

use std::collections::BTreeMap;

const WORDS: usize = 64;
const BITS: i64 = 64;

/// Which internal ids there were.
#[derive(Debug, Default)]
pub struct Numbers {
    blocks: BTreeMap<i64, [u64; WORDS]>,
    length: u64,
}

impl Numbers {
    /// How many different ones there were.
    pub const fn len(&self) -> u64 {
        self.length
    }
}

impl Extend<i64> for Numbers {
    fn extend<T: IntoIterator<Item = i64>>(&mut self, numbers: T) {
        for number in numbers {
            let (word, bit) = (number.div_euclid(BITS), number.rem_euclid(BITS));
            let (block, word) = (word.div_euclid(WORDS as i64), word.rem_euclid(WORDS as i64));
            let word = &mut self.blocks.entry(block).or_insert([0; WORDS])[word as usize];
            self.length += u64::from(*word & (1 << bit) == 0);
            *word |= 1 << bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_counts_once() {
        let mut numbers = Numbers::default();
        numbers.extend([0, 1, 63, 64, 4_095, 4_096, i64::MAX, -1]);
        numbers.extend([4_096, 0, i64::MAX, 5]);
        assert_eq!(numbers.len(), 9);
    }
}
