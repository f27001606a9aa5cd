//! Cancellation-safe Postgres transactions, for requests that time out or whose client disconnects, and the retries of
//! conflicting ones.
//!
//! A dropped transaction returns its connection to the pool rolled back and with all responses read, or closes it if that
//! takes too long. sqlx's own transactions do not: one that is dropped while it begins stays open, and the rest of the
//! response to a COPY is read as the response to the next statement.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgPool, Postgres};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::notifications::{self, Topic};
use crate::store::Error;

/// How long a cancelled statement may keep its connection busy before the connection is closed.
pub(super) const RECLAIM_TIMEOUT: Duration = Duration::from_millis(250);

const COPY_CHUNK_BYTES: usize = 1 << 20;

/// Delays before the retries of a request, whose client waits.
const REQUEST_RETRY_DELAYS_MS: &[u64] = &[10, 30, 100, 300];
/// Delays before the retries of work in the background. A batch of an import holds its locks for seconds.
const RETRY_DELAYS_MS: &[u64] = &[10, 30, 100, 300, 1_000, 2_000, 4_000, 8_000];

/// A transaction on a pooled connection. Dropping it without a commit rolls it back.
pub struct Transaction {
    /// Uncontended: the task that rolls back locks it after the drop.
    connection: OwnedMutexGuard<PoolConnection<Postgres>>,
    state: TransactionState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TransactionState {
    Open,
    Copying,
    Committed,
}

impl Transaction {
    pub async fn begin(pg: &PgPool) -> Result<Self, sqlx::Error> {
        let connection = Arc::new(Mutex::new(pg.acquire().await?)).lock_owned().await;
        // Created before `begin` runs, so that a drop during `begin` rolls back.
        let mut transaction = Transaction { connection, state: TransactionState::Open };
        sqlx::raw_sql("begin").execute(&mut *transaction).await?;
        Ok(transaction)
    }

    pub async fn commit(mut self) -> Result<(), sqlx::Error> {
        sqlx::raw_sql("commit").execute(&mut *self).await?;
        self.state = TransactionState::Committed;
        Ok(())
    }

    /// Commits, and then notifies loops that wait for such changes. The caller does not wait for that.
    pub async fn commit_and_notify(self, topic: Topic) -> Result<(), sqlx::Error> {
        let connection = Arc::clone(OwnedMutexGuard::mutex(&self.connection));
        self.commit().await?;
        tokio::spawn(async move {
            let mut connection = connection.lock().await;
            let sent = notifications::send(&mut **connection, topic);
            match tokio::time::timeout(RECLAIM_TIMEOUT, sent).await {
                Ok(Ok(()) | Err(sqlx::Error::Database(_))) => {}
                _ => connection.close_on_drop(),
            }
        });
        Ok(())
    }

    /// Sends rows in the format of `copy … from stdin`.
    pub(in crate::store) async fn copy(&mut self, statement: &str, rows: &[u8]) -> Result<(), sqlx::Error> {
        self.state = TransactionState::Copying;
        let copied = async {
            let mut copy = self.connection.copy_in_raw(statement).await?;
            for chunk in rows.chunks(COPY_CHUNK_BYTES) {
                copy.send(chunk).await?;
            }
            copy.finish().await.map(drop)
        };
        let copied = copied.await;
        // After an error of the database its response is read completely, too.
        if matches!(copied, Ok(()) | Err(sqlx::Error::Database(_))) {
            self.state = TransactionState::Open;
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
        if self.state == TransactionState::Committed {
            return;
        }
        let (connection, state) = (Arc::clone(OwnedMutexGuard::mutex(&self.connection)), self.state);
        tokio::spawn(async move {
            let mut connection = connection.lock().await;
            // Also reads the rest of the response to a cancelled statement. After a COPY the connection is closed anyway.
            let rollback = sqlx::raw_sql("rollback").execute(&mut **connection);
            let rolled_back = tokio::time::timeout(RECLAIM_TIMEOUT, rollback).await;
            if state == TransactionState::Copying || !matches!(rolled_back, Ok(Ok(_))) {
                connection.close_on_drop();
            }
        });
    }
}

/// An error type that can represent a conflict with another transaction.
pub trait Retryable {
    /// Whether the unit of work conflicted and may succeed when it is retried.
    fn is_retryable(&self) -> bool;
}

impl Retryable for Error {
    fn is_retryable(&self) -> bool {
        self.is_write_conflict()
    }
}

/// Runs a unit of work in the background, and retries it from its start while it conflicts with others. Returns the last
/// error after a quarter of a minute.
pub async fn retry_on_conflict<T, E: Retryable, F>(attempt: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    retry(attempt, RETRY_DELAYS_MS).await
}

/// Like [`retry_on_conflict`], for half a second.
pub async fn retry_request_on_conflict<T, E: Retryable, F>(attempt: impl FnMut() -> F) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    retry(attempt, REQUEST_RETRY_DELAYS_MS).await
}

async fn retry<T, E: Retryable, F>(mut attempt: impl FnMut() -> F, delays_ms: &[u64]) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    for delay in delays_ms {
        match attempt().await {
            // Two that conflict with each other do not retry at the same time.
            Err(error) if error.is_retryable() => {
                tokio::time::sleep(Duration::from_millis(*delay).mul_f64(1.0 + fastrand::f64() / 2.0)).await;
            }
            result => return result,
        }
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Retries twice, and returns the result and the number of attempts.
    async fn retry_twice(results: [fn() -> Result<(), Error>; 3]) -> (Result<(), Error>, usize) {
        let mut attempts = 0;
        let attempt = || {
            attempts += 1;
            std::future::ready(results[attempts - 1]())
        };
        (retry(attempt, &[0, 0]).await, attempts)
    }

    #[tokio::test]
    async fn only_conflicts_are_retried() {
        let (conflict, failure) = (|| Err(Error::WriteConflict), || Err(Error::NotFound("account")));
        assert!(matches!(retry_twice([conflict, || Ok(()), failure]).await, (Ok(()), 2)));
        assert!(matches!(retry_twice([conflict, failure, || Ok(())]).await, (Err(Error::NotFound(_)), 2)));
        assert!(matches!(retry_twice([conflict; 3]).await, (Err(Error::WriteConflict), 3)));
    }
}
