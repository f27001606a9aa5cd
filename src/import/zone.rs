//! Finds the zone of times without one: the ids of posts contain their times in UTC.

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};

/// Offsets of zones are whole quarters of an hour in this range.
const QUARTER: i64 = 900;
const MIN_OFFSET: i64 = -12 * 3_600;
const MAX_OFFSET: i64 = 14 * 3_600;
/// How much longer than its id's time a posting may take, in seconds.
const TOLERANCE: i64 = 300;
/// Daylight saving time.
const HOUR: i64 = 3_600;
/// Posts that a zone needs.
const MIN_POSTS: usize = 3;
/// The cost of a change of the offset, in posts that contradict.
const CHANGE_COST: f64 = 1.5;

/// The written time of a post and that of its id, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimePair {
    pub written: i64,
    pub id: i64,
}

impl TimePair {
    pub fn new(written: NaiveDateTime, id: DateTime<Utc>) -> Self {
        TimePair { written: written.and_utc().timestamp(), id: id.timestamp() }
    }

    /// Returns the whole quarters of an hour between the times, if these are all that is between them.
    fn offset(self) -> Option<i64> {
        let difference = self.written - self.id;
        let offset = (difference + QUARTER / 2).div_euclid(QUARTER) * QUARTER;
        let is_close = (difference - offset).abs() <= TOLERANCE;
        (is_close && (MIN_OFFSET..=MAX_OFFSET).contains(&offset)).then_some(offset)
    }
}

/// The offsets of a file's times, by time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundZone {
    /// The first second of each period, and its offset; `None` where there are too few posts to tell.
    periods: Vec<(i64, Option<i64>)>,
    pub posts: usize,
    pub agreeing: usize,
}

impl FoundZone {
    /// Compares times. `None`: they are in no one zone, or are too few to tell.
    pub fn new(mut pairs: Vec<TimePair>) -> Option<Self> {
        pairs.sort_unstable();
        let offsets: Vec<_> = pairs.iter().map(|pair| pair.offset()).collect();
        let count = |offset: i64| offsets.iter().filter(|found| **found == Some(offset)).count();
        let mut known: Vec<i64> = offsets.iter().flatten().copied().collect();
        known.sort_unstable();
        known.dedup();
        let main = known.iter().copied().max_by_key(|offset| count(*offset))?;
        let other = [main - HOUR, main + HOUR].into_iter().max_by_key(|offset| count(*offset))?;
        let states = [main, other];
        let labels = assign(&offsets, states);
        let mut periods = Vec::new();
        let mut start = 0;
        while start < labels.len() {
            let end = labels[start..].iter().position(|label| *label != labels[start]);
            let end = end.map_or(labels.len(), |length| start + length);
            periods.push((start, end, states[labels[start]]));
            start = end;
        }
        let agree = |(first, end, offset): (usize, usize, i64)| {
            offsets[first..end].iter().filter(|found| **found == Some(offset)).count()
        };
        let is_clear = |period: &(usize, usize, i64)| {
            let posts = period.1 - period.0;
            posts >= MIN_POSTS && 5 * agree(*period) >= 4 * posts
        };
        if !periods.iter().any(is_clear) {
            return None;
        }
        let clear: Vec<_> = periods.iter().copied().filter(is_clear).collect();
        let first_second = |first: usize| match first {
            0 => i64::MIN,
            _ => i64::midpoint(pairs[first - 1].written, pairs[first].written),
        };
        Some(FoundZone {
            posts: clear.iter().map(|(first, end, _)| end - first).sum(),
            agreeing: clear.iter().map(|period| agree(*period)).sum(),
            periods: periods
                .iter()
                .map(|period| (first_second(period.0), is_clear(period).then_some(period.2)))
                .collect(),
        })
    }

    /// Converts a written time; `None` where the offset is not known.
    pub fn to_utc(&self, written: NaiveDateTime) -> Option<DateTime<Utc>> {
        let second = written.and_utc().timestamp();
        let period = self.periods.partition_point(|(start, _)| *start <= second).checked_sub(1)?;
        let offset = self.periods.get(period)?.1?;
        Some(written.and_utc() - TimeDelta::seconds(offset))
    }

