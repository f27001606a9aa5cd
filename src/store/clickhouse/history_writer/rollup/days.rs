//! The days of subjects and videos, computed from their snapshots in the order of the days (docs/analytics.md).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use chrono::{DateTime, Days, NaiveDate, Utc};

use crate::model::ages::{LevelOnDay, MAX_FIRST_OBSERVATION_DAYS, STORED_AGES};
use crate::model::counters::{Counters, ROLLUP_COUNTERS};

const COUNTER_COUNT: usize = ROLLUP_COUNTERS.len();
/// The positions of counters that are needed by themselves.
const VIEWS: usize = 0;
const SAVES: usize = 4;

/// Values of [`ROLLUP_COUNTERS`]; `None` is unknown.
pub(super) type Counts = [Option<i64>; COUNTER_COUNT];

/// Views at [`STORED_AGES`].
pub(super) type AgeViews = [Option<LevelOnDay>; STORED_AGES.len()];

pub(super) fn video_counts(counters: Counters) -> Counts {
    let counts = counters.to_array();
    std::array::from_fn(|n| counts.get(n).copied().flatten())
}

pub(super) const fn profile_counts(followers: Option<i64>) -> Counts {
    let mut counts = [None; COUNTER_COUNT];
    counts[COUNTER_COUNT - 1] = followers;
    counts
}

/// What a day's snapshots add to the rollup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Day {
    pub gains: Counts,
    pub bases: [i64; COUNTER_COUNT],
    pub observed_at: DateTime<Utc>,
}

impl Day {
    fn add(&mut self, other: &Day) {
        for n in 0..COUNTER_COUNT {
            if let Some(gain) = other.gains[n] {
                *self.gains[n].get_or_insert(0) += gain;
            }
            self.bases[n] += other.bases[n];
        }
        self.observed_at = self.observed_at.max(other.observed_at);
    }

    /// A hash, by which a recompute finds the days that changed.
    pub fn digest(&self, platform: &str) -> u64 {
        let mut hasher = DefaultHasher::new();
        (platform, self).hash(&mut hasher);
        hasher.finish()
    }
}

/// The last known counters of a video or a profile.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Levels(Counts);

impl Levels {
    /// Advances to the next snapshot. A first known value is a base.
    pub fn advance(&mut self, counts: &Counts, observed_at: DateTime<Utc>) -> Day {
        let mut day = Day { observed_at, ..Day::default() };
        for (n, count) in counts.iter().enumerate() {
            let Some(now) = *count else { continue };
            let before = self.0[n].replace(now);
            day.gains[n] = Some(before.map_or(0, |before| now - before));
            day.bases[n] = if before.is_none() { now } else { 0 };
        }
        day
    }
}

/// The days of a subject since one, and what is known of those before.
#[derive(Debug, Default)]
pub(super) struct SubjectDays {
    earlier_start: Option<NaiveDate>,
    known: [bool; COUNTER_COUNT],
    days: BTreeMap<NaiveDate, Day>,
}

impl SubjectDays {
    /// Adds an earlier day of the rollup.
    pub fn add_earlier(&mut self, date: NaiveDate, gains: &Counts) {
        self.earlier_start = self.earlier_start.into_iter().chain([date]).min();
        for (is_known, gain) in self.known.iter_mut().zip(gains) {
            *is_known |= gain.is_some();
        }
    }

    pub fn add(&mut self, date: NaiveDate, day: &Day) {
        self.days.entry(date).or_default().add(day);
    }

    /// Counts the first snapshot of a video from zero: its bases become gains.
    pub fn count_from_zero(&mut self, date: NaiveDate, counts: &Counts) {
        let bases = counts.map(|count| -count.unwrap_or_default());
        self.add(date, &Day { gains: *counts, bases, ..Day::default() });
    }

    /// The first day with an observation, when all are added.
    pub fn tracking_start(&self) -> Option<NaiveDate> {
        self.earlier_start.or_else(|| self.days.first_key_value().map(|(date, _)| *date))
    }

    /// Returns the days. A counter that is not reported on a day gains 0 if it was known before.
    pub fn finish(mut self) -> BTreeMap<NaiveDate, Day> {
        for day in self.days.values_mut() {
            for (is_known, gain) in self.known.iter_mut().zip(&mut day.gains) {
                *is_known |= gain.is_some();
                if *is_known {
                    gain.get_or_insert(0);
                }
            }
        }
        self.days
    }
}

/// A day of a video.
#[derive(Debug, Clone, Copy)]
pub(super) struct VideoDay {
    pub date: NaiveDate,
    pub gains: Counts,
    pub has_saves: bool,
}

impl VideoDay {
    pub const fn without_gain(date: NaiveDate) -> Self {
        VideoDay { date, gains: [None; COUNTER_COUNT], has_saves: false }
    }
}

/// A video's days since one, and what its ages need of all.
#[derive(Debug)]
pub(super) struct VideoHistory {
    /// The position of its subject.
    pub subject: usize,
    pub video_id: u64,
    pub first_day: NaiveDate,
    /// The counters of the first snapshot, unless it is earlier.
    pub first_counts: Option<Counts>,
    pub days: Vec<VideoDay>,
    levels: Levels,
    views: Vec<(NaiveDate, i64)>,
}

