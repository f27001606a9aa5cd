//! The tracker's state in Postgres: what is due, which process leases it, and what the sources allow.

pub mod leases;
pub mod queues;
pub mod scrapes;
pub mod source_budgets;
pub mod source_pauses;
pub mod targets;
