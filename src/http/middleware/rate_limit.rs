//! How often: fixed windows of one clock minute, counted exactly, within this process or in Postgres with all
//! others, and the headers that tell a caller where it stands.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use salvo::http::HeaderName;
use salvo::{Depot, FlowCtrl, Handler, Request, Response, Writer, async_trait};
use uuid::Uuid;

use crate::app::{App, RateLimitStore};
use crate::http::middleware::authenticate::Caller;
use crate::http::middleware::record_metrics;
use crate::http::middleware::request_timeout::{self, TimeLeft};
use crate::http::output::problem::Problem;
use crate::store::records::rate_limits::{self, RateLimitWindow};

const SECONDS: i64 = 60;

/// Counts by key in the clock minute that is running.
pub struct Windows<K>(Mutex<Counts<K>>);

struct Counts<K> {
    /// The minute that is counted, since the epoch.
    minute: i64,
    taken: HashMap<K, u32>,
}

/// What a window has left after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub allowed: bool,
    pub remaining: u32,
    /// The Unix second at which the window ends.
    pub reset: i64,
    pub seconds_left: u64,
}

impl Taken {
    /// What the shared count of a clock minute means for a limit.
    fn from_counted(counted: RateLimitWindow, limit: u32) -> Self {
        let taken = counted.used.map(|taken| u32::try_from(taken).unwrap_or(limit));
        let reset = (counted.unix_seconds.div_euclid(SECONDS) + 1) * SECONDS;
        Taken {
            allowed: taken.is_some(),
            remaining: taken.map_or(0, |taken| limit.saturating_sub(taken)),
            reset,
            seconds_left: u64::try_from(reset - counted.unix_seconds).unwrap_or_default(),
        }
    }
}

impl<K> Default for Windows<K> {
    fn default() -> Self {
        Windows(Mutex::new(Counts { minute: i64::MIN, taken: HashMap::new() }))
    }
}

impl<K: Eq + Hash> Windows<K> {
    /// Takes one of `limit` from the key's window.
    pub fn take(&self, key: K, limit: u32, now: DateTime<Utc>) -> Taken {
        let second = now.timestamp();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Only forwards: a clock that steps back does not open a window a second time.
        if second.div_euclid(SECONDS) > counts.minute {
            counts.minute = second.div_euclid(SECONDS);
            counts.taken.clear();
        }
        let reset = (counts.minute + 1) * SECONDS;
        let taken = counts.taken.entry(key).or_default();
        let allowed = *taken < limit;
        *taken += u32::from(allowed);
        let seconds_left = u64::try_from(reset - second).unwrap_or_default();
        Taken { allowed, remaining: limit.saturating_sub(*taken), reset, seconds_left }
    }
}

/// Lets a key make as many requests a minute as it may.
#[derive(Default)]
pub struct LimitRate(Windows<Uuid>);

impl LimitRate {
    /// Takes one request from the caller's window, in whichever store counts.
    async fn take(&self, app: &App, caller: &Caller, left: TimeLeft) -> Result<Taken, Problem> {
        match app.settings.rate_limit_store {
            RateLimitStore::Memory => Ok(self.0.take(caller.key, caller.rate_limit, Utc::now())),
            RateLimitStore::Postgres => {
                let work = rate_limits::count_request(&app.pg, caller.key, caller.rate_limit);
                match request_timeout::bounded(left, work).await? {
                    // It cannot even be counted there: what only reads goes on, counted by this process alone.
                    Err(error) if error.rejects_writes() => {
                        Ok(self.0.take(caller.key, caller.rate_limit, Utc::now()))
                    }
                    counted => Ok(Taken::from_counted(counted?, caller.rate_limit)),
                }
            }
        }
    }
}

#[async_trait]
impl Handler for LimitRate {
    async fn handle(&self, req: &mut Request, depot: &mut Depot, res: &mut Response, ctrl: &mut FlowCtrl) {
        let started = Instant::now();
        let left = depot.get_typed::<TimeLeft>().copied().unwrap_or(TimeLeft::WHOLE);
        let outcome = match (depot.get_typed::<App>(), depot.get_typed::<Caller>()) {
            (Ok(app), Ok(caller)) => {
                self.take(app, caller, left).await.map(|taken| (taken, caller.rate_limit))
            }
            _ => Err(Problem::internal("a route without a key is rate limited")),
        };
        depot.insert_typed(left.less(started.elapsed()));
        let outcome = outcome.and_then(|(taken, limit)| {
            let headers = res.headers_mut();
            headers.insert(HeaderName::from_static("x-ratelimit-limit"), limit.into());
            headers.insert(HeaderName::from_static("x-ratelimit-remaining"), taken.remaining.into());
            headers.insert(HeaderName::from_static("x-ratelimit-reset"), taken.reset.into());
            if taken.allowed {
                return Ok(());
            }
            record_metrics::refused("key");
            let detail = format!("more than {limit} requests in this minute: wait until the window ends");
            Err(Problem::rate_limited(detail, taken.seconds_left))
        });
        if let Err(problem) = outcome {
            problem.write(req, depot, res).await;
            ctrl.skip_rest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    #[test]
    fn exactly_the_limit_passes_in_a_window_whatever_the_concurrency() {
        let windows = Windows::default();
        let passed: usize = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..50).filter(|_| windows.take("key", 77, at(120)).allowed).count()))
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(passed, 77);
        assert_eq!(windows.take("other", 77, at(179)).remaining, 76);
    }

    #[test]
    fn windows_are_clock_minutes_and_never_reopen() {
        let windows = Windows::default();
        let taken = windows.take("key", 1, at(179));
        assert_eq!((taken.allowed, taken.remaining, taken.reset, taken.seconds_left), (true, 0, 180, 1));
        assert!(!windows.take("key", 1, at(179)).allowed);
        assert!(windows.take("key", 1, at(180)).allowed);
        assert!(!windows.take("key", 1, at(170)).allowed);
    }

    #[test]
    fn a_limit_lowered_in_the_window_refuses_and_does_not_underflow() {
        let windows = Windows::default();
        for _ in 0..5 {
            windows.take("key", 10, at(0));
        }
        assert_eq!(
            windows.take("key", 2, at(0)),
            Taken { allowed: false, remaining: 0, reset: 60, seconds_left: 60 }
        );
    }
}
