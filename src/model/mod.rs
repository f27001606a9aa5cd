//! Plain data and rules that know nobody: no database, no HTTP, no clock of their own.

pub mod account;
pub mod change;
pub mod cost;
pub mod counters;
pub mod creator;
mod example;
pub mod gains;
pub mod identifier;
mod identifier_pattern;
pub mod key;
pub mod latest;
pub mod limits;
pub mod network;
pub mod organization;
pub mod period;
pub mod platform;
pub mod secret;
pub mod snapshot;
pub mod text;
pub mod tracking;
pub mod video;
