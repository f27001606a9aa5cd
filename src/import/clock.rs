//! Completes times as they are written: their zone, and the year of days without one.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use super::time::WrittenTime;
use super::zone::{FoundZone, TimePair};

/// Pairs of times that a zone is found from.
pub const MAX_PAIRS: usize = 200_000;
/// A day that is so much earlier in the year than the one before is of the next year.
const TURN_OF_YEAR_DAYS: i64 = 183;
/// Years back from now that are tried for days without one.
const MAX_YEARS: i32 = 8;
/// How long after the time in its id a post is ordinarily published.
const UPLOAD_MINUTES: i64 = 2;

/// Days without a year in the order of rows: each has a number of years from the first one's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DaySequence {
    last: Option<(u32, u32)>,
    years: i32,
}

impl DaySequence {
    /// Returns the number of years from the first day's.
    pub fn add(&mut self, month: u32, day: u32) -> i32 {
        // A leap year has every day.
        let ordinal =
            |(m, d)| NaiveDate::from_ymd_opt(2_000, m, d).map_or(0, |date| i64::from(date.ordinal()));
        if let Some(last) = self.last {
            match ordinal((month, day)) - ordinal(last) {
                difference if difference < -TURN_OF_YEAR_DAYS => self.years += 1,
                difference if difference > TURN_OF_YEAR_DAYS => self.years -= 1,
                _ => {}
            }
        }
        self.last = Some((month, day));
        self.years
    }
}

/// What a first reading of a table collects.
#[derive(Debug, Default)]
pub struct Survey {
    pub pairs: Vec<TimePair>,
    /// Whether there are times without a zone.
    pub has_local_times: bool,
    sequence: DaySequence,
    days: Vec<(i32, u32, u32)>,
}

impl Survey {
    pub fn add_day(&mut self, month: u32, day: u32) {
        let entry = (self.sequence.add(month, day), month, day);
        if self.days.last() != Some(&entry) {
            self.days.push(entry);
        }
    }

    /// Returns the newest year of the first day that makes none lie in the future.
    fn first_year(&self, today: NaiveDate) -> Option<i32> {
        let is_past = |year: &i32| {
            self.days.iter().all(|(offset, month, day)| {
                NaiveDate::from_ymd_opt(year + offset, *month, *day).is_some_and(|date| date <= today)
            })
        };
        (0..MAX_YEARS).map(|back| today.year() + 1 - back).find(is_past)
    }
}

/// The times of a table.
#[derive(Debug)]
pub struct TableClock {
    /// The zone of the format, or of `--time-zone`.
    zone: Tz,
    found: Option<FoundZone>,
    first_year: Option<i32>,
    sequence: DaySequence,
    pub is_surveyed: bool,
}

impl TableClock {
    pub fn new(zone: Tz) -> Self {
        TableClock {
            zone,
            found: None,
            first_year: None,
            sequence: DaySequence::default(),
            is_surveyed: false,
        }
    }

    /// Takes what a first reading found. `given`: `--time-zone`, which overrides it. Returns what is assumed.
    pub fn finish_survey(&mut self, survey: Survey, given: Option<Tz>, now: DateTime<Utc>) -> Vec<String> {
        self.is_surveyed = true;
        let mut assumed = Vec::new();
        if !survey.days.is_empty() {
            let today = now.with_timezone(&given.unwrap_or(self.zone)).date_naive();
            self.first_year = survey.first_year(today);
            assumed.extend(self.first_year.map(|year| format!("the first day without a year is of {year}")));
        }
        if given.is_some() || !survey.has_local_times {
            return assumed;
        }
        let zone = self.zone;
        let found = FoundZone::new(survey.pairs.clone());
        let found = found.filter(|found| found.differs_from(&survey.pairs, |time| in_zone(zone, time)));
        assumed.push(match &found {
            Some(found) => format!(
                "times without a zone are {}: {} of {} posting times agree with those in the ids",
                found.describe(),
                found.agreeing,
                found.posts
            ),
            None => format!("times without a zone are {}; --time-zone gives another", self.zone.name()),
        });
        self.found = found;
        assumed
    }

    pub fn to_utc(&self, time: NaiveDateTime) -> DateTime<Utc> {
        self.found.as_ref().and_then(|found| found.to_utc(time)).unwrap_or_else(|| in_zone(self.zone, time))
    }

    /// Completes a time of observation. A day is its start.
    pub fn observation(&mut self, written: WrittenTime) -> Option<DateTime<Utc>> {
        match written {
            WrittenTime::At(time) => Some(time),
            WrittenTime::Local(time) => Some(self.to_utc(time)),
            WrittenTime::Day(day) => Some(midnight(day)),
            WrittenTime::DayOfYear { month, day } => {
                let year = self.sequence.add(month, day) + self.first_year?;
                NaiveDate::from_ymd_opt(year, month, day).map(midnight)
            }
        }
    }

    /// Completes a posting time by that in the id.
    pub fn posting(&self, written: WrittenTime, id_time: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        match written {
            WrittenTime::At(time) => Some(time),
            WrittenTime::Local(time) => Some(self.to_utc(time)),
            WrittenTime::Day(day) => Some(on_day(day, id_time)),
            WrittenTime::DayOfYear { month, day } => {
                let id_day = id_time?.date_naive();
                let years = (id_day.year() - 1)..=(id_day.year() + 1);
                let days = years.filter_map(|year| NaiveDate::from_ymd_opt(year, month, day));
                days.min_by_key(|date| (*date - id_day).abs()).map(|date| on_day(date, id_time))
            }
        }
    }
}

