//! Simulates growth: followers by day, a post's counters by age.
//!
//! Everything is a pure function of time, so that history, present and future lie on one curve: fast first days that
//! saturate, late waves of viral posts, busier weekends, and sometimes a purge that lowers a counter.

use chrono::{DateTime, Utc};

use super::platform::Counters;
use super::rng::SeededRng;

const DAY_SECONDS: f64 = 86_400.0;

/// The growth of an account's audience.
#[derive(Debug, Clone)]
pub struct Audience {
    /// Followers when the account was created.
    base: f64,
    /// Growth per year, relative to `base`.
    trend: f64,
    /// Amplitude of a periodic fluctuation, relative.
    wobble: f64,
    period_days: f64,
    phase: f64,
    following: i64,
    /// Sudden changes: followers that a hit brings, or that the platform removes.
    jumps: Vec<Jump>,
}

#[derive(Debug, Clone)]
struct Jump {
    /// Age of the account in days.
    at_day: f64,
    width_days: f64,
    followers: f64,
}

impl Audience {
    /// An audience whose size depends on the fame of the account's creator, from a standard normal distribution.
    pub fn random(rng: &mut SeededRng, fame: f64) -> Self {
        Audience {
            base: (9.4 + 1.5 * fame + 0.8 * rng.next_normal()).clamp(4.0, 14.8).exp(),
            trend: rng.next_range(-0.05, 0.8),
            wobble: rng.next_range(0.001, 0.006),
            period_days: rng.next_range(9.0, 40.0),
            phase: rng.next_f64() * std::f64::consts::TAU,
            following: 20 + rng.next_below(1900) as i64,
            jumps: Vec::new(),
        }
    }

    /// Replaces followers at the start and growth per year.
    #[must_use]
    pub fn with_size(self, base: f64, trend: f64) -> Self {
        Audience { base, trend, ..self }
    }

    /// Adds followers, or removes some, at an age in days.
    pub fn add_jump(&mut self, at_day: f64, width_days: f64, followers: f64) {
        self.jumps.push(Jump { at_day, width_days, followers });
    }

    /// Returns the followers of an account that was created at one time at another.
    pub fn followers(&self, created: DateTime<Utc>, time: DateTime<Utc>) -> i64 {
        let days = (weighted_days(time) - weighted_days(created)).max(0.0);
        let wobble = 1.0 + self.wobble * (days / self.period_days * std::f64::consts::TAU + self.phase).sin();
        let jump = |jump: &Jump| jump.followers * logistic((days - jump.at_day) / jump.width_days);
        (self.size(days) * wobble + self.jumps.iter().map(jump).sum::<f64>()).max(1.0) as i64
    }

    /// Returns how many accounts an account of this age follows.
    pub fn following(&self, days: f64) -> i64 {
        self.following + (days / 11.0) as i64
    }

    /// Returns how many viewers a post can reach: the larger an audience, the smaller the share of it that watches.
    pub fn reach(&self, days: f64) -> f64 {
        4.7 * self.size(days).powf(0.85)
    }

    /// Returns the followers by the trend alone.
    fn size(&self, days: f64) -> f64 {
        self.base * (1.0 + self.trend * days / 365.0).max(0.1)
    }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The kinds of posts that have different counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostKind {
    Tiktok,
    Reel,
    /// An Instagram image or carousel, whose views are not counted.
    Still,
}

/// The growth of a post's counters.
#[derive(Debug, Clone)]
pub struct CounterCurve {
    kind: PostKind,
    /// The views that the first rush approaches.
    total: f64,
    /// The time constant of the first rush, in days.
    tau: f64,
    /// A later wave of views.
    wave: Option<Wave>,
    /// A removal of fake likes and comments.
    purge: Option<Purge>,
    like_rate: f64,
    comment_rate: f64,
    share_rate: f64,
    save_rate: f64,
    hidden_likes: bool,
    /// The share of plays on Facebook, if the post is shown there.
    facebook_share: Option<f64>,
}

/// A logistic step of views.
#[derive(Debug, Clone)]
struct Wave {
    at_day: f64,
    width_days: f64,
    /// Relative to the first rush.
    size: f64,
}

#[derive(Debug, Clone)]
struct Purge {
    at_day: f64,
    /// The share of likes and comments that remains.
    remaining: f64,
}

impl CounterCurve {
    /// The curve of a post that can reach so many viewers, and as a hit so many others.
    pub fn random(rng: &mut SeededRng, kind: PostKind, reach: f64, hit_views: Option<f64>) -> Self {
        let viral = rng.next_bool(0.03);
        let luck =
            (0.9 * rng.next_normal() - 0.9).exp() * if viral { rng.next_range(3.0, 12.0) } else { 1.0 };
        let wave = (viral || rng.next_bool(0.06)).then(|| Wave {
            at_day: rng.next_range(12.0, 90.0),
            width_days: rng.next_range(1.0, 4.0),
            size: rng.next_range(0.2, 1.2),
        });
        CounterCurve {
            kind,
            total: (reach * luck + hit_views.unwrap_or(0.0)).clamp(5.0, 4.0e8),
            tau: rng.next_range(0.8, 5.0),
            wave,
            purge: rng
                .next_bool(0.04)
                .then(|| Purge { at_day: rng.next_range(3.0, 60.0), remaining: rng.next_range(0.9, 0.985) }),
            like_rate: rng.next_range(0.03, 0.14),
            comment_rate: rng.next_range(0.0008, 0.008),
            share_rate: rng.next_range(0.001, 0.015),
            save_rate: rng.next_range(0.002, 0.02),
            hidden_likes: kind != PostKind::Tiktok && rng.next_bool(0.05),
            facebook_share: (kind == PostKind::Reel && rng.next_bool(0.3)).then(|| rng.next_range(0.05, 0.3)),
        }
    }

