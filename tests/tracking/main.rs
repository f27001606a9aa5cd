//! Tracking from the outside: an account that is added is read from the platform by the real clients, its numbers
//! become history, and days that pass become gains. The sandbox says what it served.

#[path = "../harness/mod.rs"]
mod harness;

#[path = "../platforms/canned.rs"]
#[expect(dead_code, reason = "these tests need a part of what the server can say")]
mod canned;

#[path = "../platforms/example.rs"]
mod example;

mod days;
mod depth;
mod fairness;
mod faults;
mod identity;
mod own;
mod scheduler;
mod sharing;
mod sources;
mod spending;
mod watched;
