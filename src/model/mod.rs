//! Plain data and rules: platforms, counters, windows, latest values. No I/O, no clock.

pub mod account;
pub mod ages;
pub mod change;
pub mod content;
pub mod cost;
pub mod counters;
pub mod creator;
pub mod date_or_time;
pub mod field;
pub mod gains;
pub mod identifier;
pub mod key;
pub mod latest;
pub mod limits;
pub mod network;
pub mod observed;
pub mod organization;
pub mod period;
pub mod picture;
pub mod platform;
pub mod readable;
mod record;
pub mod secret;
pub mod snapshot;
pub mod text;
pub mod tracking;
pub mod video;
