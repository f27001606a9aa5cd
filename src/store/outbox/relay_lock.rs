//! The relay's place, which one process has at a time.

use sqlx::PgConnection;

use crate::store::Error;
use crate::store::postgres::advisory_lock::{AdvisoryLock, Work, is_taken};

/// Bringing the outbox to ClickHouse.
pub enum Relaying {}

impl Work for Relaying {
    const LOCK: &'static str = "tidemark.relay";
}

/// The place of the process that delivers.
pub type Leadership = AdvisoryLock<Relaying>;

/// Whether some process has the relay's place.
pub async fn is_led(connection: &mut PgConnection) -> Result<bool, Error> {
    is_taken::<Relaying>(connection).await
}
