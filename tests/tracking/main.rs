//! Tracking: scheduling, leases, scrapes by the real platform clients, and the history they write.

#[path = "../platforms/canned.rs"]
#[expect(dead_code, reason = "some responses are for the tests of the platforms")]
mod canned;

#[path = "../platforms/example.rs"]
mod example;

mod budgets;
mod client;
mod clocks;
mod depth;
mod events;
mod fairness;
mod faults;
mod health;
mod history;
mod identity;
mod pictures;
mod recording_source;
mod refreshes;
mod repair;
mod scheduler;
mod sharing;
mod sources;
mod test_tracker;