    /// Returns the offsets, as `UTC+02:00`.
    pub fn describe(&self) -> String {
        let mut offsets: Vec<_> = self.periods.iter().filter_map(|(_, offset)| *offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let show = |offset: &i64| {
            let (sign, minutes) = (if *offset < 0 { '-' } else { '+' }, offset.abs() / 60);
            format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        };
        offsets.iter().map(show).collect::<Vec<_>>().join(" and ")
    }

    /// Returns the differences of all periods from another conversion.
    pub fn differs_from(&self, pairs: &[TimePair], convert: impl Fn(NaiveDateTime) -> DateTime<Utc>) -> bool {
        pairs.iter().any(|pair| {
            let written = DateTime::from_timestamp(pair.written, 0).map(|time| time.naive_utc());
            written.is_some_and(|time| self.to_utc(time).is_some_and(|found| found != convert(time)))
        })
    }
}

/// Assigns one of two offsets to each post, in the order of time, with as few contradictions and changes as possible.
fn assign(offsets: &[Option<i64>], states: [i64; 2]) -> Vec<usize> {
    let mut costs = [0.0_f64; 2];
    let mut previous: Vec<[usize; 2]> = Vec::with_capacity(offsets.len());
    for offset in offsets {
        let mut from = [0, 1];
        let mut next = costs;
        for state in [0, 1] {
            let change = costs[1 - state] + CHANGE_COST;
            if change < costs[state] {
                from[state] = 1 - state;
                next[state] = change;
            }
            if *offset != Some(states[state]) {
                next[state] += 1.0;
            }
        }
        costs = next;
        previous.push(from);
    }
    let mut state = usize::from(costs[1] < costs[0]);
    let mut labels = vec![0; offsets.len()];
    for (label, from) in labels.iter_mut().zip(&previous).rev() {
        *label = state;
        state = from[state];
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Posts a day apart, each with its offset in minutes and its delay in seconds.
    fn pairs(posts: &[(i64, i64)]) -> Vec<TimePair> {
        let pair = |(n, (minutes, delay)): (usize, &(i64, i64))| {
            let id = 1_770_000_000 + n as i64 * 86_400;
            TimePair { written: id + minutes * 60 + delay, id }
        };
        posts.iter().enumerate().map(pair).collect()
    }

    fn describe(posts: &[(i64, i64)]) -> Option<String> {
        FoundZone::new(pairs(posts)).map(|zone| zone.describe())
    }

    #[test]
    fn zone_needs_three_posts_and_four_fifths() {
        for (posts, expected) in [
            (&[(120, 3), (120, 10), (120, 299)][..], Some("UTC+02:00")),
            (&[(-480, 5), (-480, 5), (-480, 5), (-480, 5), (33, 0)], Some("UTC-08:00")),
            (&[(345, 5), (345, 5), (345, 5)], Some("UTC+05:45")),
            (&[(0, 5), (0, 5), (0, 5)], Some("UTC+00:00")),
            (&[(120, 3), (120, 10)], None),
            (&[(120, 3), (120, 10), (120, 301)], None),
            (&[(120, 3), (120, 10), (120, 4), (7, 0)], None),
            (&[(900, 3), (900, 10), (900, 4)], None),
            (&[(-735, 3), (-735, 10), (-735, 4)], None),
            (&[(120, 3), (300, 10), (480, 4)], None),
            (&[], None),
        ] {
            assert_eq!(describe(posts).as_deref(), expected, "{posts:?}");
        }
    }

    #[test]
    fn each_side_of_a_change_stands_by_itself() {
        let winter_and_summer = [(60, 3), (60, 4), (60, 5), (120, 3), (120, 4), (120, 5)];
        assert_eq!(describe(&winter_and_summer).as_deref(), Some("UTC+01:00 and UTC+02:00"));
        let all = pairs(&winter_and_summer);
        let zone = FoundZone::new(all.clone()).unwrap();
        for pair in &all {
            let written = DateTime::from_timestamp(pair.written, 0).unwrap().naive_utc();
            assert!((0..=5).contains(&(zone.to_utc(written).unwrap().timestamp() - pair.id)));
        }
        // Two posts do not tell their offset.
        let few = pairs(&[(60, 3), (60, 4), (60, 5), (60, 5), (120, 3), (120, 4)]);
        let first_zone = FoundZone::new(few.clone()).unwrap();
        assert_eq!(first_zone.describe(), "UTC+01:00");
        let last = DateTime::from_timestamp(few[5].written, 0).unwrap().naive_utc();
        assert_eq!(first_zone.to_utc(last), None);
        // Back and forth, as in a file of two years.
        let years: Vec<_> = (0..20).map(|n| (if n / 5 % 2 == 0 { -300 } else { -240 }, 2)).collect();
        assert_eq!(describe(&years).as_deref(), Some("UTC-05:00 and UTC-04:00"));
    }
}
