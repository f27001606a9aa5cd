//! A timeout that stops counting while the work waits for a permit of the throttle.
//!
//! It bounds one read of an account or post, all pages together. If queueing counted, a busy process would drop
//! pages that it has already spent requests on.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

tokio::task_local! {
    static STOPWATCH: Mutex<Stopwatch>;
}

struct Stopwatch {
    /// The time counted before `running_since`.
    counted: Duration,
    /// `None` while paused.
    running_since: Option<Instant>,
}

impl Stopwatch {
    fn elapsed(&self) -> Duration {
        self.counted + self.running_since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

/// Runs work with a timeout; returns `None` when it is exceeded.
pub(super) async fn run_with_timeout<T>(timeout: Duration, work: impl Future<Output = T>) -> Option<T> {
    let bounded = async {
        tokio::pin!(work);
        loop {
            let left = timeout.saturating_sub(STOPWATCH.with(|stopwatch| stopwatch.lock().elapsed()));
            if left.is_zero() {
                return None;
            }
            // If this runs out while the stopwatch is paused, some time is still left in the next round.
            if let Ok(output) = tokio::time::timeout(left, work.as_mut()).await {
                return Some(output);
            }
        }
    };
    let stopwatch = Mutex::new(Stopwatch { counted: Duration::ZERO, running_since: Some(Instant::now()) });
    STOPWATCH.scope(stopwatch, bounded).await
}

/// Waits without counting against the timeout of [`run_with_timeout`], if there is one.
pub(super) async fn exclude_from_timeout<T>(wait: impl Future<Output = T>) -> T {
    let _ = STOPWATCH.try_with(|stopwatch| {
        let mut stopwatch = stopwatch.lock();
        (stopwatch.counted, stopwatch.running_since) = (stopwatch.elapsed(), None);
    });
    let output = wait.await;
    let _ = STOPWATCH.try_with(|stopwatch| stopwatch.lock().running_since = Some(Instant::now()));
    output
}