    /// Returns the counters at a time, for a post of that creation time; zeros at first.
    pub fn counters_at(&self, created: DateTime<Utc>, time: DateTime<Utc>) -> Counters {
        let age = (weighted_days(time) - weighted_days(created)).max(0.0);
        let remaining = match &self.purge {
            Some(purge) if age >= purge.at_day => purge.remaining,
            _ => 1.0,
        };
        let count = |rate: f64, slowness: f64| self.total * rate * self.fraction_reached(age, slowness);
        let views = count(1.0, 1.0);
        let likes = count(self.like_rate, 0.9) * remaining;
        let common = Counters {
            like_count: (!self.hidden_likes).then_some(likes as i64),
            comment_count: Some((count(self.comment_rate, 1.4) * remaining) as i64),
            share_count: Some(count(self.share_rate, 1.1) as i64),
            ..Counters::default()
        };
        match self.kind {
            PostKind::Tiktok => Counters {
                view_count: Some(views as i64),
                saved_count: Some(count(self.save_rate, 1.6) as i64),
                play_count: Some(views as i64),
                ..common
            },
            PostKind::Reel => {
                let plays = views * 1.18;
                Counters {
                    view_count: Some(views as i64),
                    play_count: Some(plays as i64),
                    ig_play_count: Some((plays * (1.0 - self.facebook_share.unwrap_or(0.0))) as i64),
                    fb_play_count: self.facebook_share.map(|share| (plays * share) as i64),
                    fb_like_count: self.facebook_share.map(|share| (likes * share) as i64),
                    ..common
                }
            }
            PostKind::Still => common,
        }
    }

    /// Returns the fraction of its total that a counter has reached; `slowness` stretches the first days.
    fn fraction_reached(&self, age: f64, slowness: f64) -> f64 {
        let rush = 1.0 - (-age / (self.tau * slowness)).exp();
        let tail = age / (age + 60.0);
        let first = 0.82 * rush + 0.18 * tail;
        match &self.wave {
            Some(wave) => {
                let step = |day: f64| logistic((day - wave.at_day) / wave.width_days);
                // Subtracting the step at age 0 makes the wave start at zero.
                first + wave.size * (step(age) - step(0.0)).max(0.0)
            }
            None => first,
        }
    }
}

/// Returns days on a scale on which weekend hours weigh more than weekday hours; a week still weighs seven.
fn weighted_days(time: DateTime<Utc>) -> f64 {
    const WEEKDAY_WEIGHT: f64 = 0.88;
    const WEEKEND_WEIGHT: f64 = 1.3;
    // 1970-01-01 was a Thursday: counted from the Monday before, the weekend begins after five days.
    let days = time.timestamp() as f64 / DAY_SECONDS + 3.0;
    let weeks = (days / 7.0).floor();
    let within = days - weeks * 7.0;
    weeks * 7.0 + within.min(5.0) * WEEKDAY_WEIGHT + (within - 5.0).max(0.0) * WEEKEND_WEIGHT
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    fn noon(text: &str) -> DateTime<Utc> {
        format!("{text}T12:00:00Z").parse().unwrap()
    }

    #[test]
    fn weekend_day_weighs_more_and_week_weighs_seven() {
        let days = |from: &str, to: &str| weighted_days(noon(to)) - weighted_days(noon(from));
        assert!((days("2026-03-02", "2026-03-09") - 7.0).abs() < 1e-9);
        // Saturday to Sunday against Tuesday to Wednesday.
        assert!(days("2026-03-07", "2026-03-08") > 1.4 * days("2026-03-03", "2026-03-04"));
    }

    #[test]
    fn counters_grow_from_zero_and_only_a_purge_lowers_them() {
        let created = noon("2026-03-02");
        let mut falls = 0;
        for number in 0..400 {
            let kind = [PostKind::Tiktok, PostKind::Reel, PostKind::Still][number % 3];
            let curve = CounterCurve::random(&mut SeededRng::new(3, &[number as u64]), kind, 100_000.0, None);
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
