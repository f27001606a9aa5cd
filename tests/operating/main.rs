//! The service as its operator meets it: how processes end, how they say whether they can work, migrations beside a running
//! version, backups that are restored, and what `tidemark doctor` says.

#[path = "../harness/mod.rs"]
mod harness;
#[path = "../relay/setup.rs"]
#[expect(dead_code, reason = "what only the tests of the relay need")]
mod setup;

mod doctor;
mod given_up;
mod migrating;
mod readiness;
mod restored;
mod restoring;
mod stopping;
