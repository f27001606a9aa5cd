//! The days of one video in a rollup, summed up: there are as many as snapshots, too many to hold.

use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::NaiveDate;

use crate::model::counters::VIDEO_ROLLUP_COUNTERS;

/// Gains in the order of [`VIDEO_ROLLUP_COUNTERS`].
pub type VideoGains = [i64; VIDEO_ROLLUP_COUNTERS.len()];

/// Equal for the same days with the same gains, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VideoDays {
    pub days: u64,
    pub gains: VideoGains,
    digest: u64,
}

impl VideoDays {
    /// Adds a day, unless it has no gain: the rollup has no row of such a day.
    pub fn add(&mut self, date: NaiveDate, platform: &str, gains: VideoGains) {
        if gains == VideoGains::default() {
            return;
        }
        self.days += 1;
        for (sum, gain) in self.gains.iter_mut().zip(gains) {
            *sum += gain;
        }
        let mut hasher = DefaultHasher::new();
        (date, platform, gains).hash(&mut hasher);
        self.digest = self.digest.wrapping_add(hasher.finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_compared_in_any_order_and_without_empty_ones() {
        let day = |number: u32| NaiveDate::from_ymd_opt(2026, 2, number).unwrap();
        let sum = |days: &[(u32, &str, i64)]| {
            let mut sum = VideoDays::default();
            days.iter().for_each(|(number, platform, views)| {
                sum.add(day(*number), platform, [*views, 0, 0, 0, 0, 0])
            });
            sum
        };
        let expected = sum(&[(1, "tiktok", 5), (2, "tiktok", -3)]);
        assert_eq!(sum(&[(2, "tiktok", -3), (3, "tiktok", 0), (1, "tiktok", 5)]), expected);
        assert_eq!((expected.days, expected.gains[0]), (2, 2));
        for other in [
            [(1, "tiktok", 4), (2, "tiktok", -2)],
            [(1, "tiktok", 5), (3, "tiktok", -3)],
            [(1, "tiktok", 5), (2, "instagram", -3)],
        ] {
            assert_ne!(sum(&other), expected, "{other:?}");
        }
    }
}
