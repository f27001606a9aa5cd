//! Keeps the history of organizations for as long as they want it and no longer; when that is due is `erasure`'s matter.

use std::time::Duration;

use chrono::NaiveDate;
use clickhouse::Client;
use tokio::time::Instant;
use uuid::Uuid;

use super::{BRIEF, LONG, within};
use crate::app::Databases;
use crate::failpoint;
use crate::store::clickhouse::history_writer;
use crate::store::lifecycle::ErasureLock;
use crate::store::lifecycle::retention::{self, Cutoff};
use crate::store::outbox::visibility;
use crate::store::{Error, Write, outbox, retry_on_conflict};

/// Subjects that are reduced at a time, unless that turns out to be too much for one statement.
const REDUCED: usize = 500;
/// Subjects that are computed again at a time: few enough that others' changes do not wait behind them.
const COMPUTED: usize = 50;
/// Organizations whose older history is forgotten by one order, for which ClickHouse writes parts anew.
const ORGANIZATIONS: usize = 300;
/// How many videos they may have together, unless it is one: ClickHouse remembers each while it carries the order out.
const VIDEOS: u64 = 1_000_000;
/// How long changes are waited for that are not yet delivered, and how long those of one organization at least.
const DELIVERED: Duration = Duration::from_secs(60);
const BRIEFLY: Duration = Duration::from_secs(1);

/// Lets the histories of organizations, or of one, begin where they want it by now.
pub async fn advance_cutoffs(stores: &Databases, of: Option<Uuid>) -> Result<(), Error> {
    let today = stores.clock.now().await.date_naive();
    let in_sandbox = stores.clock.is_remote();
    within(LONG, retry_on_conflict(|| retention::advance_cutoffs(&stores.pg, of, today, in_sandbox))).await
}

/// Reduces what came before the histories of organizations, or of one, and takes the rest out of ClickHouse's files by a
/// time; says how many rows that were. What cannot be reduced keeps no other waiting; the first failure is told.
pub async fn compact(
    stores: &Databases,
    turn: &mut ErasureLock,
    of: Option<Uuid>,
    until: Instant,
) -> Result<u64, Error> {
    let client = &retention::client(&stores.clickhouse);
    let cuts = within(BRIEF, retention::fetch_cutoffs(&stores.pg, of)).await?;
    let looked = Instant::now();
    let mut due = Orders::default();
    let (mut rows, mut all) = (0, Ok(()));
    for cut in cuts {
        let settled = looked + cut.remaining_grace();
        tokio::time::sleep_until(settled).await;
        match reduce_one(stores, turn, client, &cut, settled + DELIVERED).await {
            Ok(Some(videos)) => due.add(videos, cut),
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(organization = %cut.organization, %error, "history cannot be reduced");
                all = all.and(Err(error));
            }
        }
    }
    let mut patience = LONG;
    for (since, order) in due.0 {
        within(BRIEF, turn.ensure_held()).await?;
        let organizations: Vec<_> = order.cuts.iter().map(|cut| cut.organization).collect();
        match retention::purge_redundant_rows(client, &organizations, since, until).await {
            Ok(forgotten) => rows += forgotten,
            Err(error) => {
                all = all.and(Err(error));
                continue;
            }
        }
        failpoint::reached("retention-forgotten");
        for cut in order.cuts {
            within(BRIEF, turn.ensure_held()).await?;
            if let Err(error) = recompute(stores, turn, client, &cut, &mut patience).await {
                tracing::debug!(organization = %cut.organization, %error, "gains cannot be computed again");
                all = all.and(Err(error));
            }
        }
    }
    all.map(|()| rows)
}

/// What ClickHouse is ordered to forget, each with the day before which that is.
#[derive(Default)]
struct Orders(Vec<(NaiveDate, Order)>);

#[derive(Default)]
struct Order {
    videos: u64,
    cuts: Vec<Cutoff>,
}

