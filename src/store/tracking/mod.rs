//! The tracker's state in Postgres: scrape targets, their status and numbers, refreshes, ended attempts, leases, wrong
//! clocks, and pauses, budgets and pages of sources.

pub mod ended_attempts;
pub mod leases;
pub mod queues;
pub mod refreshes;
pub mod scrapes;
pub mod skewed_clocks;
pub mod source_budgets;
pub mod source_pages;
pub mod source_pauses;
pub mod target_counts;
pub mod target_status;
pub mod targets;
pub mod wakeups;
