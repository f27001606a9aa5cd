//! The time of the service clock in the tests' own process.
//!
//! `make test-days` starts the shared sandbox on other days (scripts/test-stores). No outcome may depend on the day, so tests
//! take their times from here or from the clock of their stack, and choose posts of the sandbox by what they need of them.

use std::path::PathBuf;
use std::sync::{LazyLock, Once};

use chrono::{DateTime, Days, NaiveTime, TimeDelta, Utc};
use serde::Deserialize;

/// Longer than most tests take.
const BEFORE_MIDNIGHT: TimeDelta = TimeDelta::seconds(75);

/// How far the clock of the shared stack is ahead of the machine's.
static OFFSET: LazyLock<TimeDelta> = LazyLock::new(|| read_offset().unwrap_or_default());

/// Returns the time of the shared stack's clock.
pub fn now() -> DateTime<Utc> {
    Utc::now() + *OFFSET
}

/// How far that clock is ahead of the machine's.
pub fn clock_offset() -> TimeDelta {
    *OFFSET
}

/// Settings of a `tidemark up` whose clock is that of the shared stack.
pub(super) fn environment() -> Vec<(&'static str, String)> {
    if OFFSET.is_zero() {
        return Vec::new();
    }
    vec![
        ("TIDEMARK_SANDBOX_START", now().to_rfc3339()),
        ("TIDEMARK_DEMO_AHEAD_SECONDS", OFFSET.num_seconds().to_string()),
    ]
}

/// Lets the day end that is about to, so that a test begins and ends on one day. Later calls do nothing.
pub(super) fn wait_past_midnight() {
    static WAITED: Once = Once::new();
    WAITED.call_once(|| {
        let now = now();
        let midnight = (now.date_naive() + Days::new(1)).and_time(NaiveTime::MIN).and_utc();
        if midnight - now < BEFORE_MIDNIGHT {
            std::thread::sleep((midnight - now).to_std().unwrap_or_default());
        }
    });
}

/// Reads it from the state of the sandbox, which is beside the description of the stack.
fn read_offset() -> Option<TimeDelta> {
    #[derive(Deserialize)]
    struct SandboxState {
        offset_ms: i64,
    }
    let stack = PathBuf::from(std::env::var_os("TIDEMARK_TEST_STACK")?);
    let state = std::fs::read(stack.with_file_name("sandbox.json")).ok()?;
    let state: SandboxState = serde_json::from_slice(&state).expect("the sandbox writes its state");
    Some(TimeDelta::milliseconds(state.offset_ms))
}