impl VideoHistory {
    pub fn new(subject: usize, video_id: u64, first_day: NaiveDate) -> Self {
        VideoHistory {
            subject,
            video_id,
            first_day,
            first_counts: None,
            days: Vec::new(),
            levels: Levels::default(),
            views: Vec::new(),
        }
    }

    /// Adds the next snapshot, and to the days of its subject if it is not before `since`.
    pub fn add(
        &mut self,
        date: NaiveDate,
        observed_at: DateTime<Utc>,
        counts: Counts,
        since: NaiveDate,
        subject: &mut SubjectDays,
    ) {
        let day = self.levels.advance(&counts, observed_at);
        self.views.extend(counts[VIEWS].map(|views| (date, views)));
        if date < since {
            return;
        }
        if date == self.first_day {
            self.first_counts = Some(counts);
        }
        self.days.push(VideoDay { date, gains: day.gains, has_saves: self.levels.0[SAVES].is_some() });
        subject.add(date, &day);
    }

    /// The views at each age of a video that was posted then, by snapshots before a day; `None` if no age has any.
    pub fn age_views(&self, posted_at: DateTime<Utc>, before: NaiveDate) -> Option<AgeViews> {
        let after = |days: u64| posted_at.date_naive().checked_add_days(Days::new(days));
        let is_early = after(MAX_FIRST_OBSERVATION_DAYS).is_some_and(|latest| self.first_day <= latest);
        let known = &self.views[..self.views.partition_point(|(date, _)| *date < before)];
        let views = STORED_AGES.map(|age| LevelOnDay::interpolate(known, after(age.into())?));
        (is_early && views.iter().any(Option::is_some)).then_some(views)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, number).unwrap()
    }

    fn counts(views: Option<i64>, saves: Option<i64>) -> Counts {
        video_counts(Counters { view_count: views, saved_count: saves, ..Counters::default() })
    }

    fn at(date: NaiveDate) -> DateTime<Utc> {
        date.and_time(Default::default()).and_utc()
    }

    /// The example of docs/analytics.md, since its first day and since a later one.
    #[test]
    fn documented_example_has_the_documented_days() {
        for since in [2, 4] {
            let mut subject = SubjectDays::default();
            if since == 4 {
                subject.add_earlier(day(2), &counts(Some(0), None));
                subject.add_earlier(day(3), &counts(Some(40), None));
            }
            let mut old = VideoHistory::new(0, 1, day(2));
            for (number, views) in [(2, 5_000), (4, 5_300), (5, 5_250)] {
                let date = day(number);
                old.add(date, at(date), counts(Some(views), None), day(since), &mut subject);
            }
            let mut new = VideoHistory::new(0, 2, day(3));
            for (number, views, saves) in [(3, 40, None), (4, 90, Some(7)), (5, 90, Some(9))] {
                let date = day(number);
                new.add(date, at(date), counts(Some(views), saves), day(since), &mut subject);
            }
            assert_eq!(subject.tracking_start(), Some(day(2)));
            assert_eq!(new.first_counts.is_some(), since == 2);
            if let Some(first) = &new.first_counts {
                subject.count_from_zero(day(3), first);
            }
            let mut levels = Levels::default();
            for (number, followers) in [(4, 100), (5, 90)] {
                let date = day(number);
                subject.add(date, &levels.advance(&profile_counts(Some(followers)), at(date)));
            }
            let days = subject.finish();
            let column = |n: usize| -> Vec<_> {
                let expected = days.values().map(|day| (day.gains[n], day.bases[n]));
                if since == 2 { expected.skip(2).collect() } else { expected.collect() }
            };
            assert_eq!(column(VIEWS), [(Some(350), 0), (Some(-50), 0)]);
            assert_eq!(column(SAVES), [(Some(0), 7), (Some(2), 0)]);
            assert_eq!(column(9), [(Some(0), 100), (Some(-10), 0)]);
            if since == 2 {
                let views = days.values().map(|day| (day.gains[VIEWS], day.bases[VIEWS])).take(2);
                assert_eq!(views.collect::<Vec<_>>(), [(Some(0), 5_000), (Some(40), 0)]);
            }
        }
    }

    #[test]
    fn ages_need_an_early_snapshot() {
        let history = |snapshots: &[(u32, Option<i64>)]| {
            let mut history = VideoHistory::new(0, 1, day(snapshots[0].0));
            for (number, views) in snapshots {
                let date = day(*number);
                let counts = counts(*views, None);
                history.add(date, at(date), counts, date, &mut SubjectDays::default());
            }
            history
                .age_views(at(day(1)), NaiveDate::MAX)
                .map(|views| views.map(|views| Some((views?.value, views?.is_interpolated))))
        };
        let snapshots = [(2, Some(100)), (5, Some(201)), (6, None), (9, Some(40))];
        // Ages of 1, 3 and 7 days.
        let expected = [Some((100, false)), Some((167, true)), Some((80, true)), None, None];
        assert_eq!(history(&snapshots), Some(expected));
        assert_eq!(history(&[(3, None), (5, Some(7))]), None, "no age before the first value");
        assert_eq!(history(&[(4, Some(1)), (5, Some(2))]), None, "first observed too late");
    }
}
