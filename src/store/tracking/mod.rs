//! The tracker's state in Postgres: scrape targets, leases, and pauses and budgets of sources.

pub mod leases;
pub mod queues;
pub mod scrapes;
pub mod source_budgets;
pub mod source_pauses;
pub mod targets;
