//! Transactions that may be given up wherever they wait, as those of requests are whose time is over or whose client
//! left: the connection goes back to the pool outside of any transaction and with every answer read, or is closed when
//! that takes too long, as it does behind somebody else's lock or where Postgres' machine is gone.
//!
//! Those of sqlx do neither everywhere: one that is given up while it begins stays open on the connection, and the rest
//! of the answer to a COPY is taken for that of the statement after it, whoever asks that.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};
use tokio::sync::{Mutex, OwnedMutexGuard};

/// How long a connection may be busy with what was given up on it before it is closed and its place is another's.
pub const RECLAIM_TIMEOUT: Duration = Duration::from_millis(250);

/// What is sent at a time.
const CHUNK: usize = 1 << 20;

/// A transaction on a connection of the pool; dropped without a commit, it is rolled back.
pub struct Transaction {
    /// Nobody else wants the lock before the transaction is dropped. Then who rolls back takes it.
    connection: OwnedMutexGuard<PoolConnection<Postgres>>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Copying,
    Committed,
}

impl Transaction {
    pub async fn begin(pg: &PgPool) -> Result<Self, sqlx::Error> {
        let connection = Arc::new(Mutex::new(pg.acquire().await?)).lock_owned().await;
        // From here on there is something to roll back, should nobody wait for it to begin.
        let mut transaction = Transaction { connection, state: State::Open };
        sqlx::raw_sql("begin").execute(&mut *transaction).await?;
        Ok(transaction)
    }

    pub async fn commit(mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("commit").execute(&mut *self).await?;
        self.state = State::Committed;
        Ok(())
    }

    /// Sends rows as `copy … from stdin` wants them, and says how many there were.
    pub(in crate::store) async fn copy(&mut self, statement: &str, rows: &[u8]) -> Result<u64, sqlx::Error> {
        self.state = State::Copying;
        let copied = async {
            let mut copy = self.connection.copy_in_raw(statement).await?;
            for chunk in rows.chunks(CHUNK) {
                copy.send(chunk).await?;
            }
            copy.finish().await
        };
        let copied = copied.await;
        // What Postgres refuses is answered to the end as well.
        if matches!(copied, Ok(_) | Err(sqlx::Error::Database(_))) {
            self.state = State::Open;
        }
        copied
    }
}

impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.state == State::Committed {
            return;
        }
        let (connection, state) = (Arc::clone(OwnedMutexGuard::mutex(&self.connection)), self.state);
        tokio::spawn(async move {
            let mut connection = connection.lock().await;
            // Reads what is still to come for a statement that was given up; after a copy that is all it does.
            let rollback = sqlx::raw_sql("rollback").execute(&mut **connection);
            let rolled_back = tokio::time::timeout(RECLAIM_TIMEOUT, rollback).await;
            if state == State::Copying || !matches!(rolled_back, Ok(Ok(_))) {
                connection.close_on_drop();
            }
        });
    }
}
