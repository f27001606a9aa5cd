//! Counters of videos at an age, and how they compare with those of other posts at the same age (docs/analytics.md).

use std::collections::VecDeque;

use chrono::NaiveDate;
use schemars::JsonSchema;
use serde::Serialize;

use super::change::rounded_quotient;

/// Ages in days whose views are stored, in columns of `video_ages`.
pub const STORED_AGES: [u16; 5] = [1, 3, 7, 14, 30];
/// A video that was first observed more days after the day on which it was posted has no values.
pub const MAX_FIRST_OBSERVATION_DAYS: u64 = 2;
/// The most posts that are compared.
pub const MAX_COMPARED_POSTS: usize = 100;
/// The fewest posts that are compared.
pub const MIN_COMPARED_POSTS: usize = 10;

/// A counter at the end of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelOnDay {
    pub value: i64,
    /// Whether the counter was not observed on the day itself.
    pub is_interpolated: bool,
}

impl LevelOnDay {
    /// Returns the level on a day, from the days on which it is known, ascending: unknown before the first one and after the
    /// last one.
    pub fn interpolate(known: &[(NaiveDate, i64)], day: NaiveDate) -> Option<Self> {
        let later = known.partition_point(|(date, _)| *date <= day);
        let (before, value) = *known.get(later.checked_sub(1)?)?;
        if before == day {
            return Some(LevelOnDay { value, is_interpolated: false });
        }
        let (after, next_value) = *known.get(later)?;
        let days = |from: NaiveDate, to: NaiveDate| i128::from((to - from).num_days());
        let weighted = i128::from(value) * days(day, after) + i128::from(next_value) * days(before, day);
        Some(LevelOnDay { value: rounded_quotient(weighted, days(before, after)), is_interpolated: true })
    }
}

/// The mean of earlier posts at the same age, without a quarter of them at each end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Baseline {
    sum: i128,
    count: i128,
    /// Number of the posts.
    pub sample: usize,
}

impl Baseline {
    /// Computes the baseline from sorted values; none of few.
    fn from_sorted(values: &[i64]) -> Option<Self> {
        let (sample, cut) = (values.len(), values.len() / 4);
        let middle = &values[cut..sample - cut];
        let sum = middle.iter().map(|value| i128::from(*value)).sum();
        (sample >= MIN_COMPARED_POSTS).then_some(Baseline { sum, count: middle.len() as i128, sample })
    }

    /// Returns it in tenths.
    pub fn tenths(&self) -> i64 {
        rounded_quotient(10 * self.sum, self.count)
    }

    /// Returns how many hundredths of it a value has; unknown if it is 0.
    pub fn multiple_in_hundredths(&self, value: i64) -> Option<i64> {
        let scaled = 100 * i128::from(value) * self.count * self.sum.signum();
        (self.sum != 0).then(|| rounded_quotient(scaled, self.sum.abs()))
    }
}

/// The values of the last posts, at most [`MAX_COMPARED_POSTS`].
#[derive(Debug, Clone, Default)]
pub struct LastPosts {
    by_time: VecDeque<i64>,
    sorted: Vec<i64>,
}

impl LastPosts {
    /// Adds a later post.
    pub fn push(&mut self, value: i64) {
        if self.by_time.len() == MAX_COMPARED_POSTS
            && let Some(first) = self.by_time.pop_front()
        {
            self.sorted.remove(self.sorted.partition_point(|other| *other < first));
        }
        self.by_time.push_back(value);
        self.sorted.insert(self.sorted.partition_point(|other| *other < value), value);
    }

    pub fn baseline(&self) -> Option<Baseline> {
        Baseline::from_sorted(&self.sorted)
    }
}

/// Percentiles and mean of posts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Distribution<T> {
    /// 10th percentile; null if there are too few posts.
    p10: Option<T>,
    /// Median.
    p50: Option<T>,
    /// 90th percentile.
    p90: Option<T>,
    /// Mean.
    mean: Option<T>,
}

impl Distribution<i64> {
    /// Computes the distribution of counts, rounded to integers.
    pub fn from_counts(counts: Vec<i64>) -> Self {
        Self::from_multiples(counts.into_iter().map(i128::from).collect(), 1)
    }

    /// Computes the distribution of values from their multiples, rounded to integers.
    fn from_multiples(mut multiples: Vec<i128>, factor: i128) -> Self {
        let Some(last) = multiples.len().checked_sub(1) else { return Distribution::default() };
        multiples.sort_unstable();
        let percentile = |percent: usize| {
            let (index, part) = (last * percent / 100, (last * percent % 100) as i128);
            let weighted = multiples[index] * (100 - part) + multiples[last.min(index + 1)] * part;
            Some(rounded_quotient(weighted, 100 * factor))
        };
        let mean = rounded_quotient(multiples.iter().sum(), multiples.len() as i128 * factor);
        Distribution { p10: percentile(10), p50: percentile(50), p90: percentile(90), mean: Some(mean) }
    }
}

