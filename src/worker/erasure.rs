//! Takes what was deleted out of the stores for good: deleted organizations at once, and twice a day what other deletions
//! left behind and history that is older than an organization keeps. One process does so at a time, and whatever moment it
//! is killed at, the next one goes on.

use std::time::Duration;

use chrono::TimeDelta;
use clickhouse::Client;
use serde::Serialize;
use sqlx::PgPool;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::schedule::Schedule;
use super::{BRIEF, LONG, retention, within};
use crate::app::Databases;
use crate::failpoint;
use crate::store::lifecycle::outbox::SnapshotPurge;
use crate::store::lifecycle::retention as reducing;
use crate::store::lifecycle::vacuum::VacuumTracker;
use crate::store::lifecycle::{ErasureLock, organizations, purge, sum_results};
use crate::store::{Error, retry_on_conflict};

/// How often there is a look for deleted organizations, and whether it is time for everything else.
const LOOK: Duration = Duration::from_secs(2);
/// How long there is no look after one that failed: a sweep reads much before it finds that it cannot go on.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// How long what was deleted may stay in the files before they are written anew: well below the 24 hours within which it
/// has to be gone.
const EVERY: TimeDelta = TimeDelta::hours(12);
/// How long ClickHouse is waited for; what it was ordered to do it does without being waited for, too.
const PATIENCE: Duration = Duration::from_secs(900);
/// How long a delivery that holds something of a deleted organization is waited for at a time.
const IN_HAND: Duration = Duration::from_secs(10);
/// How often it is looked at.
const IN_HAND_LOOK: Duration = Duration::from_millis(50);
/// How many organizations that are gone are looked up at a time.
const PAGE: i64 = 1_000;
/// How often tables are vacuumed while sweeps fail, which are tried again within seconds.
const VACUUMED_EVERY: TimeDelta = TimeDelta::hours(1);
/// How long older history stays when it could not be taken away, until that is tried again.
const AFTER_REDUCING: TimeDelta = TimeDelta::minutes(15);

/// How far a deleted organization is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasureProgress {
    /// Neither store holds anything of it.
    Erased,
    /// The relay has something of it in hand.
    AwaitingDelivery,
    /// Another process is at it, or at something else that has to be erased.
    Locked,
}

/// What was taken out of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ErasedRows {
    /// Rows of the outbox that are written anew without what was deleted.
    pub outbox_rows: u64,
    /// Rows that are gone from ClickHouse.
    pub history_rows: u64,
}

/// Erases until told to stop. A store that is out is waited for.
pub async fn run(stores: Databases, database_url: String, stop: CancellationToken) {
    let mut worker = Worker {
        stores,
        database_url,
        sweeping: Schedule::new(EVERY),
        vacuuming: Schedule::new(VACUUMED_EVERY),
        reducing: Schedule::new(EVERY),
        vacuumed: VacuumTracker::default(),
    };
    let mut failing = false;
    let mut turn = tokio::time::interval(LOOK);
    turn.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(turn.tick()).await.is_some() {
        let looked = stop.run_until_cancelled(worker.look()).await;
        let failed = matches!(looked, Some(Err(_)));
        match looked {
            Some(Err(error)) if !std::mem::replace(&mut failing, true) => {
                tracing::warn!(%error, "what was deleted cannot be erased; trying on");
            }
            Some(Err(error)) => tracing::debug!(%error, "what was deleted still cannot be erased"),
            Some(Ok(())) if std::mem::replace(&mut failing, false) => {
                tracing::info!("what was deleted is erased again");
            }
            _ => {}
        }
        if failed {
            stop.run_until_cancelled(tokio::time::sleep(AFTER_FAILURE)).await;
        }
    }
}

struct Worker {
    stores: Databases,
    database_url: String,
    sweeping: Schedule,
    /// When tables are vacuumed after a sweep that failed; after any other they are.
    vacuuming: Schedule,
    /// When older history is taken away; what is in the way of that keeps nothing else from being erased.
    reducing: Schedule,
    vacuumed: VacuumTracker,
}

