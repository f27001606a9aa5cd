//! Delivers events to webhooks: makes messages of new events, and sends those that are due.
//!
//! Any number of processes may do so. One at a time has the lease of a webhook and sends its messages one after the other.
//! Webhooks that fail have slots of their own, so that they delay no other.

mod delivery;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::delivery::Deliverer;
use super::failure_log::FailureLog;
use super::timeout;
use crate::app::Databases;
use crate::model::secret_key::SecretKey;
use crate::platforms::webhooks::WebhookClient;
use crate::store::Error;
use crate::store::postgres::notifications::{self, Topic};
use crate::store::records::webhooks::{self, attempts, queue};

/// The shortest pause after nothing was found.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Webhooks that a process delivers at a time. Receivers that have stopped to answer hold a slot of those that work until their
/// first timeout: hundreds may do so at once.
const WORKING_SLOTS: usize = 256;
const FAILING_SLOTS: usize = 64;
/// Connections to Postgres that deliveries use at a time: scrapes need the others.
const MAX_CONNECTIONS: usize = 4;
/// Webhooks whose new events are read in a pass.
const ENQUEUED_WEBHOOKS: i64 = 500;

/// Delivers until it is stopped; then requests that were sent have `grace` to end.
pub async fn run(databases: Databases, client: WebhookClient, grace: Duration, stop: CancellationToken) {
    let Some(key) = stop.run_until_cancelled(fetch_secret_key(&databases)).await else { return };
    let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let deliverer = Deliverer { databases: databases.clone(), client, key: Arc::new(key), connections };
    tokio::join!(
        async { _ = stop.run_until_cancelled(enqueue_events(&databases)).await },
        deliver_due(&deliverer, grace, &stop),
    );
}

/// Reads the key of the secrets; waits for Postgres.
async fn fetch_secret_key(databases: &Databases) -> SecretKey {
    let mut log = FailureLog::new("cannot read the key of secrets");
    loop {
        if let Some(key) = log.record(timeout::short(webhooks::fetch_secret_key(&databases.pg)).await) {
            return key;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

async fn enqueue_events(databases: &Databases) {
    let mut log = FailureLog::new("cannot read events for webhooks");
    let mut writes = notifications::subscribe(&[Topic::Writes]);
    loop {
        let enqueued = log.record(enqueue_batch(databases).await).unwrap_or(Enqueued::All);
        if enqueued != Enqueued::Batch {
            writes.wait(POLL_INTERVAL, enqueued == Enqueued::All).await;
        }
    }
}

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Enqueued {
    /// No webhook was behind.
    Nothing,
    /// What there was, except for webhooks that were locked.
    All,
    /// There are more events.
    Batch,
}

/// Makes messages of the next events of each webhook.
async fn enqueue_batch(databases: &Databases) -> Result<Enqueued, Error> {
    let behind = timeout::short(queue::fetch_behind(&databases.pg, ENQUEUED_WEBHOOKS)).await?;
    let enqueue = |webhook| timeout::short(queue::enqueue(&databases.pg, webhook));
    let enqueued: Vec<_> =
        stream::iter(behind).map(enqueue).buffer_unordered(MAX_CONNECTIONS).collect().await;
    // A failed webhook does not stop the others; the first error is returned.
    let mut result = Ok(Enqueued::Nothing);
    for has_more in enqueued {
        let one = has_more.map(|more| if more { Enqueued::Batch } else { Enqueued::All });
        result = result.and_then(|others| one.map(|one| others.max(one)));
    }
    result
}

/// The webhooks of a kind that this process delivers.
struct Slots {
    tasks: JoinSet<()>,
    is_failing: bool,
    count: usize,
}

async fn deliver_due(deliverer: &Deliverer, grace: Duration, stop: &CancellationToken) {
    let mut log = FailureLog::new("cannot lease webhooks");
    let [mut working, mut failing] = [(false, WORKING_SLOTS), (true, FAILING_SLOTS)]
        .map(|(is_failing, count)| Slots { tasks: JoinSet::new(), is_failing, count });
    let (pg, clock) = (&deliverer.databases.pg, &deliverer.databases.clock);
    let mut messages = notifications::subscribe(&[Topic::Writes, Topic::Messages]);
    while !stop.is_cancelled() {
        let now = clock.now().await;
        let filled = async {
            let filled = working.fill(deliverer, stop, now).await;
            failing.fill(deliverer, stop, now).await.and(filled)?;
            timeout::short(attempts::fetch_next_due(pg, now)).await
        };
        let next_due = log.record(filled.await).unwrap_or(Some(now));
        tokio::select! {
            () = stop.cancelled() => {}
            Some(_) = working.tasks.join_next() => {}
            Some(_) = failing.tasks.join_next() => {}
            () = messages.wait_or(POLL_INTERVAL, false, clock.wait_until(next_due)) => {}
        }
    }
    let ended = async {
        while working.tasks.join_next().await.is_some() || failing.tasks.join_next().await.is_some() {}
    };
    if tokio::time::timeout(grace, ended).await.is_err() {
        tracing::warn!("deliveries to webhooks were still running at shutdown");
    }
}

impl Slots {
    /// Leases as many webhooks as there are free slots, and delivers them.
    async fn fill(
        &mut self,
        deliverer: &Deliverer,
        stop: &CancellationToken,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        while self.tasks.try_join_next().is_some() {}
        let free = self.count - self.tasks.len();
        if free == 0 {
            return Ok(());
        }
        let pg = &deliverer.databases.pg;
        for leased in timeout::short(attempts::lease(pg, now, self.is_failing, free as i64)).await? {
            self.tasks.spawn(deliverer.clone().deliver(leased, stop.clone()));
        }
        Ok(())
    }
}
