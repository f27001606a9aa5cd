//! The relay: carries what Postgres committed to ClickHouse, in deliveries that may be repeated.
//!
//! One process leads at a time. A delivery is numbered in Postgres before it is made and recorded in ClickHouse
//! after it is visible, so a kill at any moment repeats it, and files that ClickHouse lost are brought again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sqlx::{Connection, PgConnection};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::app::Stores;
use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};
use crate::store::event::Event;
use crate::store::facts::{self, dimensions};
use crate::store::{Error, outbox};

/// How long the relay rests when nothing waits.
const IDLE: Duration = Duration::from_millis(100);
/// How long a process waits before it tries again to lead, or to reach a store that is down.
const RETRY: Duration = Duration::from_secs(1);
/// How much of the outbox one delivery takes: bytes of encoded events, a few hundred thousand snapshots.
const DELIVERY_BYTES: i64 = 4 << 20;
/// How long a delivery may take before it is made again: far more than one of that size needs.
const DELIVERY_TIME: Duration = Duration::from_secs(300);
/// Subjects whose gains are computed by one statement.
const SUBJECTS: usize = 64;
/// How often delivered rows are looked through for those that need not be kept.
const CLEANUP: Duration = Duration::from_secs(600);

/// Relays until told to stop. A store that is down is waited for.
pub async fn run(stores: Stores, database_url: String, stop: CancellationToken) {
    let mut failing = false;
    while !stop.is_cancelled() {
        match lead(&stores, &database_url, &stop, &mut failing).await {
            Ok(()) => {}
            Err(error) if !std::mem::replace(&mut failing, true) => {
                tracing::error!(%error, "the relay cannot deliver; trying on until the stores are back");
            }
            Err(error) => tracing::debug!(%error, "the relay still cannot deliver"),
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(RETRY) => {}
        }
    }
}

/// Delivers for as long as this process leads and the stores answer.
async fn lead(
    stores: &Stores,
    database_url: &str,
    stop: &CancellationToken,
    failing: &mut bool,
) -> Result<(), Error> {
    let mut leadership = PgConnection::connect(database_url).await?;
    if !outbox::lead(&mut leadership).await? {
        return Ok(());
    }
    let known = facts::position(&stores.clickhouse).await?;
    let last = outbox::last_delivery(&stores.pg).await?;
    let lacking = outbox::reopen_after(&stores.pg, known).await?;
    if lacking > 0 {
        tracing::warn!(lacking, known, last, "clickhouse lacks deliveries; bringing them again");
    }
    let mut cleaned = None::<tokio::time::Instant>;
    while !stop.is_cancelled() {
        leadership.ping().await?;
        match outbox::next(&stores.pg, known, DELIVERY_BYTES).await? {
            Some(delivery) => {
                tokio::time::timeout(DELIVERY_TIME, deliver(stores, &delivery))
                    .await
                    .map_err(|_| Error::Clickhouse(clickhouse::error::Error::TimedOut))??;
                outbox::finish(&stores.pg, &delivery).await?;
            }
            None => {
                if cleaned.is_none_or(|at| at.elapsed() > CLEANUP) {
                    outbox::forget_delivered(&stores.pg).await?;
                    cleaned = Some(tokio::time::Instant::now());
                }
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(IDLE) => {}
                }
            }
        }
        if std::mem::replace(failing, false) {
            tracing::info!("the relay delivers again");
        }
    }
    Ok(())
}

/// What a delivery has gathered and not yet written, and whose gains follow from it.
#[derive(Default)]
struct Gathered {
    accounts: Vec<(Uuid, AccountSnapshot)>,
    videos: Vec<(Uuid, VideoSnapshot)>,
    subjects: BTreeMap<Uuid, BTreeSet<i64>>,
}

impl Gathered {
    fn touch(&mut self, organization: Uuid, subject_id: i64) {
        self.subjects.entry(organization).or_default().insert(subject_id);
    }

