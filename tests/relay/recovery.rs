//! Helpers of kill tests: their seed, and waiting until killed processes are back.

use std::time::{Duration, Instant};

use chrono::Utc;

use crate::model::chosen_seed;

/// A new seed for each run, or that of `TIDEMARK_TEST_SEED`. Printed if the test fails.
pub(crate) fn seed() -> u64 {
    let seed = chosen_seed().unwrap_or_else(|| Utc::now().timestamp_micros().unsigned_abs());
    println!("TIDEMARK_TEST_SEED={seed} repeats this test");
    seed
}

/// Processes that die often are restarted with pauses.
pub(crate) const RECOVERY_TIMEOUT: Duration = Duration::from_secs(240);

/// Polls until there is a value, for as long as recovery may take.
pub(crate) async fn wait_recovered<T>(state: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + RECOVERY_TIMEOUT;
    loop {
        if let Some(value) = poll().await {
            return value;
        }
        assert!(Instant::now() < deadline, "timed out after {RECOVERY_TIMEOUT:?} waiting until {state}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
