//! How numbers grow: an audience by the day, a post's counters by its age.
//!
//! Everything is a pure function of time, so that history, the present and any later day belong to one curve:
//! quick first days that saturate, late waves of viral posts, busier weekends, and now and then a purge after
//! which a counter is lower than before.

use chrono::{DateTime, Utc};

use super::rng::SeededRng;
use crate::model::counters::Counters;

const DAY: f64 = 86_400.0;

/// How an account's audience develops.
#[derive(Debug, Clone)]
pub struct Audience {
    /// Followers when the account began.
    base: f64,
    /// What a year adds, as a share of the base.
    trend: f64,
    wobble: f64,
    period_days: f64,
    phase: f64,
    following: i64,
}

impl Audience {
    /// Draws an audience.
    pub fn draw(dice: &mut SeededRng) -> Self {
        Audience {
            base: (9.6 + 1.9 * dice.next_normal()).clamp(6.2, 15.2).exp(),
            trend: dice.range(-0.05, 0.8),
            wobble: dice.range(0.001, 0.006),
            period_days: dice.range(9.0, 40.0),
            phase: dice.next_f64() * std::f64::consts::TAU,
            following: 20 + dice.below(1900) as i64,
        }
    }

    /// Followers after so many days.
    pub fn followers(&self, days: f64) -> i64 {
        let grown = 1.0 + self.trend * days / 365.0;
        let wobble = 1.0 + self.wobble * (days / self.period_days * std::f64::consts::TAU + self.phase).sin();
        (self.base * grown.max(0.1) * wobble) as i64
    }

    /// How many others the account follows after so many days.
    pub fn following(&self, days: f64) -> i64 {
        self.following + (days / 11.0) as i64
    }

    /// The audience that a post can hope for.
    pub fn reach(&self, days: f64) -> f64 {
        self.base * (1.0 + self.trend * days / 365.0).max(0.1)
    }
}

/// What kind of post it is, as far as numbers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostKind {
    Tiktok,
    Reel,
    /// An Instagram image or carousel: nobody counts its views.
    Still,
}

/// How one post's counters develop.
#[derive(Debug, Clone)]
pub struct CounterCurve {
    kind: PostKind,
    /// The views that it will have had in the end.
    total: f64,
    /// The days in which the first rush loses most of its strength.
    tau: f64,
    /// A second life: at which age, how wide in days, and how large beside the first.
    wave: Option<(f64, f64, f64)>,
    /// A purge of false likes: at which age, and which share stays.
    purge: Option<(f64, f64)>,
    like_rate: f64,
    comment_rate: f64,
    share_rate: f64,
    save_rate: f64,
    hidden_likes: bool,
    /// Which share of its plays happened on Facebook, when the post was shown there.
    facebook: Option<f64>,
}

impl CounterCurve {
    /// Draws a post of this kind for an account of this reach.
    pub fn draw(dice: &mut SeededRng, kind: PostKind, reach: f64) -> Self {
        let viral = dice.chance(0.025);
        let luck = (0.9 * dice.next_normal() - 0.9).exp() * if viral { dice.range(8.0, 30.0) } else { 1.0 };
        let wave = (viral || dice.chance(0.06))
            .then(|| (dice.range(12.0, 90.0), dice.range(1.0, 4.0), dice.range(0.2, 1.2)));
        CounterCurve {
            kind,
            total: (reach * luck).clamp(40.0, 4.0e8),
            tau: dice.range(0.8, 5.0),
            wave,
            purge: dice.chance(0.04).then(|| (dice.range(3.0, 60.0), dice.range(0.9, 0.985))),
            like_rate: dice.range(0.03, 0.14),
            comment_rate: dice.range(0.0008, 0.008),
            share_rate: dice.range(0.001, 0.015),
            save_rate: dice.range(0.002, 0.02),
            hidden_likes: kind != PostKind::Tiktok && dice.chance(0.05),
            facebook: (kind == PostKind::Reel && dice.chance(0.3)).then(|| dice.range(0.05, 0.3)),
        }
    }