    /// Writes the snapshots gathered so far.
    async fn flush(&mut self, stores: &Stores) -> Result<(), Error> {
        facts::insert_accounts(&stores.clickhouse, &std::mem::take(&mut self.accounts)).await?;
        facts::insert_videos(&stores.clickhouse, &std::mem::take(&mut self.videos)).await
    }
}

/// Makes everything of a delivery visible in ClickHouse, the record of the delivery last.
async fn deliver(stores: &Stores, delivery: &outbox::Delivery) -> Result<(), Error> {
    let changed = changed_records(delivery);
    for (organization, changed) in &changed {
        dimensions::bring(&stores.pg, &stores.clickhouse, *organization, changed, delivery.number).await?;
    }
    let mut gathered = Gathered::default();
    for row in &delivery.rows {
        for event in &row.events {
            apply(stores, delivery.number, row.organization, event, &mut gathered).await?;
        }
    }
    gathered.flush(stores).await?;
    for (organization, subjects) in &gathered.subjects {
        let subjects: Vec<_> = subjects.iter().copied().collect();
        for some in subjects.chunks(SUBJECTS) {
            facts::recompute(&stores.clickhouse, *organization, some, delivery.number).await?;
        }
    }
    facts::record_position(&stores.clickhouse, delivery.number).await
}

/// The records that a delivery names, by organization: their state is read once, however often they changed.
fn changed_records(delivery: &outbox::Delivery) -> BTreeMap<Uuid, dimensions::Changed> {
    let mut changed: BTreeMap<Uuid, dimensions::Changed> = BTreeMap::new();
    for row in &delivery.rows {
        let changed = changed.entry(row.organization).or_default();
        for event in &row.events {
            match event {
                Event::AccountsChanged(ids) => changed.accounts.extend(ids),
                Event::CreatorsChanged(ids) => changed.creators.extend(ids),
                Event::VideosChanged(ids) => changed.videos.extend(ids),
                _ => {}
            }
        }
    }
    changed
}

async fn apply(
    stores: &Stores,
    number: i64,
    organization: Uuid,
    event: &Event,
    gathered: &mut Gathered,
) -> Result<(), Error> {
    let clickhouse = &stores.clickhouse;
    match event {
        Event::AccountsChanged(_) | Event::CreatorsChanged(_) | Event::VideosChanged(_) => {}
        Event::SubjectsChanged(subjects) => {
            for subject in subjects {
                gathered.touch(organization, *subject);
            }
        }
        Event::AccountSnapshots(snapshots) => {
            for snapshot in snapshots {
                gathered.touch(organization, snapshot.subject_id);
                gathered.accounts.push((organization, *snapshot));
            }
        }
        Event::VideoSnapshots(snapshots) => {
            for snapshot in snapshots {
                gathered.touch(organization, snapshot.subject_id);
                gathered.videos.push((organization, *snapshot));
            }
        }
        // What was observed before the move goes along with it.
        Event::VideoMoved { from, to } => {
            gathered.flush(stores).await?;
            facts::move_video(clickhouse, organization, *from, *to).await?;
            if from.video_id != to.video_id {
                dimensions::remove_video(clickhouse, organization, from.video_id, number).await?;
            }
            gathered.touch(organization, from.subject_id);
            gathered.touch(organization, to.subject_id);
        }
        Event::SubjectRemoved { subject_id, account, videos } => {
            gathered.flush(stores).await?;
            facts::remove_subjects(clickhouse, organization, &[*subject_id]).await?;
            gathered.touch(organization, *subject_id);
            if account.is_some() {
                dimensions::remove_account(clickhouse, organization, *subject_id, number).await?;
            }
            for video in videos {
                dimensions::remove_video(clickhouse, organization, video.video_id, number).await?;
            }
        }
        Event::CreatorRemoved(id) => {
            dimensions::remove_creator(clickhouse, organization, *id, number).await?
        }
    }
    Ok(())
}