impl Distribution<f64> {
    /// Computes the distribution of rates from their numerators and positive denominators, rounded to six decimals: in
    /// integers, because a float may be on the wrong side of a half.
    pub fn from_rates(rates: &[(i64, i64)]) -> Self {
        // A hundred times any rate of two i64 fits into an i128.
        const PER_MILLIONTH: i128 = 10_000_000_000;
        let multiple = |(numerator, denominator): &(i64, i64)| {
            i128::from(*numerator) * 1_000_000 * PER_MILLIONTH / i128::from(*denominator)
        };
        let Distribution { p10, p50, p90, mean } =
            Distribution::from_multiples(rates.iter().map(multiple).collect(), PER_MILLIONTH);
        let decimal = |millionths: Option<i64>| millionths.map(|millionths| millionths as f64 / 1e6);
        Distribution { p10: decimal(p10), p50: decimal(p50), p90: decimal(p90), mean: decimal(mean) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, day).unwrap()
    }

    #[test]
    fn level_is_interpolated_between_known_days_only() {
        let known = [(day(2), 100), (day(5), 201), (day(9), 40)];
        let level = |number| {
            LevelOnDay::interpolate(&known, day(number)).map(|level| (level.value, level.is_interpolated))
        };
        assert_eq!([1, 2, 3, 4].map(level), [None, Some((100, false)), Some((134, true)), Some((167, true))]);
        // 201 - 161 / 2 is 120.5.
        assert_eq!(
            [5, 7, 9, 10].map(level),
            [Some((201, false)), Some((121, true)), Some((40, false)), None]
        );
        let large = [(day(1), i64::MAX), (day(31), i64::MAX - 30)];
        assert_eq!(LevelOnDay::interpolate(&large, day(2)).unwrap().value, i64::MAX - 1);
    }

    fn last_posts(values: impl IntoIterator<Item = i64>) -> LastPosts {
        let mut posts = LastPosts::default();
        values.into_iter().for_each(|value| posts.push(value));
        posts
    }

    #[test]
    fn baseline_cuts_a_quarter_at_each_end() {
        assert_eq!(last_posts(1..=9).baseline(), None);
        // 3 to 8 of ten values.
        let ten_posts = last_posts([1_000, 2, 3, 4, 5, 6, 7, 8, 9, -10]).baseline().unwrap();
        assert_eq!((ten_posts.sample, ten_posts.tenths()), (10, 55));
        assert_eq!(ten_posts.multiple_in_hundredths(11), Some(200));
        // 2.5 of 11 is cut to 2: 3 to 9 with a sum of 43.
        let eleven_posts = last_posts([0, 1, 3, 4, 5, 6, 8, 8, 9, 10, 11]).baseline().unwrap();
        assert_eq!((eleven_posts.tenths(), eleven_posts.multiple_in_hundredths(43)), (61, Some(700)));
        assert_eq!(last_posts([0; 12]).baseline().unwrap().multiple_in_hundredths(5), None);
        let equal_posts = last_posts([8; 10]).baseline().unwrap();
        assert_eq!(equal_posts.multiple_in_hundredths(1), Some(13), "0.125 rounds up");
        assert_eq!(last_posts([1; 10]).baseline().unwrap().multiple_in_hundredths(i64::MAX), Some(i64::MAX));
    }

    #[test]
    fn baseline_is_of_the_last_hundred_posts() {
        let posts = last_posts([7; 30].into_iter().chain([9; 100]));
        let baseline = posts.baseline().unwrap();
        assert_eq!((baseline.sample, baseline.tenths()), (100, 90));
    }

    #[test]
    fn percentiles_interpolate_between_the_closest_ranks() {
        let counts = Distribution::from_counts((1..=10).rev().map(|n| n * 10).collect());
        // Positions 0.9, 4.5 and 8.1.
        assert_eq!(counts, Distribution { p10: Some(19), p50: Some(55), p90: Some(91), mean: Some(55) });
        assert_eq!(Distribution::from_counts(vec![]), Distribution::default());
        let rates = Distribution::from_rates(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11].map(|n| (n, 30)));
        assert_eq!(
            rates,
            Distribution { p10: Some(0.066667), p50: Some(0.2), p90: Some(0.333333), mean: Some(0.2) }
        );
        // 0.0001245; 124.49999999999999 millionths as a float.
        let rate = Some(0.000125);
        let expected = Distribution { p10: rate, p50: rate, p90: rate, mean: rate };
        assert_eq!(Distribution::from_rates(&[(249, 2_000_000); 3]), expected);
        assert_eq!(Distribution::from_rates(&[]), Distribution::default());
        Distribution::from_rates(&[(i64::MAX, 1), (i64::MIN, 1)]);
    }
}
