//! Operation of the service: shutdown, readiness, cancellation, supported databases, migrations under load, backup and
//! restore, and `tidemark doctor`.

#[path = "../harness/mod.rs"]
mod harness;
#[path = "../relay/setup.rs"]
#[expect(dead_code, reason = "other helpers are used by the relay tests only")]
mod setup;

mod backups;
mod cancellation;
mod doctor;
mod migrations;
mod pooler;
mod readiness;
mod releases;
mod restore;
mod shutdown;
