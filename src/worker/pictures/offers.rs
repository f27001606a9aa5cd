//! Pictures that scrapes saw: finds those that are new, changed or lost, and makes them due.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use uuid::Uuid;

use super::storage::Storage;
use crate::model::picture::{PictureKind, PictureName};
use crate::model::platform::Platform;
use crate::platforms::pictures::PictureClient;
use crate::store::Error;
use crate::store::pictures::{self, OfferedPicture, PictureReference};
use crate::telemetry::pictures::{PictureOutcome, count};
use crate::worker::timeout;

/// Pictures that wait until they are compared with the stored ones. More are left until the next scrape.
const MAX_WAITING: usize = 100_000;
/// Offers that are compared at once.
const BATCH_OFFERS: usize = 32;

/// A picture in a platform's response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenPicture {
    /// The account or video that shows it.
    pub record_id: Uuid,
    pub kind: PictureKind,
    pub url: String,
}

/// The pictures of one scrape.
pub(super) struct Offer {
    pictures: Vec<OfferedPicture>,
    _permit: OwnedSemaphorePermit,
}

/// Takes the pictures that scrapes saw. Cheap to clone; by default pictures are not copied.
#[derive(Clone, Default)]
pub struct PictureOffers(Option<Sender>);

#[derive(Clone)]
struct Sender {
    client: PictureClient,
    offers: mpsc::UnboundedSender<Offer>,
    waiting: Arc<Semaphore>,
}

impl PictureOffers {
    pub(super) fn new(client: PictureClient, offers: mpsc::UnboundedSender<Offer>) -> Self {
        PictureOffers(Some(Sender { client, offers, waiting: Arc::new(Semaphore::new(MAX_WAITING)) }))
    }

    /// Offers the pictures of a committed scrape. Never waits.
    pub fn offer(&self, organization: Uuid, platform: Platform, seen: Vec<SeenPicture>) {
        let Some(sender) = &self.0 else { return };
        let mut pictures = Vec::with_capacity(seen.len());
        for SeenPicture { record_id, kind, url } in seen {
            match sender.client.identify(platform, kind, &url) {
                Some(source) => pictures.push(OfferedPicture { organization, record_id, kind, source }),
                None => count(PictureOutcome::OtherHost, 1),
            }
        }
        let number = u32::try_from(pictures.len()).unwrap_or(u32::MAX);
        match sender.waiting.clone().try_acquire_many_owned(number) {
            // The receiver is gone while the process stops.
            Ok(permit) => _ = sender.offers.send(Offer { pictures, _permit: permit }),
            Err(_) => count(PictureOutcome::Dropped, number.into()),
        }
    }
}

/// Makes offered pictures due.
pub(super) async fn run(storage: Storage, mut offers: mpsc::UnboundedReceiver<Offer>, due: &Notify) {
    let mut batch = Vec::new();
    while offers.recv_many(&mut batch, BATCH_OFFERS).await > 0 {
        let pictures = batch.iter().flat_map(|offer| offer.pictures.iter().copied()).collect();
        match request_new(&storage, pictures).await {
            Ok(true) => due.notify_one(),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot compare pictures with the stored ones, retrying after the next scrape")
            }
        }
        batch.clear();
    }
}

/// Makes those pictures due that are to be fetched. Returns whether there are any.
async fn request_new(storage: &Storage, offered: Vec<OfferedPicture>) -> Result<bool, Error> {
    let offered: HashMap<Uuid, OfferedPicture> =
        offered.into_iter().map(|picture| (picture.record_id, picture)).collect();
    let records: Vec<_> = offered.keys().copied().collect();
    let references = timeout::short(pictures::fetch_references(&storage.pg, &records)).await?;
    let references: HashMap<_, _> =
        references.into_iter().map(|reference| (reference.record_id, reference)).collect();
    let names = references.values().filter_map(|reference| reference.name).collect();
    let lost = storage.find_lost(names).await;
    if !lost.is_empty() {
        storage.remove_lost(&lost).await?;
    }
    let mut new: Vec<_> = offered.into_values().collect();
    new.retain(|picture| is_wanted(picture, references.get(&picture.record_id), &lost));
    if new.is_empty() {
        return Ok(false);
    }
    timeout::short(pictures::request(&storage.pg, new)).await?;
    Ok(true)
}

/// Whether a picture is to be fetched.
fn is_wanted(picture: &OfferedPicture, stored: Option<&PictureReference>, lost: &[PictureName]) -> bool {
    let Some(stored) = stored else { return true };
    if stored.source != picture.source {
        return true;
    }
    let has_copy = stored.is_current && stored.name.is_some_and(|name| !lost.contains(&name));
    let is_lost = stored.name.is_some_and(|name| lost.contains(&name));
    !has_copy && !stored.is_due && (stored.may_retry || is_lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::picture::PictureSource;

    #[test]
    fn new_changed_and_lost_pictures_are_wanted() {
        let (record_id, name) = (Uuid::max(), PictureName::from_bytes([7; 32]));
        let [source, other] = [1, 2].map(|n| PictureSource::from_bytes([n; 16]));
        let picture =
            OfferedPicture { organization: Uuid::nil(), record_id, kind: PictureKind::Cover, source };
        let stored = PictureReference {
            record_id,
            source,
            name: Some(name),
            is_current: true,
            is_due: false,
            may_retry: true,
        };
        let wanted = |reference: &PictureReference| is_wanted(&picture, Some(reference), &[]);
        assert!(is_wanted(&picture, None, &[]));
        assert!(!wanted(&stored));
        assert!(wanted(&PictureReference { source: other, ..stored.clone() }));
        assert!(is_wanted(&picture, Some(&stored), &[name]), "its file is missing");
        let without = PictureReference { name: None, is_current: false, ..stored.clone() };
        assert!(wanted(&without));
        assert!(!wanted(&PictureReference { is_due: true, ..without.clone() }));
        assert!(!wanted(&PictureReference { may_retry: false, ..without.clone() }));
        // The copy of an earlier picture.
        assert!(wanted(&PictureReference { is_current: false, ..stored }));
    }
}
