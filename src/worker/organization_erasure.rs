//! Erases deleted organizations within seconds.
//!
//! One process at a time does so, under a lock of its own: it waits neither for purges nor for retention, which erase
//! under the erasure lock. Should retention write history of an organization while that is erased, the next purge removes it.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::passes::PassTask;
use super::schedule::{ERASURE_POLL_INTERVAL, ERASURE_RETRY_DELAY};
use super::timeout;
use crate::app::Databases;
use crate::failpoint;
use crate::store::lifecycle::purge::PURGE_TIMEOUT;
use crate::store::lifecycle::{OrganizationErasureLock, organizations, purge};
use crate::store::{Error, retry_on_conflict};

/// How long to wait for a delivery that contains events of a deleted organization.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);
const DELIVERY_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How far the erasure of an organization has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureProgress {
    /// Neither store has data of it.
    Erased,
    /// The relay is delivering events of it.
    AwaitingDelivery,
    /// Another process erases organizations.
    Locked,
}

/// Erases all deleted organizations.
pub(super) struct OrganizationErasure {
    pub(super) databases: Databases,
}

impl PassTask for OrganizationErasure {
    const FAILURE: &'static str = "cannot erase deleted organizations";
    const INTERVAL: Duration = ERASURE_POLL_INTERVAL;
    const RETRY_DELAY: Duration = ERASURE_RETRY_DELAY;

    /// A failed organization does not stop the others; the first error is returned.
    async fn run_pass(&mut self) -> Result<(), Error> {
        let deleted = timeout::short(organizations::fetch_deleted(&self.databases.pg)).await?;
        if deleted.is_empty() {
            return Ok(());
        }
        let Some(mut erasure) = Erasure::try_start(&self.databases).await? else { return Ok(()) };
        let mut result = Ok(());
        for organization in deleted {
            timeout::short(erasure.lock.ensure_held()).await?;
            let erased = erasure.erase(organization).await;
            if let Err(error) = &erased {
                tracing::debug!(%organization, %error, "cannot erase organization");
            }
            result = result.and(erased.map(drop));
        }
        result
    }
}

/// Erases a deleted organization, unless another process erases organizations.
pub async fn erase_organization(databases: &Databases, organization: Uuid) -> Result<ErasureProgress, Error> {
    match Erasure::try_start(databases).await? {
        Some(mut erasure) => erasure.erase(organization).await,
        None => Ok(ErasureProgress::Locked),
    }
}

/// The steps of an erasure, in the process that holds the lock.
struct Erasure<'a> {
    databases: &'a Databases,
    lock: OrganizationErasureLock,
}

impl<'a> Erasure<'a> {
    async fn try_start(databases: &'a Databases) -> Result<Option<Self>, Error> {
        let lock = timeout::short(OrganizationErasureLock::try_acquire(&databases.pg)).await?;
        Ok(lock.map(|lock| Erasure { databases, lock }))
    }

    /// Deletes an organization's records, outbox rows and history, and the organization itself last.
    async fn erase(&mut self, organization: Uuid) -> Result<ErasureProgress, Error> {
        let pg = &self.databases.pg;
        let started = Instant::now();
        let delete_batch = || organizations::delete_record_batch(pg, organization);
        while timeout::long(retry_on_conflict(delete_batch)).await? {
            failpoint::reached("erasure-records");
            timeout::short(self.lock.ensure_held()).await?;
        }
        if !self.delete_outbox(organization).await? {
            return Ok(ErasureProgress::AwaitingDelivery);
        }
        failpoint::reached("erasure-outbox");
        timeout::short(self.lock.ensure_held()).await?;
        let client = self.databases.clickhouse.clone().with_setting("log_comment", "erasure");
        let deadline = Instant::now() + PURGE_TIMEOUT;
        let rows = purge::purge_organization(&client, organization, deadline).await?;
        failpoint::reached("erasure-history");
        timeout::short(self.lock.ensure_held()).await?;
        timeout::long(retry_on_conflict(|| organizations::delete(pg, organization))).await?;
        tracing::info!(%organization, rows, seconds = started.elapsed().as_secs_f64(), "organization erased");
        Ok(ErasureProgress::Erased)
    }

    /// Deletes an organization's outbox rows, and waits for the running delivery, which could still write its history.
    /// Returns false after a timeout.
    async fn delete_outbox(&mut self, organization: Uuid) -> Result<bool, Error> {
        let pg = &self.databases.pg;
        let started = Instant::now();
        let mut unapplied = Some(0);
        while let Some(first) = unapplied {
            let mut next = Some(first);
            while let Some(position) = next {
                let delete_batch = || organizations::delete_outbox_batch(pg, organization, position);
                next = timeout::long(retry_on_conflict(delete_batch)).await?;
                timeout::short(self.lock.ensure_held()).await?;
            }
            unapplied = timeout::short(organizations::first_unapplied_position(pg, organization)).await?;
            if unapplied.is_some() {
                if started.elapsed() > DELIVERY_TIMEOUT {
                    return Ok(false);
                }
                tokio::time::sleep(DELIVERY_POLL_INTERVAL).await;
            }
        }
        Ok(true)
    }
}
