//! The open streams of events. One reader of Postgres per process serves them all (`worker::event_reader`): a stream holds its
//! position, and the latest events of an organization are in memory once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

use crate::model::limits::MAX_STREAMS_PER_KEY;
use crate::store::records::events::FeedMark;

/// Figures change with every scrape: streams say so once in this time.
pub const MIN_CHANGE_INTERVAL: Duration = Duration::from_secs(1);

/// Events of an organization in memory. A stream that is further behind reads Postgres.
const MAX_RECENT_EVENTS: usize = 256;
/// Streams that are woken before a pause.
const MAX_BURST: usize = MAX_STREAMS_PER_KEY;
const BURST_PAUSE: Duration = Duration::from_millis(2);

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
    /// When streams last sent `data.changed`.
    figures_changed_at: Option<Instant>,
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
        match feed.mark {
            None => feed.complete_after = mark.last_event_id.unwrap_or_default(),
            Some(known) if known.data_version == mark.data_version => {}
            Some(_) => feed.figures_changed_at = Some(Instant::now()),
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

    /// Returns the mark to publish now: it keeps the known data version within [`MIN_CHANGE_INTERVAL`] of the last change.
    #[must_use]
    pub fn due_mark(&self, mark: FeedMark) -> FeedMark {
        let is_early = self.figures_changed_at.is_some_and(|at| at.elapsed() < MIN_CHANGE_INTERVAL);
        let known = self.mark.filter(|_| is_early);
        FeedMark { data_version: known.map_or(mark.data_version, |known| known.data_version), ..mark }
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
}

#[derive(Default)]
struct OpenStreams {
    organizations: HashMap<Uuid, OrganizationStreams>,
    count: usize,
    is_closed: bool,
}

#[derive(Default)]
struct OrganizationStreams {
    feed: Arc<Feed>,
    keys: HashMap<Uuid, KeyStreams>,
}

/// Sends a feed to streams; none once they have to end.
type FeedSender = watch::Sender<Option<Arc<Feed>>>;

/// The streams of a key, which wake together.
struct KeyStreams {
    feed: FeedSender,
    count: usize,
}

impl EventStreams {
    /// Opens a stream, unless the key has too many.
    pub fn open(&self, organization: Uuid, key: Uuid) -> Option<EventStream> {
        let mut guard = self.0.open.lock();
        let OpenStreams { organizations, count, is_closed } = &mut *guard;
        let OrganizationStreams { feed: current, keys } = organizations.entry(organization).or_default();
        let of_key = keys.entry(key).or_insert_with(|| {
            let known = (!*is_closed).then(|| Arc::clone(current));
            KeyStreams { feed: watch::Sender::new(known), count: 0 }
        });
        if of_key.count >= MAX_STREAMS_PER_KEY {
            return None;
        }
        of_key.count += 1;
        *count += 1;
        let feed = of_key.feed.subscribe();
        drop(guard);
        self.0.opened.notify_one();
        Some(EventStream { streams: self.clone(), organization, key, feed })
    }

    /// Waits until a stream is opened, unless one is open.
    pub async fn wait_for_streams(&self) {
        while self.count() == 0 {
            self.wait_for_next().await;
        }
    }

    /// Waits until a stream is opened.
    pub async fn wait_for_next(&self) {
        self.0.opened.notified().await;
    }

    /// The number of open streams.
    pub fn count(&self) -> usize {
        self.0.open.lock().count
    }

    /// The organizations with streams, and what these know.
    pub fn feeds(&self) -> Vec<(Uuid, Arc<Feed>)> {
        let open = self.0.open.lock();
        open.organizations
            .iter()
            .map(|(organization, streams)| (*organization, streams.feed.clone()))
            .collect()
    }

    /// The keys of open streams.
    pub fn keys(&self) -> Vec<Uuid> {
        let open = self.0.open.lock();
        open.organizations.values().flat_map(|streams| streams.keys.keys().copied()).collect()
    }

    /// Sends a feed to the streams of an organization. A burst of thousands would delay requests, so it pauses between some.
    pub async fn publish(&self, organization: Uuid, feed: Feed) {
        let (feed, mut woken) = (Arc::new(feed), 0);
        for (sender, count) in self.replace_feed(organization, &feed) {
            sender.send_if_modified(|current| match current {
                Some(current) => {
                    *current = Arc::clone(&feed);
                    true
                }
                None => false,
            });
            woken += count;
            if woken >= MAX_BURST {
                tokio::time::sleep(BURST_PAUSE).await;
                woken = 0;
            }
        }
    }

    /// Replaces the feed that new streams begin with, and returns the others' senders, each with the number of its streams.
    fn replace_feed(&self, organization: Uuid, feed: &Arc<Feed>) -> Vec<(FeedSender, usize)> {
        let mut open = self.0.open.lock();
        let Some(streams) = open.organizations.get_mut(&organization) else { return Vec::new() };
        streams.feed = Arc::clone(feed);
        streams.keys.values().map(|of_key| (of_key.feed.clone(), of_key.count)).collect()
    }

    /// Ends the streams of all keys but these, of those that were checked.
    pub fn end_revoked(&self, checked: &[Uuid], accepted: &HashSet<Uuid>) {
        let revoked: HashSet<_> = checked.iter().filter(|key| !accepted.contains(*key)).collect();
        if !revoked.is_empty() {
            self.0.open.lock().end(|key| revoked.contains(key));
        }
    }

    /// Ends all streams, because the process stops.
    pub fn close(&self) {
        let mut open = self.0.open.lock();
        open.is_closed = true;
        open.end(|_| true);
    }
}

impl OpenStreams {
    fn end(&self, is_ended: impl Fn(&Uuid) -> bool) {
        let keys = self.organizations.values().flat_map(|streams| &streams.keys);
        for (_, of_key) in keys.filter(|(key, _)| is_ended(key)) {
            of_key.feed.send_replace(None);
        }
    }

    fn remove(&mut self, organization: Uuid, key: Uuid) {
        self.count -= 1;
        let Some(streams) = self.organizations.get_mut(&organization) else { return };
        if let Some(of_key) = streams.keys.get_mut(&key) {
            of_key.count -= 1;
            if of_key.count == 0 {
                streams.keys.remove(&key);
            }
        }
        if streams.keys.is_empty() {
            self.organizations.remove(&organization);
        }
    }
}

/// A stream, counted until it is dropped.
pub struct EventStream {
    streams: EventStreams,
    organization: Uuid,
    key: Uuid,
    feed: watch::Receiver<Option<Arc<Feed>>>,
}

impl EventStream {
    /// Returns the current feed; none if the stream has to end.
    pub fn feed(&mut self) -> Option<Arc<Feed>> {
        self.feed.borrow_and_update().clone()
    }

    /// Waits until the feed changes, or the stream has to end.
    pub async fn changed(&mut self) {
        // Cannot fail: the sender is there as long as a stream is.
        let _ = self.feed.changed().await;
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.streams.0.open.lock().remove(self.organization, self.key);
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
        streams.close();
        assert!(streams.open(organization, key).unwrap().feed().is_none());
    }

    #[tokio::test]
    async fn feed_reaches_the_streams_of_all_keys_of_an_organization() {
        let streams = EventStreams::default();
        let open = |organization, key| streams.open(id(organization), id(key)).unwrap();
        let mut of_organization = [open(1, 11), open(1, 11), open(1, 12), open(1, 13)];
        let mut other = open(2, 21);
        let known = |stream: &mut EventStream| stream.feed().map(|feed| feed.position());
        streams.end_revoked(&[id(12)], &HashSet::new());
        streams.publish(id(1), Feed::default().extend(mark(5), [])).await;
        let positions = of_organization.each_mut().map(known);
        assert_eq!(positions, [Some(id(5)), Some(id(5)), None, Some(id(5))]);
        assert_eq!(known(&mut other), Some(Uuid::nil()));
        assert_eq!(known(&mut open(1, 14)), Some(id(5)), "a new stream begins with it");
    }

    #[test]
    fn changed_figures_are_published_once_a_second() {
        let mark = |data_version| FeedMark { data_version, ..FeedMark::default() };
        let mut feed = Feed::default().extend(mark(1), []);
        assert_eq!(feed.due_mark(mark(2)), mark(2));
        feed = feed.extend(mark(2), []);
        assert_eq!(feed.due_mark(mark(3)), mark(2));
        let event = FeedMark { last_event_id: Some(id(7)), ..mark(3) };
        assert_eq!(feed.due_mark(event), FeedMark { data_version: 2, ..event }, "events do not wait");
        feed.figures_changed_at = Instant::now().checked_sub(MIN_CHANGE_INTERVAL);
        assert_eq!(feed.due_mark(mark(3)), mark(3));
    }
}
