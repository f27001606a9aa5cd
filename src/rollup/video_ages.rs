//! The views of one video at the stored ages, from its snapshots in plain loops.
//!
//! It shares nothing with the relay's computation (`history_writer::rollup`) except the rules of docs/analytics.md.

use chrono::{Days, NaiveDate};

use crate::model::ages::{MAX_FIRST_OBSERVATION_DAYS, STORED_AGES};

/// Views, and whether they are interpolated.
pub type AgeViews = [Option<(i64, bool)>; STORED_AGES.len()];

/// Accumulates the snapshots of a video, in the order of their days.
#[derive(Debug, Clone)]
pub struct VideoAges {
    posted_on: Option<NaiveDate>,
    /// Whether the first snapshot was early enough; unknown before it.
    is_early: Option<bool>,
    last_known: Option<(NaiveDate, i64)>,
    views: AgeViews,
}

impl VideoAges {
    pub fn new(posted_on: Option<NaiveDate>) -> Self {
        VideoAges { posted_on, is_early: None, last_known: None, views: AgeViews::default() }
    }

    pub fn add(&mut self, date: NaiveDate, views: Option<i64>) {
        let after =
            |days: u64| self.posted_on.and_then(|posted_on| posted_on.checked_add_days(Days::new(days)));
        self.is_early.get_or_insert(after(MAX_FIRST_OBSERVATION_DAYS).is_some_and(|latest| date <= latest));
        let Some(views) = views else { return };
        for (age, known) in STORED_AGES.into_iter().zip(&mut self.views) {
            let Some(day) = after(age.into()) else { continue };
            match self.last_known {
                _ if date == day => *known = Some((views, false)),
                Some((before, from)) if before < day && day < date => {
                    *known = Some((interpolate(before, from, date, views, day), true));
                }
                _ => {}
            }
        }
        self.last_known = Some((date, views));
    }

    /// Returns the views at each age; none if no age has any.
    pub fn finish(self) -> Option<AgeViews> {
        let has_views = self.is_early == Some(true) && self.views.iter().any(Option::is_some);
        has_views.then_some(self.views)
    }
}

/// The value on a day between two others, rounded half up: views are not negative.
fn interpolate(before: NaiveDate, from: i64, after: NaiveDate, to: i64, day: NaiveDate) -> i64 {
    let (length, elapsed) = ((after - before).num_days(), (day - before).num_days());
    let change = i128::from(to) - i128::from(from);
    let doubled = 2 * (i128::from(from) * i128::from(length) + change * i128::from(elapsed));
    ((doubled + i128::from(length)) / (2 * i128::from(length))) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 3, number).unwrap()
    }

    #[test]
    fn ages_between_snapshots_are_interpolated() {
        let ages = |posted: u32, snapshots: &[(u32, Option<i64>)]| {
            let mut ages = VideoAges::new(Some(day(posted)));
            snapshots.iter().for_each(|(number, views)| ages.add(day(*number), *views));
            ages.finish()
        };
        let snapshots = [(2, Some(100)), (5, Some(201)), (6, None), (9, Some(40))];
        // Ages of 1, 3 and 7 days.
        let expected = [Some((100, false)), Some((167, true)), Some((80, true)), None, None];
        assert_eq!(ages(1, &snapshots), Some(expected));
        assert_eq!(ages(1, &[(3, None), (5, Some(7))]), None, "no age before the first value");
        assert_eq!(ages(1, &[(4, Some(1)), (5, Some(2))]), None, "first observed too late");
        assert_eq!(VideoAges::new(None).finish(), None);
    }
}