impl Worker {
    /// Does what is due. Nothing waits for what fails; the first failure is told in the end.
    async fn look(&mut self) -> Result<(), Error> {
        let pg = &self.stores.pg;
        let deleted = within(BRIEF, organizations::fetch_deleted(pg)).await?;
        let now = self.stores.clock.now().await;
        let (is_due, reduces) = (self.sweeping.is_due(now), self.reducing.is_due(now));
        if deleted.is_empty() && !is_due && !reduces {
            return Ok(());
        }
        let Some(mut turn) = within(BRIEF, ErasureLock::try_acquire(&self.database_url)).await? else {
            return Ok(());
        };
        let mut all = Ok(());
        for organization in deleted {
            within(BRIEF, turn.ensure_held()).await?;
            let erased = erase(&self.stores, &mut turn, organization).await;
            if let Err(error) = &erased {
                tracing::debug!(%organization, %error, "a deleted organization cannot be erased");
            }
            all = all.and(erased.map(drop));
        }
        if is_due {
            within(BRIEF, turn.ensure_held()).await?;
            let swept = sweep(&self.stores, &mut turn, None).await.map(drop);
            let mut vacuumed = Ok(());
            if swept.is_ok() || self.vacuuming.is_due(now) {
                vacuumed = self.vacuumed.vacuum_changed_tables(pg).await.map(drop);
                if vacuumed.is_ok() {
                    self.vacuuming.done(now);
                }
            }
            let swept = swept.and(vacuumed);
            if swept.is_ok() {
                self.sweeping.done(now);
            }
            all = all.and(swept);
        }
        if reduces {
            within(BRIEF, turn.ensure_held()).await?;
            match retain(&self.stores, &mut turn, None).await {
                Ok(_) => self.reducing.done(now),
                Err(error) => {
                    tracing::warn!(%error, "history that is older than is kept cannot be taken away; trying again in a while");
                    self.reducing.put_off(now, AFTER_REDUCING);
                }
            }
        }
        all
    }
}

/// Erases a deleted organization, unless another process erases.
pub async fn erase_organization(
    stores: &Databases,
    database_url: &str,
    organization: Uuid,
) -> Result<ErasureProgress, Error> {
    match within(BRIEF, ErasureLock::try_acquire(database_url)).await? {
        Some(mut turn) => erase(stores, &mut turn, organization).await,
        None => Ok(ErasureProgress::Locked),
    }
}

/// Takes what was deleted out of the files now, of one organization or of all; none while another process erases. Nothing
/// waits for what fails; the first failure is told in the end.
pub async fn run_once(
    stores: &Databases,
    database_url: &str,
    organization: Option<Uuid>,
) -> Result<Option<ErasedRows>, Error> {
    let Some(mut turn) = within(BRIEF, ErasureLock::try_acquire(database_url)).await? else {
        return Ok(None);
    };
    let swept = sweep(stores, &mut turn, organization).await;
    within(BRIEF, turn.ensure_held()).await?;
    let reduced = retain(stores, &mut turn, organization).await;
    let vacuumed = VacuumTracker::default().vacuum_changed_tables(&stores.pg).await;
    // What was done is done, even if the turn was lost by now.
    let _ = within(BRIEF, turn.release()).await;
    let mut erased = swept?;
    erased.history_rows += reduced?;
    vacuumed?;
    Ok(Some(erased))
}

/// Removes everything of a deleted organization, itself last.
async fn erase(
    stores: &Databases,
    turn: &mut ErasureLock,
    organization: Uuid,
) -> Result<ErasureProgress, Error> {
    let pg = &stores.pg;
    let began = Instant::now();
    while within(LONG, retry_on_conflict(|| organizations::delete_record_batch(pg, organization))).await? {
        failpoint::reached("erasure-records");
        within(BRIEF, turn.ensure_held()).await?;
    }
    // What the relay has in hand would come to ClickHouse after everything else is gone there.
    let waits = Instant::now();
    let mut from = Some(0);
    while let Some(first) = from {
        let mut next = Some(first);
        while let Some(position) = next {
            next = within(LONG, organizations::delete_outbox_batch(pg, organization, position)).await?;
            within(BRIEF, turn.ensure_held()).await?;
        }
        from = within(BRIEF, organizations::first_unapplied_position(pg, organization)).await?;
        if from.is_some() {
            if waits.elapsed() > IN_HAND {
                return Ok(ErasureProgress::AwaitingDelivery);
            }
            tokio::time::sleep(IN_HAND_LOOK).await;
        }
    }
    failpoint::reached("erasure-outbox");
    within(BRIEF, turn.ensure_held()).await?;
    let client = &stores.clickhouse.clone().with_setting("log_comment", "erasure");
    let rows = purge::purge_organization(client, organization, Instant::now() + PATIENCE).await?;
    failpoint::reached("erasure-history");
    within(BRIEF, turn.ensure_held()).await?;
    within(LONG, organizations::delete(pg, organization)).await?;
    tracing::info!(%organization, rows, seconds = began.elapsed().as_secs_f64(), "a deleted organization is erased");
    Ok(ErasureProgress::Erased)
}

