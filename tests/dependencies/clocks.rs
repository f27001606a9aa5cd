//! Which clock tests read, so that no outcome depends on the day on which they run.

use std::collections::BTreeSet;

use crate::{files, read};

/// What a test needs to depend on the service clock or on what a sandbox serves.
const STACKS: [&str; 7] = [
    "Stack::",
    "IsolatedStores::",
    "IsolatedStack::",
    "Up::start",
    "TestApi::",
    "ProxiedApi::",
    "api_database(",
];

/// `make test-days` moves the clock of `harness::now`, not the machine's.
#[test]
fn only_tests_of_machine_time_read_the_machines_clock() {
    let readers = files("tests").into_iter().filter(|(_, text)| text.contains(concat!("Utc::", "now()")));
    let readers: BTreeSet<_> = readers.map(|(name, _)| name).collect();
    let reviewed = [
        // Expiry of keys.
        "tests/administration.rs",
        "tests/api/authentication.rs",
        // Rate limits by clock minute.
        "tests/api/rate_limit.rs",
        // A service without a sandbox.
        "tests/deploy/moving.rs",
        // Times of Postgres.
        "tests/relay/data_loss.rs",
        // A seed.
        "tests/relay/recovery.rs",
        // How far a clock of a sandbox is from the machine's.
        "tests/sandbox/control.rs",
        "tests/tracking/test_tracker.rs",
        // Wrong clocks of machines, and leases.
        "tests/tracking/clocks.rs",
        "tests/tracking/repair.rs",
    ];
    assert_eq!(readers, reviewed.map(str::to_owned).into(), "use harness::now, or say why not");
}

#[test]
fn tests_left_out_of_test_days_start_no_stack() {
    let config = read(".config/nextest.toml");
    let (_, profile) = config.split_once("[profile.all-days]").unwrap();
    let left_out: Vec<_> =
        profile.split("binary(").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(left_out.len() > 3, "{left_out:?}");
    for (name, text) in files("tests") {
        let binary = name.trim_start_matches("tests/").split(['/', '.']).next().unwrap();
        let is_left_out = left_out.contains(&binary) && !name.ends_with("clocks.rs");
        let stack = STACKS.into_iter().find(|stack| text.contains(stack));
        assert!(!is_left_out || stack.is_none(), "{name} uses {stack:?}");
    }
}
