//! Operation of the service: shutdown, rest, streams of events, readiness, cancellation, supported databases, migrations
//! under load, the stores of the first release, backup and restore, and `tidemark doctor`.

mod backups;
mod cancellation;
mod doctor;
mod event_streams;
mod first_release;
mod imports;
mod migrations;
mod pooler;
mod readiness;
mod releases;
mod rest;
mod restore;
mod shutdown;
