//! Limits the requests of each key per clock minute, counted exactly, in this process or in Postgres for all processes.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use salvo::http::HeaderName;
use salvo::{Depot, Response, handler};
use uuid::Uuid;

use super::record_metrics::count_rate_limit_rejection;
use crate::app::{App, RateLimitStore};
use crate::http::caller::Caller;
use crate::http::deadline::TimeBudget;
use crate::http::output::problem::Problem;
use crate::store::records::rate_limits::{self, RateLimitWindow};

const WINDOW_SECONDS: i64 = 60;

/// Counts requests by key in the current clock minute.
pub struct MinuteWindows<K>(Mutex<Counts<K>>);

struct Counts<K> {
    /// Since the epoch.
    minute: i64,
    used: HashMap<K, u32>,
}

/// The window of a key after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowStatus {
    pub is_allowed: bool,
    pub remaining: u32,
    /// End of the window, in Unix seconds.
    pub reset: i64,
    pub seconds_left: u64,
}

impl WindowStatus {
    fn from_postgres(window: RateLimitWindow, limit: u32) -> Self {
        let used = window.used.map(|used| u32::try_from(used).unwrap_or(limit));
        let reset = (window.unix_seconds.div_euclid(WINDOW_SECONDS) + 1) * WINDOW_SECONDS;
        WindowStatus {
            is_allowed: used.is_some(),
            remaining: used.map_or(0, |used| limit.saturating_sub(used)),
            reset,
            seconds_left: u64::try_from(reset - window.unix_seconds).unwrap_or_default(),
        }
    }
}

impl<K> Default for MinuteWindows<K> {
    fn default() -> Self {
        MinuteWindows(Mutex::new(Counts { minute: i64::MIN, used: HashMap::new() }))
    }
}

impl<K: Eq + Hash> MinuteWindows<K> {
    /// Counts a request, unless the limit is reached.
    pub fn count(&self, key: K, limit: u32, now: DateTime<Utc>) -> WindowStatus {
        let second = now.timestamp();
        let minute = second.div_euclid(WINDOW_SECONDS);
        let mut counts = self.0.lock();
        // A clock that steps back a little does not reopen a window. One that was far ahead was wrong.
        if minute > counts.minute || minute < counts.minute - 1 {
            counts.minute = minute;
            counts.used.clear();
        }
        let reset = (counts.minute + 1) * WINDOW_SECONDS;
        let used = counts.used.entry(key).or_default();
        let is_allowed = *used < limit;
        *used += u32::from(is_allowed);
        let seconds_left = u64::try_from(reset - second).unwrap_or_default();
        WindowStatus { is_allowed, remaining: limit.saturating_sub(*used), reset, seconds_left }
    }
}

#[derive(Default)]
pub struct RateLimit(MinuteWindows<Uuid>);

impl RateLimit {
    async fn count(&self, app: &App, caller: &Caller, budget: TimeBudget) -> Result<WindowStatus, Problem> {
        let count_here = || self.0.count(caller.key, caller.rate_limit, Utc::now());
        match app.settings.rate_limit_store {
            RateLimitStore::Memory => Ok(count_here()),
            RateLimitStore::Postgres => {
                let window = async {
                    let _permit = app.writes.acquire(caller.organization).await?;
                    rate_limits::count_request(&app.pg, caller.key, caller.rate_limit).await
                };
                match budget.timeout(window).await? {
                    // Reads still work while Postgres rejects writes, limited by this process alone.
                    Err(error) if error.rejects_writes() => Ok(count_here()),
                    window => Ok(WindowStatus::from_postgres(window?, caller.rate_limit)),
                }
            }
        }
    }
}

#[handler]
impl RateLimit {
    async fn handle(&self, depot: &mut Depot, res: &mut Response) -> Result<(), Problem> {
        let started = Instant::now();
        let budget = TimeBudget::from_depot(depot);
        let (Ok(app), Ok(caller)) = (depot.get_typed::<App>(), depot.get_typed::<Caller>()) else {
            return Err(Problem::internal("the rate limit needs authentication"));
        };
        let (window, limit) = (self.count(app, caller, budget).await?, caller.rate_limit);
        depot.insert_typed(budget.minus(started.elapsed()));
        let headers = res.headers_mut();
        headers.insert(HeaderName::from_static("x-ratelimit-limit"), limit.into());
        headers.insert(HeaderName::from_static("x-ratelimit-remaining"), window.remaining.into());
        headers.insert(HeaderName::from_static("x-ratelimit-reset"), window.reset.into());
        if window.is_allowed {
            return Ok(());
        }
        count_rate_limit_rejection("key");
        let detail = format!("more than {limit} requests in this minute: wait until the window ends");
        Err(Problem::rate_limited(detail, window.seconds_left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn limit_is_exact_under_concurrency() {
        let windows = MinuteWindows::default();
        let is_allowed = || windows.count("key", 77, at(120)).is_allowed;
        let allowed: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| (0..50).filter(|_| is_allowed()).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(allowed, 77);
        assert_eq!(windows.count("other", 77, at(179)).remaining, 76);
    }

    #[test]
    fn windows_are_clock_minutes_and_never_reopen() {
        let windows = MinuteWindows::default();
        let status = windows.count("key", 1, at(179));
        assert_eq!(status, WindowStatus { is_allowed: true, remaining: 0, reset: 180, seconds_left: 1 });
        assert!(!windows.count("key", 1, at(179)).is_allowed);
        assert!(windows.count("key", 1, at(180)).is_allowed);
        assert!(!windows.count("key", 1, at(170)).is_allowed);
    }

    #[test]
    fn clock_that_was_far_ahead_does_not_lock_keys_out() {
        let windows = MinuteWindows::default();
        assert!(windows.count("key", 1, at(86_400)).is_allowed);
        let status = windows.count("key", 1, at(150));
        assert_eq!(status, WindowStatus { is_allowed: true, remaining: 0, reset: 180, seconds_left: 30 });
        assert!(!windows.count("key", 1, at(150)).is_allowed);
    }

    #[test]
    fn lowered_limit_applies_within_the_window() {
        let windows = MinuteWindows::default();
        for _ in 0..5 {
            windows.count("key", 10, at(0));
        }
        let status = windows.count("key", 2, at(0));
        assert_eq!(status, WindowStatus { is_allowed: false, remaining: 0, reset: 60, seconds_left: 60 });
    }
}
