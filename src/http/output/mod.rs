//! What handlers return: envelopes, pages, cached responses and problems.

pub mod cached;
pub mod cursor;
pub mod envelope;
pub(super) mod in_transaction;
pub mod page;
pub mod problem;
