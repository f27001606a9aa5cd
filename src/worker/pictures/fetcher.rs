//! Fetches due pictures, a few at a time, and makes their copies.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use picture_copy::UnusablePicture;
use sqlx::PgPool;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use super::storage::{NewCopy, RETRY_DELAY};
use crate::media::{DecodeThread, MediaFolder};
use crate::model::picture::{PictureKind, PictureName, PictureSource};
use crate::model::platform::Platform;
use crate::platforms::pictures::{FetchError, PictureClient};
use crate::store::Error;
use crate::store::pictures::{self, DuePicture, FailedPicture};
use crate::telemetry::pictures::{PictureOutcome, count};
use crate::worker::failure_log::FailureLog;
use crate::worker::timeout;

/// Concurrent requests: each may hold a picture of the largest size.
const SLOTS: usize = 8;
/// How often to look for pictures that another process made due, or whose lease or delay is over.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The delays after failures that may pass, in seconds.
const RETRY_DELAYS: [f64; 3] = [30.0, 120.0, 600.0];
/// A picture that was leased so often without any result may be one that ends the process.
const MAX_ATTEMPTS: i16 = 6;
/// How long scrapes leave a picture alone that is none, or whose server fails: shorter than a daily interval.
const COOLDOWN_SECONDS: f64 = 20.0 * 3600.0;

/// Several records that show one picture.
struct SharedPicture {
    platform: Platform,
    url: String,
    source: PictureSource,
    kind: PictureKind,
    known: Option<PictureName>,
    records: Vec<DuePicture>,
}

#[derive(Clone)]
pub(super) struct Fetcher {
    pub(super) pg: PgPool,
    pub(super) client: PictureClient,
    pub(super) decoder: DecodeThread,
    pub(super) folder: MediaFolder,
    pub(super) copies: mpsc::Sender<NewCopy>,
    pub(super) due: Arc<Notify>,
}

impl Fetcher {
    pub(super) async fn run(self) {
        let mut tasks = JoinSet::new();
        let mut log = FailureLog::new("cannot lease pictures");
        loop {
            let free = SLOTS - tasks.len();
            let mut may_have_more = false;
            if free > 0 {
                let leased = log.record(self.lease(free).await).unwrap_or_default();
                may_have_more = !leased.is_empty();
                for picture in leased {
                    let fetcher = self.clone();
                    tasks.spawn(async move { fetcher.copy(picture).await });
                }
            }
            let has_free_slot = tasks.len() < SLOTS;
            tokio::select! {
                Some(ended) = tasks.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a picture panicked because of a bug");
                    }
                }
                () = self.due.notified(), if has_free_slot => {}
                () = tokio::time::sleep(POLL_INTERVAL), if has_free_slot && !may_have_more => {}
                () = std::future::ready(()), if has_free_slot && may_have_more => {}
            }
        }
    }

    /// Leases pictures, and deletes those whose record is gone. Equal ones are fetched once.
    async fn lease(&self, limit: usize) -> Result<Vec<SharedPicture>, Error> {
        let due = timeout::short(pictures::lease_due(&self.pg, limit)).await?;
        let (due, exhausted): (Vec<_>, Vec<_>) =
            due.into_iter().partition(|picture| picture.attempts <= MAX_ATTEMPTS);
        if !exhausted.is_empty() {
            let pictures = exhausted.len();
            tracing::warn!(pictures, "leases of pictures expired too often, retrying in a day");
            self.postpone(&exhausted, PictureOutcome::Failed).await?;
        }
        let mut shared: HashMap<PictureSource, SharedPicture> = HashMap::new();
        let mut gone = Vec::new();
        for picture in due {
            let identified = picture.platform.zip(picture.url.clone()).and_then(|(platform, url)| {
                let source = self.client.identify(platform, picture.kind, &url)?;
                Some((platform, url, source))
            });
            let Some((platform, url, source)) = identified else {
                gone.push(picture.record_id);
                continue;
            };
            // The URL may be of a later picture.
            let (kind, known) = (picture.kind, picture.shared.filter(|_| picture.source == source));
            let group = shared.entry(source).or_insert_with(|| SharedPicture {
                platform,
                url,
                source,
                kind,
                known,
                records: Vec::new(),
            });
            group.records.push(picture);
        }
        if !gone.is_empty() {
            timeout::short(pictures::delete(&self.pg, &gone)).await?;
        }
        Ok(shared.into_values().collect())
    }

    async fn copy(&self, picture: SharedPicture) {
        let started = Instant::now();
        match self.make_copy(&picture).await {
            Ok((copy, outcome)) => {
                count(outcome, picture.records.len() as u64);
                let SharedPicture { source, records, .. } = picture;
                // The receiver is gone while the process stops.
                let _ = self.copies.send(NewCopy { copy, source, records, started }).await;
            }
            Err(outcome) => {
                if let Err(error) = self.postpone(&picture.records, outcome).await {
                    tracing::debug!(%error, "cannot postpone pictures, their leases end");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    async fn postpone(&self, records: &[DuePicture], outcome: PictureOutcome) -> Result<(), Error> {
        count(outcome, records.len() as u64);
        let failed: Vec<_> = records.iter().map(|record| postponed(record, outcome)).collect();
        timeout::short(pictures::postpone(&self.pg, &failed)).await.map(drop)
    }

    /// Returns the copy that another record has, or makes one.
    async fn make_copy(&self, picture: &SharedPicture) -> Result<(Vec<u8>, PictureOutcome), PictureOutcome> {
        if let Some(name) = picture.known
            && let Ok(Some(copy)) = self.folder.run(move |folder| folder.read(&name)).await
        {
            return Ok((copy, PictureOutcome::Shared));
        }
        let fetched = self.client.fetch(picture.platform, &picture.url).await;
        let bytes = fetched.map_err(|error| match error {
            FetchError::OtherHost => PictureOutcome::OtherHost,
            FetchError::Gone(_) => PictureOutcome::Gone,
            FetchError::TooLarge => PictureOutcome::TooLarge,
            FetchError::Failed(_) => PictureOutcome::Failed,
        })?;
        let made = self.decoder.make_copy(bytes, picture.kind).await;
        let copy = made.map_err(|error| match error {
            UnusablePicture::TooLarge => PictureOutcome::TooLarge,
            UnusablePicture::UnknownFormat
            | UnusablePicture::Undecodable(_)
            | UnusablePicture::Unencodable(_) => PictureOutcome::Undecodable,
        })?;
        Ok((copy, PictureOutcome::Copied))
    }
}

fn postponed(record: &DuePicture, outcome: PictureOutcome) -> FailedPicture {
    let failures = usize::try_from(record.attempts).unwrap_or_default().saturating_sub(1);
    let due_in_seconds = match outcome {
        PictureOutcome::Failed => RETRY_DELAYS.get(failures).copied(),
        _ => None,
    };
    // The URL expired: a scrape reports another one.
    let cooldown_seconds = (outcome != PictureOutcome::Gone).then_some(COOLDOWN_SECONDS);
    FailedPicture { record_id: record.record_id, due_in_seconds, cooldown_seconds }
}
