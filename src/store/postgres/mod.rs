//! Postgres access: pools, transactions, advisory locks, COPY and keyset pagination.

pub mod advisory_lock;
pub(in crate::store) mod copy;
pub mod diagnosis;
pub mod keyset;
pub mod pool;
pub(in crate::store) mod transaction;

pub(in crate::store) use transaction::Transaction;
