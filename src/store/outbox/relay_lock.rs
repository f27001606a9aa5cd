//! The relay's place, which one process has at a time.

use sqlx::PgConnection;

use crate::store::Error;
use crate::store::postgres::advisory_lock::{AdvisoryLock, LockName, is_held};

/// Bringing the outbox to ClickHouse.
pub enum Relay {}

impl LockName for Relay {
    const NAME: &'static str = "tidemark.relay";
}

/// The place of the process that delivers.
pub type RelayLock = AdvisoryLock<Relay>;

/// Whether some process has the relay's place.
pub async fn is_relay_running(connection: &mut PgConnection) -> Result<bool, Error> {
    is_held::<Relay>(connection).await
}
