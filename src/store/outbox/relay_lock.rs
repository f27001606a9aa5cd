//! The lock of the relay: one process delivers at a time.

use sqlx::PgConnection;

use crate::store::Error;
use crate::store::postgres::advisory_lock::{AdvisoryLock, LockName, is_held};

pub enum Relay {}

impl LockName for Relay {
    const NAME: &'static str = "tidemark.relay";
}

pub type RelayLock = AdvisoryLock<Relay>;

/// Whether any process holds the relay lock.
pub async fn is_relay_running(connection: &mut PgConnection) -> Result<bool, Error> {
    is_held::<Relay>(connection).await
}