/// Returns the id's time if it is on that day or a neighbour, in some zone; else the start of the day.
fn on_day(day: NaiveDate, id_time: Option<DateTime<Utc>>) -> DateTime<Utc> {
    let is_near = |time: &DateTime<Utc>| (time.date_naive() - day).abs() <= TimeDelta::days(1);
    id_time.filter(is_near).unwrap_or_else(|| midnight(day))
}

fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// Whether a posting time is not the one in the id.
pub fn differ(posting: DateTime<Utc>, id_time: DateTime<Utc>) -> bool {
    (posting - id_time).abs() > TimeDelta::minutes(UPLOAD_MINUTES)
}

/// Converts a local time: the earlier one if a change of the clocks repeats it, and later by the gap if it skips it.
fn in_zone(zone: Tz, time: NaiveDateTime) -> DateTime<Utc> {
    let found = zone.from_local_datetime(&time).earliest().or_else(|| {
        let later = zone.from_local_datetime(&(time + TimeDelta::hours(1))).earliest()?;
        later.checked_sub_signed(TimeDelta::hours(1))
    });
    found.map_or_else(|| time.and_utc(), |time| time.to_utc())
}

#[cfg(test)]
mod tests {
    use chrono_tz::{US::Pacific, UTC};

    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn days_without_a_year_are_the_newest_of_the_past() {
        let first_year = |days: &[(u32, u32)], today: &str| {
            let mut survey = Survey::default();
            for (month, day) in days {
                survey.add_day(*month, *day);
            }
            survey.first_year(day(today))
        };
        for (days, today, expected) in [
            (&[(9, 30), (9, 30)][..], "2026-11-29", Some(2_026)),
            (&[(9, 30)], "2026-09-30", Some(2_026)),
            (&[(9, 30)], "2026-09-29", Some(2_025)),
            (&[(12, 26), (12, 31), (1, 1), (1, 6)], "2026-11-29", Some(2_025)),
            (&[(12, 26), (12, 31), (1, 1), (1, 6)], "2026-01-05", Some(2_024)),
            (&[(1, 2), (1, 1), (12, 31)], "2026-11-29", Some(2_026)),
            (&[(2, 28), (2, 29)], "2026-11-29", Some(2_024)),
        ] {
            assert_eq!(first_year(days, today), expected, "{days:?} {today}");
        }
    }

    #[test]
    fn posting_times_are_completed_by_the_id() {
        let clock = TableClock::new(UTC);
        let given = Some("2026-01-01T02:09:55Z".parse().unwrap());
        let posting = |written, id| clock.posting(written, id).map(|time| time.to_rfc3339());
        let written = |month, day| WrittenTime::DayOfYear { month, day };
        for (time, id, expected) in [
            (written(12, 31), given, Some("2026-01-01T02:09:55+00:00")),
            (written(1, 2), given, Some("2026-01-01T02:09:55+00:00")),
            (written(1, 3), given, Some("2026-01-03T00:00:00+00:00")),
            (written(12, 28), given, Some("2025-12-28T00:00:00+00:00")),
            (written(12, 28), None, None),
            (WrittenTime::Day(day("2025-12-31")), given, Some("2026-01-01T02:09:55+00:00")),
            (WrittenTime::Day(day("2025-12-30")), given, Some("2025-12-30T00:00:00+00:00")),
            (WrittenTime::Day(day("2025-12-30")), None, Some("2025-12-30T00:00:00+00:00")),
        ] {
            assert_eq!(posting(time, id).as_deref(), expected, "{time:?}");
        }
    }

    #[test]
    fn local_times_are_of_the_zone_unless_the_ids_tell_another() {
        let local = |text: &str| WrittenTime::Local(text.parse().unwrap());
        let clock = TableClock::new(Pacific);
        let posting = |of: &TableClock, text: &str| of.posting(local(text), None).unwrap().to_rfc3339();
        assert_eq!(posting(&clock, "2026-02-26T20:15:00"), "2026-02-27T04:15:00+00:00");
        assert_eq!(posting(&clock, "2026-03-09T08:05:00"), "2026-03-09T15:05:00+00:00");
        assert_eq!(posting(&clock, "2026-03-08T02:30:00"), "2026-03-08T09:30:00+00:00");
        assert_eq!(posting(&clock, "2026-11-01T01:30:00"), "2026-11-01T08:30:00+00:00");

        let survey = || {
            let mut survey = Survey { has_local_times: true, ..Survey::default() };
            for n in 0..4 {
                let id: DateTime<Utc> = "2026-02-01T10:00:00Z".parse().unwrap();
                let id = id + TimeDelta::days(n);
                survey.pairs.push(TimePair::new((id + TimeDelta::minutes(62)).naive_utc(), id));
            }
            survey
        };
        let now = "2026-11-29T00:00:00Z".parse().unwrap();
        let mut found = TableClock::new(Pacific);
        let assumed = found.finish_survey(survey(), None, now).concat();
        assert!(assumed.contains("UTC+01:00") && assumed.contains("4 of 4"), "{assumed}");
        assert_eq!(posting(&found, "2026-02-02T11:00:00"), "2026-02-02T10:00:00+00:00");
        let mut given = TableClock::new(UTC);
        assert_eq!(given.finish_survey(survey(), Some(UTC), now), Vec::<String>::new());
        assert_eq!(posting(&given, "2026-02-02T11:00:00"), "2026-02-02T11:00:00+00:00");
    }
}
