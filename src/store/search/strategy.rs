//! How the matching records of each tier are found, and the numbers of records from which another strategy is faster.

use std::cmp::max;

use uuid::Uuid;

/// How a text matches the query; better ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tier {
    Exact,
    Prefix,
    Anywhere,
}

impl Tier {
    pub(super) const ALL: [Tier; 3] = [Tier::Exact, Tier::Prefix, Tier::Anywhere];
}

/// The documents that may match; None if there are too many.
pub(super) type Candidates = Option<Vec<Uuid>>;

/// Numbers of records up to which a strategy is used. Measured in plans over 50,000 videos in memory: a lookup by id costs
/// 5 µs, skipping a record in an ordered scan 0.2 µs, comparing one there 10 µs, and listing a candidate 0.25 µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Candidates that are looked up by id; more are found in an ordered scan.
    pub lookups: usize,
    /// Candidates that are listed at all.
    pub candidates: usize,
    /// Records whose text an ordered scan compares when there are more candidates.
    pub comparisons: usize,
}

impl Limits {
    pub(super) fn for_records(records: u64) -> Self {
        let root = |factor: u64| usize::try_from((factor * records).isqrt()).unwrap_or(usize::MAX);
        let lookups = max(root(6), 300);
        Limits { lookups, candidates: lookups.saturating_mul(4), comparisons: max(root(100), 500) }
    }
}

/// How the records of one tier are found.
#[derive(Debug)]
pub(super) enum Strategy {
    /// Not at all: a better tier has enough.
    Skip,
    LookUp(Vec<Uuid>),
    /// The `rows` biggest candidates, in an ordered scan.
    Scan {
        candidates: Vec<Uuid>,
        rows: usize,
    },
    /// Compares the texts of the `rows` biggest records, in an ordered scan.
    Compare {
        rows: usize,
    },
}

impl Strategy {
    pub(super) fn new(candidates: Candidates, limits: Limits, limit: usize) -> Self {
        match candidates {
            Some(ids) if ids.len() <= limits.lookups => Strategy::LookUp(ids),
            Some(candidates) => Strategy::Scan { candidates, rows: oversampled(limit) },
            None => Strategy::Compare { rows: limits.comparisons },
        }
    }

    /// Whether it finds all records of its tier.
    pub(super) fn is_exhaustive(&self) -> bool {
        match self {
            Strategy::LookUp(_) => true,
            Strategy::Scan { candidates, rows } => candidates.len() <= *rows,
            Strategy::Skip | Strategy::Compare { .. } => false,
        }
    }

    pub(super) fn finds_nothing(&self) -> bool {
        match self {
            Strategy::Skip => true,
            Strategy::LookUp(ids) => ids.is_empty(),
            Strategy::Scan { .. } | Strategy::Compare { .. } => false,
        }
    }

    /// Whether it probably fills a section, although some candidates may not match.
    pub(super) fn fills_section(&self, limit: usize) -> bool {
        match self {
            Strategy::LookUp(ids) => ids.len() >= oversampled(limit),
            Strategy::Scan { .. } | Strategy::Compare { .. } => true,
            Strategy::Skip => false,
        }
    }
}

/// More records than a section shows, because some may not match.
const fn oversampled(limit: usize) -> usize {
    2 * limit + 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_grow_with_the_root_of_the_records() {
        let limits = |lookups, candidates, comparisons| Limits { lookups, candidates, comparisons };
        assert_eq!(Limits::for_records(1), limits(300, 1_200, 500));
        assert_eq!(Limits::for_records(250_000), limits(1_224, 4_896, 5_000));
        assert_eq!(Limits::for_records(1_000_000), limits(2_449, 9_796, 10_000));
    }
}
