//! A set of internal ids as bitmaps: ids are nearly consecutive, so ten million of them take a few megabytes.

use std::collections::BTreeMap;

const BITS_PER_WORD: i64 = 64;

#[derive(Debug, Default)]
pub struct IdSet {
    words: BTreeMap<i64, u64>,
}

impl IdSet {
    pub fn len(&self) -> u64 {
        self.words.values().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The number of ids that the other set lacks.
    pub fn len_without(&self, other: &IdSet) -> u64 {
        let missing = |(position, word): (&i64, &u64)| {
            u64::from((word & !other.words.get(position).copied().unwrap_or_default()).count_ones())
        };
        self.words.iter().map(missing).sum()
    }
}

impl Extend<i64> for IdSet {
    fn extend<T: IntoIterator<Item = i64>>(&mut self, ids: T) {
        for id in ids {
            let bit = 1_u64 << id.rem_euclid(BITS_PER_WORD);
            *self.words.entry(id.div_euclid(BITS_PER_WORD)).or_default() |= bit;
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
        let mut others = IdSet::default();
        others.extend([1, 63, 9_999]);
        assert_eq!(ids.len_without(&others), 7);
    }
}
