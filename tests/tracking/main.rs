//! Tracking from the outside: an account that is added is read from the platform by the real clients, its numbers
//! become history, and days that pass become gains. The sandbox says what it served.

#[path = "../harness/mod.rs"]
mod harness;

mod days;
mod depth;
mod identity;
mod own;
mod scheduler;
mod sharing;
