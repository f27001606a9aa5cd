//! What a unit of work has changed, until its commit writes what follows from it.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use crate::model::picture::PictureKind;
use crate::model::snapshot::{AccountSnapshot, VideoSnapshot};
use crate::store::outbox::event::Event;
use crate::store::records::captions::CaptionChanges;
use crate::store::records::events::NewEvent;
use crate::store::records::post_days::PostDayChanges;

/// A kind of record in the search index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entity {
    Account,
    Creator,
    Video,
}

impl Entity {
    pub const fn as_str(self) -> &'static str {
        match self {
            Entity::Account => "account",
            Entity::Creator => "creator",
            Entity::Video => "video",
        }
    }
}

/// The recorded changes of a unit of work.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) accounts: BTreeSet<Uuid>,
    pub(super) creators: BTreeSet<Uuid>,
    pub(super) videos: BTreeSet<Uuid>,
    pub(super) subjects: BTreeSet<i64>,
    pub(super) account_snapshots: Vec<AccountSnapshot>,
    pub(super) video_snapshots: Vec<VideoSnapshot>,
    pub(super) other_events: Vec<Event>,
    /// The earliest day whose numbers change.
    pub(super) since: Option<NaiveDate>,
    pub(super) earliest_snapshot: Option<NaiveDate>,
    pub(super) search_changes: BTreeSet<(Entity, Uuid)>,
    /// Accounts and videos whose scrape targets may have another status.
    pub(super) targets: BTreeSet<Uuid>,
    pub(super) post_days: PostDayChanges,
    pub(super) captions: CaptionChanges,
    pub(super) collections: BTreeSet<Uuid>,
    /// Whether accounts or videos show another picture.
    pub(super) pictures: BTreeSet<PictureKind>,
    /// Events of the feed, and their time.
    pub(super) feed: Vec<NewEvent>,
    pub(super) feed_time: DateTime<Utc>,
}

impl Changes {
    /// Whether the version of accounts, creators and links changes, and whether that of videos does.
    pub(super) fn changed_versions(&self) -> (bool, bool) {
        let others = !self.other_events.is_empty();
        (
            others
                || !self.accounts.is_empty()
                || !self.creators.is_empty()
                || self.pictures.contains(&PictureKind::Profile),
            others
                || !self.videos.is_empty()
                || !self.subjects.is_empty()
                || !self.collections.is_empty()
                || self.pictures.contains(&PictureKind::Cover),
        )
    }

    /// Takes the events in the order in which the relay applies them: records, then snapshots, then recomputations.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        fn drain<C: Default + IntoIterator>(
            collection: &mut C,
            event: fn(Vec<C::Item>) -> Event,
        ) -> Option<Event> {
            let items: Vec<_> = std::mem::take(collection).into_iter().collect();
            (!items.is_empty()).then(|| event(items))
        }
        let mut events = Vec::new();
        events.extend(drain(&mut self.creators, Event::CreatorsChanged));
        events.extend(drain(&mut self.accounts, Event::AccountsChanged));
        events.extend(drain(&mut self.videos, Event::VideosChanged));
        events.extend(drain(&mut self.collections, Event::CollectionsChanged));
        events.append(&mut self.other_events);
        events.extend(drain(&mut self.account_snapshots, Event::AccountSnapshots));
        events.extend(drain(&mut self.video_snapshots, Event::VideoSnapshots));
        events.extend(drain(&mut self.subjects, Event::SubjectsChanged));
        events
    }
}
