//! The stream of events: those of the organization as they become known, and when its figures change.

use bytes::{Bytes, BytesMut};
use salvo::Writer;
use salvo_oapi::endpoint;
use tokio::time::Instant;
use uuid::Uuid;

use crate::app::{App, EventStream, Following, MIN_CHANGE_INTERVAL};
use crate::http::input::LastEventId;
use crate::http::{Caller, EventSource, Problem, Result, ServerSentEvents};
use crate::model::limits::MAX_STREAMS_PER_KEY;
use crate::store::postgres::FairReads;
use crate::store::records::events;

const DATA_CHANGED: Bytes = Bytes::from_static(b"event: data.changed\ndata: {}\n\n");
/// Events that a stream reads from Postgres at a time.
const PAGE_ROWS: i64 = 100;

pub(super) struct FeedStream {
    stream: EventStream,
    reads: FairReads,
    organization: Uuid,
    position: Uuid,
    /// The version of figures that the client knows.
    seen: i64,
    changed_at: Option<Instant>,
}

/// Stream events
///
/// Server-sent events: those of the organization that become known from now on, or after `Last-Event-ID`, as in `GET /events`,
/// with `event: TYPE`, `id: ID` and the event as `data`. `event: data.changed` without id follows changed figures, at most once a
/// second. The stream ends when the key is revoked or the process stops; connect again with the last id.
#[endpoint(
    operation_id = "streamEvents",
    responses((status_code = 429, description = "The key has 100 open streams, or exceeds its rate limit."))
)]
pub(super) async fn open(
    app: App,
    caller: Caller,
    last_event_id: LastEventId,
) -> Result<ServerSentEvents<FeedStream>> {
    let organization = caller.organization;
    let stream = app.event_streams.open(organization, caller.key).ok_or_else(|| {
        let detail = format!("the key has {MAX_STREAMS_PER_KEY} open streams: close one");
        Problem::rate_limited(detail, 1)
    })?;
    let reads = FairReads::new(app.pg.clone(), app.reads.clone(), organization);
    let marks = events::fetch_marks(&*reads.acquire().await?, &[organization]).await?;
    let mark = marks.get(&organization).copied().unwrap_or_default();
    let position = last_event_id.0.or(mark.last_event_id).unwrap_or_default();
    // A client that comes back may have missed a change.
    let seen = if last_event_id.0.is_none() { mark.data_version } else { i64::MIN };
    Ok(ServerSentEvents(FeedStream { stream, reads, organization, position, seen, changed_at: None }))
}

impl EventSource for FeedStream {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        loop {
            let Some(feed) = self.stream.feed() else { return Ok(None) };
            match feed.after(self.position) {
                Following::Nothing => {}
                Following::Event(event) => {
                    self.position = event.id;
                    return Ok(Some(event.text.clone()));
                }
                Following::Stored => {
                    // Boxed, because streams rarely read: what they wait in is smaller without it.
                    let page = Box::pin(self.read_page(feed.complete_after)).await?;
                    if !page.is_empty() {
                        return Ok(Some(page));
                    }
                    continue;
                }
            }
            let version = feed.mark.map(|mark| mark.data_version).filter(|version| *version > self.seen);
            let Some(version) = version else {
                self.stream.changed().await;
                continue;
            };
            match self.changed_at.map(|at| at + MIN_CHANGE_INTERVAL).filter(|due_at| *due_at > Instant::now())
            {
                None => {
                    (self.seen, self.changed_at) = (version, Some(Instant::now()));
                    return Ok(Some(DATA_CHANGED));
                }
                Some(due_at) => _ = tokio::time::timeout_at(due_at, self.stream.changed()).await,
            }
        }
    }
}

impl FeedStream {
    /// Reads the next events from Postgres. If there are none, the stream continues with those in memory.
    async fn read_page(&mut self, complete_after: Uuid) -> Result<Bytes> {
        let page = {
            let pg = self.reads.acquire().await?;
            events::fetch_after(&pg, self.organization, self.position, PAGE_ROWS).await?
        };
        let mut text = BytesMut::new();
        for event in &page {
            text.extend_from_slice(event.to_stream_text().as_bytes());
        }
        self.position = page.last().map_or(complete_after, |last| last.id);
        Ok(text.freeze())
    }
}