impl Orders {
    /// Adds an organization with so many videos to an order that has room for it.
    fn add(&mut self, videos: u64, cut: Cutoff) {
        let has_room = |(since, order): &&mut (NaiveDate, Order)| {
            *since == cut.since && order.cuts.len() < ORGANIZATIONS && order.videos + videos <= VIDEOS
        };
        match self.0.iter_mut().find(has_room) {
            Some((_, order)) => {
                order.videos += videos;
                order.cuts.push(cut);
            }
            None => self.0.push((cut.since, Order { videos, cuts: vec![cut] })),
        }
    }
}

/// Reduces what came before an organization's history, and says of how many videos; none when nothing is left to do.
async fn reduce_one(
    stores: &Databases,
    turn: &mut ErasureLock,
    client: &Client,
    cut: &Cutoff,
    deadline: Instant,
) -> Result<Option<u64>, Error> {
    let pg = &stores.pg;
    // What was committed before the history was cut short may bring older days, and so may what ClickHouse has lost.
    let delivered = visibility::wait_for_history(pg, cut.organization);
    let deadline = deadline.max(Instant::now() + BRIEFLY);
    tokio::time::timeout_at(deadline, delivered).await.map_err(|_| undelivered())??;
    let applied = within(BRIEF, outbox::last_applied_delivery(pg)).await?;
    if history_writer::last_delivery(client).await?.number < applied {
        return Err(undelivered());
    }
    let subjects = retention::find_uncompacted_subjects(client, cut).await?;
    if subjects.is_empty() && cut.is_compacted {
        return Ok(None);
    }
    within(BRIEF, retention::record_compaction(pg, cut, false)).await?;
    let mut waiting: Vec<_> = subjects.chunks(REDUCED).rev().collect();
    while let Some(some) = waiting.pop() {
        within(BRIEF, turn.ensure_held()).await?;
        match retention::compact(client, cut, some).await {
            Err(error) if error.exceeds_query_limit() && some.len() > 1 => {
                let (first, second) = some.split_at(some.len() / 2);
                waiting.extend([second, first]);
            }
            done => done?,
        }
        failpoint::reached("retention-reduced");
    }
    retention::count_videos(client, cut).await.map(Some)
}

/// Has the relay compute the gains of an organization again, now that nothing more is left of before its history.
async fn recompute(
    stores: &Databases,
    turn: &mut ErasureLock,
    client: &Client,
    cut: &Cutoff,
    patience: &mut Duration,
) -> Result<(), Error> {
    let pg = &stores.pg;
    let rolled_up = in_time(patience, retention::find_rolled_up_subjects(client, cut)).await;
    for some in rolled_up.ok_or(clickhouse::error::Error::TimedOut)??.chunks(COMPUTED) {
        within(BRIEF, turn.ensure_held()).await?;
        let recompute = || async {
            let mut write = Write::begin(pg, cut.organization).await?;
            for subject in some {
                write.record_subject_change(*subject, Some(NaiveDate::default()));
            }
            write.commit().await
        };
        let committed = within(LONG, retry_on_conflict(recompute)).await?;
        failpoint::reached("retention-computed");
        if let Some(position) = committed.outbox_position {
            let delivered = visibility::wait_for_position(pg, cut.organization, position);
            in_time(patience, delivered).await.ok_or_else(undelivered)??;
        }
    }
    within(BRIEF, retention::record_compaction(pg, cut, true)).await
}

/// Waits for what ClickHouse has to do; none when that was in vain. What is out keeps everybody waiting: the next ones wait
/// briefly.
async fn in_time<T>(patience: &mut Duration, work: impl Future<Output = T>) -> Option<T> {
    let done = tokio::time::timeout(*patience, work).await.ok();
    if done.is_none() {
        *patience = BRIEFLY;
    }
    done
}

fn undelivered() -> Error {
    let text =
        "changes are not delivered to clickhouse: see that a tracker runs, and in its log why they are not";
    Error::Conflict(text.to_owned())
}
