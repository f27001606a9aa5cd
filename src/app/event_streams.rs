//! The open streams of events. One reader of Postgres per process serves them all (`worker::event_reader`): a stream holds its
//! position, and the latest events of an organization are in memory once.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::model::limits::MAX_STREAMS_PER_KEY;
use crate::store::records::events::FeedMark;

/// Events of an organization in memory. A stream that is further behind reads Postgres.
const MAX_RECENT_EVENTS: usize = 256;

/// An event, as streams send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamedEvent {
    pub id: Uuid,
    pub text: Bytes,
}

/// What streams of an organization send, as it was read last.
#[derive(Debug, Clone, Default)]
pub struct Feed {
    /// None before it was read.
    pub mark: Option<FeedMark>,
    /// The id after which all events are in `recent`.
    pub complete_after: Uuid,
    recent: VecDeque<StreamedEvent>,
}

/// What follows a position.
#[derive(Debug, PartialEq, Eq)]
pub enum Following<'a> {
    Nothing,
    Event(&'a StreamedEvent),
    /// Events that are in Postgres only.
    Stored,
}

impl Feed {
    /// Returns the feed that is read next: with what was appended to this one.
    #[must_use]
    pub fn extend(&self, mark: FeedMark, appended: impl IntoIterator<Item = StreamedEvent>) -> Self {
        let mut feed = self.clone();
        if feed.mark.is_none() {
            feed.complete_after = mark.last_event_id.unwrap_or_default();
        }
        feed.recent.extend(appended);
        while feed.recent.len() > MAX_RECENT_EVENTS
            && let Some(oldest) = feed.recent.pop_front()
        {
            feed.complete_after = oldest.id;
        }
        feed.mark = Some(mark);
        feed
    }

    /// The last event that was read.
    pub fn position(&self) -> Uuid {
        self.recent.back().map_or(self.complete_after, |last| last.id)
    }

    pub fn after(&self, position: Uuid) -> Following<'_> {
        if position < self.complete_after {
            return Following::Stored;
        }
        let next = self.recent.partition_point(|event| event.id <= position);
        self.recent.get(next).map_or(Following::Nothing, Following::Event)
    }
}

/// The open streams of a process. Cheap to clone.
#[derive(Clone, Default)]
pub struct EventStreams(Arc<Shared>);

#[derive(Default)]
struct Shared {
    open: Mutex<OpenStreams>,
    opened: Notify,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct OpenStreams {
    feeds: HashMap<Uuid, (watch::Sender<Arc<Feed>>, usize)>,
    keys: HashMap<Uuid, (Arc<AtomicBool>, usize)>,
}

impl EventStreams {
    /// Opens a stream, unless the key has too many.
    pub fn open(&self, organization: Uuid, key: Uuid) -> Option<EventStream> {
        let mut open = self.0.open.lock();
        let (is_revoked, of_key) = open.keys.entry(key).or_default();
        if *of_key >= MAX_STREAMS_PER_KEY {
            return None;
        }
        *of_key += 1;
        let is_revoked = Arc::clone(is_revoked);
        let (sender, of_organization) =
            open.feeds.entry(organization).or_insert_with(|| (watch::Sender::default(), 0));
        *of_organization += 1;
        let feed = sender.subscribe();
        drop(open);
        self.0.opened.notify_one();
        Some(EventStream { streams: self.clone(), organization, key, is_revoked, feed })
    }

    /// Waits until a stream is opened, unless one is open.
    pub async fn wait_for_streams(&self) {
        while self.count() == 0 {
            self.0.opened.notified().await;
        }
    }

    /// The number of open streams.
    pub fn count(&self) -> usize {
        self.0.open.lock().keys.values().map(|(_, streams)| streams).sum()
    }

    /// The organizations with streams, and what these know.
    pub fn feeds(&self) -> Vec<(Uuid, Arc<Feed>)> {
        let open = self.0.open.lock();
        open.feeds.iter().map(|(organization, (feed, _))| (*organization, feed.borrow().clone())).collect()
    }

    /// The keys of open streams.
    pub fn keys(&self) -> Vec<Uuid> {
        self.0.open.lock().keys.keys().copied().collect()
    }