/// Takes out of the files history that is older than an organization keeps, and says how many rows that were.
async fn retain(stores: &Databases, turn: &mut ErasureLock, of: Option<Uuid>) -> Result<u64, Error> {
    let (began, until) = (Instant::now(), Instant::now() + PATIENCE);
    retention::advance_cutoffs(stores, of).await?;
    let rows = retention::compact(stores, turn, of, until).await?;
    if rows > 0 {
        tracing::info!(
            rows,
            seconds = began.elapsed().as_secs_f64(),
            "history that is older than is kept is taken away"
        );
    }
    Ok(rows)
}

/// Takes out of the files what deletions left there. Nothing waits for what fails; the first failure is told in the end.
async fn sweep(stores: &Databases, turn: &mut ErasureLock, of: Option<Uuid>) -> Result<ErasedRows, Error> {
    let (pg, began) = (&stores.pg, Instant::now());
    let forgotten = forget(pg, turn, of).await;
    within(BRIEF, turn.ensure_held()).await?;
    let client = &stores.clickhouse.clone().with_setting("log_comment", "erasure");
    let until = Instant::now() + PATIENCE;
    let purged = purge(client, of, until).await;
    within(BRIEF, turn.ensure_held()).await?;
    let returned = match of {
        Some(_) => Ok(0),
        None => remove_returned(pg, turn, client, until).await,
    };
    let (outbox_rows, history_rows) = (forgotten?, sum_results(purged, returned)?);
    if outbox_rows + history_rows > 0 {
        let seconds = began.elapsed().as_secs_f64();
        tracing::info!(outbox_rows, history_rows, seconds, "what was deleted is erased from the files");
    }
    Ok(ErasedRows { outbox_rows, history_rows })
}

/// Takes what was deleted out of the outbox, and says how many rows are written anew for that.
async fn forget(pg: &PgPool, turn: &mut ErasureLock, of: Option<Uuid>) -> Result<u64, Error> {
    let (mut rows, mut after) = (0, Uuid::nil());
    while let Some(mut forgetting) = within(LONG, SnapshotPurge::begin(pg, of, after)).await? {
        while let Some(rewritten) = within(LONG, forgetting.purge_batch(pg)).await? {
            rows += rewritten;
            within(BRIEF, turn.ensure_held()).await?;
        }
        after = within(LONG, forgetting.finish(pg)).await?;
    }
    Ok(rows)
}

/// Takes what was removed out of ClickHouse's files, once nothing is written any more that this could bring to light.
async fn purge(client: &Client, of: Option<Uuid>, until: Instant) -> Result<u64, Error> {
    let quiet = tokio::time::timeout_at(until, reducing::wait_for_compactions(client)).await;
    quiet.map_err(|_| Error::Clickhouse(clickhouse::error::Error::TimedOut))??;
    purge::purge_removed_rows(client, of, until).await
}

/// Removes organizations that are gone once more: ClickHouse may have been given back files of a time before. A table that
/// fails keeps no other waiting.
async fn remove_returned(
    pg: &PgPool,
    turn: &mut ErasureLock,
    client: &Client,
    until: Instant,
) -> Result<u64, Error> {
    let mut rows = Ok(0);
    for table in purge::fetch_organization_tables(client).await? {
        rows = sum_results(rows, remove_returned_to(&table, pg, turn, client, until).await);
    }
    rows
}

async fn remove_returned_to(
    table: &str,
    pg: &PgPool,
    turn: &mut ErasureLock,
    client: &Client,
    until: Instant,
) -> Result<u64, Error> {
    let (mut rows, mut after) = (0, Uuid::nil());
    loop {
        within(BRIEF, turn.ensure_held()).await?;
        let gone = within(BRIEF, organizations::fetch_erased(pg, after, PAGE)).await?;
        let Some(last) = gone.last() else { return Ok(rows) };
        after = *last;
        rows += purge::purge_organizations(client, table, &gone, until).await?;
    }
}
