//! Reads events and versions of the organizations with open streams, for all streams of an API process together.

use std::time::{Duration, Instant};

use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::failure_log::FailureLog;
use super::timeout;
use crate::app::{EventStreams, Feed, StreamedEvent};
use crate::store::Error;
use crate::store::postgres::notifications::{self, Topic};
use crate::store::records::events::{self, FeedMark};
use crate::store::records::keys;

/// The shortest pause between reads.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
const KEY_INTERVAL: Duration = Duration::from_secs(2);
const PAGE_ROWS: i64 = 200;

/// Reads until it is stopped. A failure is logged once and retried; streams stay open meanwhile.
pub async fn run(pg: PgPool, streams: EventStreams, stop: CancellationToken) {
    let mut log = FailureLog::new("cannot read events for streams");
    let mut keys_checked_at = Instant::now();
    let mut news = notifications::subscribe(&[Topic::Writes, Topic::Deliveries]);
    let passes = async {
        loop {
            streams.wait_for_streams().await;
            let result = read(&pg, &streams).await;
            let mut checked = Ok(());
            if keys_checked_at.elapsed() >= KEY_INTERVAL {
                checked = timeout::short(check_keys(&pg, &streams)).await;
                keys_checked_at = Instant::now();
            }
            let is_held_back = log.record(checked.and(result)).unwrap_or(true);
            let opened_or_due = tokio::time::timeout(KEY_INTERVAL, streams.wait_for_next());
            news.wait_or(POLL_INTERVAL, is_held_back, async { _ = opened_or_due.await }).await;
        }
    };
    let _: Option<()> = stop.run_until_cancelled(passes).await;
}

/// Reads what is new, and publishes it organization by organization. Returns whether something is published later.
async fn read(pg: &PgPool, streams: &EventStreams) -> Result<bool, Error> {
    let feeds = streams.feeds();
    let organizations: Vec<_> = feeds.iter().map(|(organization, _)| *organization).collect();
    let marks = timeout::short(events::fetch_marks(pg, &organizations)).await?;
    let mut is_held_back = false;
    for (organization, feed) in feeds {
        let Some(latest) = marks.get(&organization).copied() else { continue };
        let mark = feed.due_mark(latest);
        is_held_back |= mark != latest;
        if feed.mark != Some(mark) {
            let next = timeout::short(read_feed(pg, organization, &feed, mark)).await?;
            streams.publish(organization, next).await;
        }
    }
    Ok(is_held_back)
}

async fn read_feed(pg: &PgPool, organization: Uuid, known: &Feed, mark: FeedMark) -> Result<Feed, Error> {
    if known.mark.is_none() {
        return Ok(known.extend(mark, []));
    }
    let mut feed = known.clone();
    loop {
        let page = match mark.last_event_id > Some(feed.position()) {
            true => events::fetch_after(pg, organization, feed.position(), PAGE_ROWS).await?,
            false => Vec::new(),
        };
        let is_last = (page.len() as i64) < PAGE_ROWS;
        let streamed =
            page.iter().map(|event| StreamedEvent { id: event.id, text: event.to_stream_text().into() });
        feed = feed.extend(mark, streamed);
        if is_last {
            return Ok(feed);
        }
    }
}

async fn check_keys(pg: &PgPool, streams: &EventStreams) -> Result<(), Error> {
    let checked = streams.keys();
    let accepted = keys::find_accepted(pg, &checked).await?;
    streams.end_revoked(&checked, &accepted);
    Ok(())
}