    /// The counters at a time, for a post of that creation time: zeros at first.
    pub fn counters_at(&self, created: DateTime<Utc>, time: DateTime<Utc>) -> Counters {
        let age = (weighted_days(time) - weighted_days(created)).max(0.0);
        let kept = match self.purge {
            Some((at, kept)) if age >= at => kept,
            _ => 1.0,
        };
        let views = self.total * self.fraction_reached(age, 1.0);
        let likes = self.total * self.like_rate * self.fraction_reached(age, 0.9) * kept;
        let comments = (self.total * self.comment_rate * self.fraction_reached(age, 1.4) * kept) as i64;
        let shares = (self.total * self.share_rate * self.fraction_reached(age, 1.1)) as i64;
        let saves = (self.total * self.save_rate * self.fraction_reached(age, 1.6)) as i64;
        let like_count = (!self.hidden_likes).then_some(likes as i64);
        match self.kind {
            PostKind::Tiktok => Counters {
                view_count: Some(views as i64),
                like_count,
                comment_count: Some(comments),
                share_count: Some(shares),
                saved_count: Some(saves),
                play_count: Some(views as i64),
                ..Counters::default()
            },
            PostKind::Reel => {
                let plays = views * 1.18;
                Counters {
                    view_count: Some(views as i64),
                    like_count,
                    comment_count: Some(comments),
                    share_count: Some(shares),
                    play_count: Some(plays as i64),
                    ig_play_count: Some((plays * (1.0 - self.facebook.unwrap_or(0.0))) as i64),
                    fb_play_count: self.facebook.map(|part| (plays * part) as i64),
                    fb_like_count: self.facebook.map(|part| (likes * part) as i64),
                    ..Counters::default()
                }
            }
            PostKind::Still => Counters {
                like_count,
                comment_count: Some(comments),
                share_count: Some(shares),
                ..Counters::default()
            },
        }
    }

    /// Which share of its total a counter has reached; `slowness` stretches the first days.
    fn fraction_reached(&self, age: f64, slowness: f64) -> f64 {
        let rush = 1.0 - (-age / (self.tau * slowness)).exp();
        let tail = age / (age + 60.0);
        let first = 0.82 * rush + 0.18 * tail;
        match self.wave {
            // A logistic step that starts at nothing.
            Some((at, width, size)) => {
                let step = |age: f64| 1.0 / (1.0 + ((at - age) / width).exp());
                first + size * (step(age) - step(0.0)).max(0.0)
            }
            None => first,
        }
    }
}

/// Days since 1970 in which a weekend's hours weigh more than a weekday's; a week weighs seven.
fn weighted_days(time: DateTime<Utc>) -> f64 {
    const WEEKDAY: f64 = 0.88;
    const WEEKEND: f64 = 1.3;
    // 1970-01-01 was a Thursday: counted from the Monday before, the weekend begins after five days.
    let days = time.timestamp() as f64 / DAY + 3.0;
    let weeks = (days / 7.0).floor();
    let within = days - weeks * 7.0;
    weeks * 7.0 + within.min(5.0) * WEEKDAY + (within - 5.0).max(0.0) * WEEKEND
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    fn noon(text: &str) -> DateTime<Utc> {
        format!("{text}T12:00:00Z").parse().unwrap()
    }

    #[test]
    fn a_weekend_day_weighs_more_and_a_week_weighs_seven() {
        let days = |from: &str, to: &str| weighted_days(noon(to)) - weighted_days(noon(from));
        assert!((days("2026-03-02", "2026-03-09") - 7.0).abs() < 1e-9);
        // Saturday to Sunday against Tuesday to Wednesday.
        assert!(days("2026-03-07", "2026-03-08") > 1.4 * days("2026-03-03", "2026-03-04"));
    }

    #[test]
    fn counters_start_near_zero_grow_and_only_a_purge_lowers_them() {
        let created = noon("2026-03-02");
        let mut falls = 0;
        for number in 0..400 {
            let kind = [PostKind::Tiktok, PostKind::Reel, PostKind::Still][number % 3];
            let curve = CounterCurve::draw(&mut SeededRng::new(3, &[number as u64]), kind, 100_000.0);
            assert!(
                curve.counters_at(created, created).to_array().iter().all(|count| count.unwrap_or(0) == 0)
            );
            let mut before = curve.counters_at(created, created);
            let mut fell = false;
            for day in 1..200 {
                let counters = curve.counters_at(created, created + TimeDelta::days(day));
                assert!(counters.view_count >= before.view_count, "views fell");
                assert!(counters.to_array().iter().all(|count| count.unwrap_or(0) >= 0));
                fell |= counters.like_count < before.like_count;
                before = counters;
            }
            assert!(!fell || curve.purge.is_some());
            falls += i32::from(fell);
            assert_eq!(before.view_count.is_some(), kind != PostKind::Still);
            assert_eq!(before.saved_count.is_some(), kind == PostKind::Tiktok);
        }
        assert!(falls > 0, "no post of 400 was ever purged");
    }
}
