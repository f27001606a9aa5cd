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
    /// Records of the organization.
    records: usize,
    /// Candidates that are looked up by id; more are found in an ordered scan.
    pub lookups: usize,
    /// Candidates that are listed at all.
    pub candidates: usize,
    /// Records whose text an ordered scan compares when there are more candidates.
    pub comparisons: usize,
}

impl Limits {
    pub(super) fn for_records(records: u64) -> Self {
        let records = usize::try_from(records).unwrap_or(usize::MAX);
        let root = |factor: usize| factor.saturating_mul(records).isqrt();
        let lookups = max(root(6), 300);
        Limits { records, lookups, candidates: lookups.saturating_mul(4), comparisons: max(root(100), 500) }
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
    /// Compares the texts of all records.
    CompareAll,
}

impl Strategy {
    pub(super) fn new(candidates: Candidates, limits: Limits, limit: usize) -> Self {
        match candidates {
            Some(ids) if ids.len() <= limits.lookups => Strategy::LookUp(ids),
            Some(candidates) => Strategy::Scan { candidates, rows: oversampled(limit) },
            None => Strategy::Compare { rows: limits.comparisons },
        }
    }

    /// The strategy after a scan that found too few: most of its candidates do not match, so that a longer one may skip many
    /// records for each match.
    pub(super) fn after_scan(candidates: Vec<Uuid>, rows: usize, limits: Limits) -> Self {
        let rows = rows.saturating_mul(16);
        let skipped = rows.saturating_mul(limits.records) / candidates.len();
        if candidates.len() <= limits.candidates {
            Strategy::LookUp(candidates)
        } else if skipped <= limits.comparisons {
            Strategy::Scan { candidates, rows }
        } else {
            Strategy::CompareAll
        }
    }

    /// Whether it finds all records of its tier.
    pub(super) fn is_exhaustive(&self) -> bool {
        match self {
            Strategy::LookUp(_) | Strategy::CompareAll => true,
            Strategy::Scan { candidates, rows } => candidates.len() <= *rows,
            Strategy::Skip | Strategy::Compare { .. } => false,
        }
    }

    pub(super) fn finds_nothing(&self) -> bool {
        match self {
            Strategy::Skip => true,
            Strategy::LookUp(ids) => ids.is_empty(),
            Strategy::Scan { .. } | Strategy::Compare { .. } | Strategy::CompareAll => false,
        }
    }

    /// Whether it probably fills a section, although some candidates may not match.
    pub(super) fn fills_section(&self, limit: usize) -> bool {
        match self {
            Strategy::LookUp(ids) => ids.len() >= oversampled(limit),
            Strategy::Scan { .. } | Strategy::Compare { .. } | Strategy::CompareAll => true,
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
        let limits = |records| {
            let Limits { lookups, candidates, comparisons, .. } = Limits::for_records(records);
            [lookups, candidates, comparisons]
        };
        assert_eq!(limits(1), [300, 1_200, 500]);
        assert_eq!(limits(250_000), [1_224, 4_896, 5_000]);
        assert_eq!(limits(1_000_000), [2_449, 9_796, 10_000]);
    }

    #[test]
    fn no_scan_skips_more_records_than_a_comparison_reads() {
        let limits = Limits::for_records(1_000_000);
        let after_scan = |candidates, rows| Strategy::after_scan(vec![Uuid::nil(); candidates], rows, limits);
        assert!(matches!(after_scan(9_796, 60), Strategy::LookUp(ids) if ids.len() == 9_796));
        assert!(matches!(after_scan(9_797, 60), Strategy::CompareAll));
        // 960 rows of one candidate in ten records.
        assert!(matches!(after_scan(100_000, 60), Strategy::Scan { rows: 960, .. }));
        assert!(matches!(after_scan(100_000, 960), Strategy::CompareAll));
    }
}
