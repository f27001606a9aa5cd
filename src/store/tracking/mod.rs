//! The tracker's state in Postgres: scrape targets, leases, pauses and budgets of sources, and wrong clocks.

pub mod leases;
pub mod queues;
pub mod scrapes;
pub mod skewed_clocks;
pub mod source_budgets;
pub mod source_pauses;
pub mod targets;
pub mod wakeups;