    /// Sends a feed to the streams of an organization.
    pub fn publish(&self, organization: Uuid, feed: Feed) {
        if let Some((sender, _)) = self.0.open.lock().feeds.get(&organization) {
            sender.send_replace(Arc::new(feed));
        }
    }

    /// Ends the streams of all keys but these, of those that were checked.
    pub fn end_revoked(&self, checked: &[Uuid], accepted: &HashSet<Uuid>) {
        let open = self.0.open.lock();
        let revoked: BTreeSet<_> = checked.iter().filter(|key| !accepted.contains(*key)).collect();
        for key in &revoked {
            if let Some((is_revoked, _)) = open.keys.get(*key) {
                is_revoked.store(true, Ordering::Relaxed);
            }
        }
        if !revoked.is_empty() {
            open.wake_all();
        }
    }

    /// Ends all streams, because the process stops.
    pub fn close(&self) {
        self.0.is_closed.store(true, Ordering::Relaxed);
        self.0.open.lock().wake_all();
    }
}

impl OpenStreams {
    fn wake_all(&self) {
        for (feed, _) in self.feeds.values() {
            feed.send_modify(|_| {});
        }
    }
}

/// A stream, counted until it is dropped.
pub struct EventStream {
    streams: EventStreams,
    organization: Uuid,
    key: Uuid,
    is_revoked: Arc<AtomicBool>,
    feed: watch::Receiver<Arc<Feed>>,
}

impl EventStream {
    /// Returns the current feed; none if the stream has to end.
    pub fn feed(&mut self) -> Option<Arc<Feed>> {
        let feed = self.feed.borrow_and_update().clone();
        let has_ended =
            self.is_revoked.load(Ordering::Relaxed) || self.streams.0.is_closed.load(Ordering::Relaxed);
        (!has_ended).then_some(feed)
    }

    /// Waits until the feed changes, or the stream has to end.
    pub async fn changed(&mut self) {
        // Cannot fail: the sender is there as long as a stream is.
        let _ = self.feed.changed().await;
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        let mut open = self.streams.0.open.lock();
        if let Some((_, streams)) = open.keys.get_mut(&self.key) {
            *streams -= 1;
        }
        if let Some((_, streams)) = open.feeds.get_mut(&self.organization) {
            *streams -= 1;
        }
        open.keys.retain(|_, (_, streams)| *streams > 0);
        open.feeds.retain(|_, (_, streams)| *streams > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn event(number: u128) -> StreamedEvent {
        StreamedEvent { id: id(number), text: Bytes::new() }
    }

    fn mark(last: u128) -> FeedMark {
        FeedMark { last_event_id: Some(id(last)), ..FeedMark::default() }
    }

    #[test]
    fn position_is_followed_in_memory_or_in_postgres() {
        let feed = Feed::default().extend(mark(10), []);
        assert_eq!(feed.after(id(9)), Following::Stored);
        assert_eq!(feed.after(id(10)), Following::Nothing);
        let feed = feed.extend(mark(12), [event(11), event(12)]);
        assert_eq!((feed.position(), feed.after(id(10))), (id(12), Following::Event(&event(11))));
        assert_eq!(feed.after(id(11)), Following::Event(&event(12)));
        assert_eq!(feed.after(id(12)), Following::Nothing);
        let feed = feed.extend(mark(268), (13..=268).map(event));
        assert_eq!((feed.complete_after, feed.after(id(11))), (id(12), Following::Stored));
        assert_eq!(feed.after(id(12)), Following::Event(&event(13)));
    }

    #[test]
    fn streams_of_a_key_are_counted() {
        let (streams, organization, key) = (EventStreams::default(), id(1), id(2));
        let mut open: Vec<_> =
            (0..MAX_STREAMS_PER_KEY).map(|_| streams.open(organization, key).unwrap()).collect();
        assert!(streams.open(organization, key).is_none());
        assert!(streams.open(organization, id(3)).is_some());
        drop(open.pop());
        let mut stream = streams.open(organization, key).unwrap();
        streams.end_revoked(&[id(3), key], &HashSet::from([id(3)]));
        assert!(stream.feed().is_none());
        drop((stream, open));
        assert_eq!((streams.count(), streams.feeds().len(), streams.keys().len()), (0, 0, 0));
        assert!(streams.open(organization, key).unwrap().feed().is_some(), "the key was accepted again");
    }
}
